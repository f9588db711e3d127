"""Transforms: modules that turn one event into rows. TRANSFORM names a room (`apps.orders`), or such a module itself.

A transform module offers

    VERSION: str                                         named in the ledger and in letters; at most 100 characters
    def transform(event: Event, references: References) -> Iterable[Row]     or raise PoisonEvent("why")
    def references(event: Event) -> Iterable[ReferenceKey]                   optional: the rows it will look up

Both functions are pure: no clock, no I/O, no globals. They run in the trigger, in retry and in replay. The module names
every row class, also one that it imports: a replay retracts and an audit counts only their rows. A row class that is no
longer written stays in the module until a replay has retracted its rows.
"""

from importlib import import_module
from types import ModuleType

from core.errors import InvalidTransform
from core.model.transform import ROWS_LIMIT, Transform, Watch, unwatched
from core.transforms.aggregates import load_aggregates
from core.transforms.rooms import module_of
from core.transforms.signals import takes_signals


def load_transform(module_name: str, rows_limit: int = ROWS_LIMIT, watch: Watch = unwatched) -> Transform:
    """Import a transform module and the aggregates of its rows, with the limit of the rows of an event and the watch.

    Raises InvalidTransform with every fault of its form.
    """
    from core.transforms.contract.form import faults_of_form, row_classes_of  # needed to load, not to index the app
    from core.transforms.contract.places import importing, placed

    module = import_transform(module_name)
    if faults := list(faults_of_form(module)):
        raise InvalidTransform(*placed(faults), module=module_name)
    row_classes = row_classes_of(module)
    with importing(module_name, module_name):
        load_aggregates(row_classes)  # commits of rows need their keys: a fault would stop the first commit
    rows_of, references_of = module.transform, getattr(module, "references", None)
    return Transform(module.VERSION, rows_of, references_of, row_classes, rows_limit, watch, takes_signals)


def import_transform(module_name: str) -> ModuleType:
    """Import the module of a transform. Raises InvalidTransform with the line at which it fails."""
    from core.transforms.contract.places import importing

    with importing(module_name, module_name):
        return import_module(module_of(module_name))
