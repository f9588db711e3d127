"""The business: modules that turn one event into rows. The setting TRANSFORM names the module.

A transform module offers

    VERSION: str                                         named in the ledger and in letters; at most 100 characters
    def transform(event: Event, references: References) -> Iterable[Row]     or raise PoisonEvent("why")
    def references(event: Event) -> Iterable[ReferenceKey]                   optional: the rows it will look up

Both functions are pure: no clock, no I/O, no globals. They run in the trigger, in retry and in replay. The module names
every row class, also one that it imports: a replay retracts and an audit counts only their rows. A row class that is no
longer written stays in the module until a replay has retracted its rows.
"""

from importlib import import_module

from core.errors import InvalidTransform
from core.model.rows import is_row_class
from core.model.transform import ROWS_LIMIT, Transform, Watch, unwatched

VERSION_LENGTH = 100  # UTF-16 units, as the columns of SQL Server count: it would refuse every commit of a longer one


def load_transform(module_name: str, rows_limit: int = ROWS_LIMIT, watch: Watch = unwatched) -> Transform:
    """Import a transform module, with the limit of the rows of an event and the watch over it.

    Raises InvalidTransform, which names the part that is missing.
    """
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise InvalidTransform(f"TRANSFORM={module_name}: {error}") from error
    version, rows_of = getattr(module, "VERSION", None), getattr(module, "transform", None)
    if not isinstance(version, str) or not callable(rows_of):
        raise InvalidTransform(f"TRANSFORM={module_name}: the module needs VERSION, a text, and a function transform()")
    if len(version.encode("utf-16-le", "surrogatepass")) > 2 * VERSION_LENGTH:
        raise InvalidTransform(f"TRANSFORM={module_name}: VERSION is longer than {VERSION_LENGTH} characters")
    row_classes = tuple(value for value in vars(module).values() if is_row_class(value))
    return Transform(version, rows_of, getattr(module, "references", None), row_classes, rows_limit, watch)
