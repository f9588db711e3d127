"""Every script that the store can send: each verb of each store is called with values that all differ.

The verbs are found, not listed. A script that no call sends is found too: `unsent`.
"""

import ast
import importlib
import inspect
import random
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import core
from core.model.events import Stream
from core.settle.partition_store import Partitions
from core.store.database import Database, OneStream
from core.store.queries import load_queries
from core.store.script import Named, OfRows, Outcome, Script
from core.store.sqlite.database import STORE_TIME
from core.store.sqlite.statements import EXACT_FLOAT, ROWS_HASH, many_values, rows_text
from local.explain import OF_THE_OWNER, uses_of
from tests.fakes.rooms import all_migrations
from tests.sql.distinct import Distinct, hints_of
from tests.sql.statements import every_script
from tests.sql.values import EPOCH, ID, ROW_CLASSES

CORE = Path(core.__file__).parent
STORES = [  # the modules that make scripts or read rows: the engine, and the store of each subject
    one
    for of in (
        "store/*.py",
        "*/*store.py",
        "settle/attempts.py",
        "letters/listing.py",
        "letters/redrive.py",
        "ledger/explain.py",
        "incarnations/next_incarnation.py",
        "aggregation/orders.py",
        "worker/ownership.py",
    )
    for one in sorted(CORE.glob(of))
    if one.name != "__init__.py"
]
FILES = {*map(str, STORES)}
SEEDS = range(16)
MOST_CALLS = 60  # of one verb: a page that never ends is enough


@dataclass(frozen=True, slots=True)
class Sent:
    """A script, and whether it is rolled back."""

    script: Script
    is_rehearsed: bool


class Enough(Exception):
    """A verb asks without end, because each answer has a row."""


@dataclass
class Listening:
    """A Database that keeps the scripts. By chance, a question has an answer of one row."""

    chance: random.Random
    sent: list[Sent] = field(default_factory=list)
    calls: int = 0

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self._count()
        if self.chance.random() < (0.1 if statement == "find_stream" else 0.4):
            return []
        columns = connection().execute(text_of(statement), values).description
        is_first = self.chance.random() < 0.5
        return [tuple(answer_of(name, is_first) for name, *_ in columns)]

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._count()
        self.sent.append(Sent(script, rehearse))
        return Outcome(dict.fromkeys((name for one in script.steps for name in (one.keeps, one.counts) if name), 1), [])

    def close(self) -> None:
        return

    def _count(self) -> None:
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise Enough


def answer_of(column: str, is_first: bool) -> Any:
    """Return a value that a column may have; a sum that is the first follows none."""
    if column == "summed_to" and is_first:
        return None
    if column.endswith("_at"):
        return EPOCH.isoformat()
    if column == "levels":
        return "{}"
    return str(ID) if column.endswith(("task_id", "of_task")) else 1


@cache
def every_sent() -> Mapping[str, Sent]:
    """Return every script by a name: those of the verbs, with values that all differ, and those of every shape."""
    shapes = {name: Sent(script, name.startswith("rehearsal ")) for name, script in every_script().items()}
    return {**_called()[0], **shapes}


def sent_by_verbs() -> Mapping[str, Sent]:
    """Return the scripts of the verbs, whose values all differ."""
    return _called()[0]


def unsent() -> list[str]:
    """Return the functions that make a script and were not called, and the statements that change and were not sent."""
    making = {f"{place_in_core(path)}: {name}" for path in STORES for name in makers(path.read_text())}
    sent = {str(step.statement) for one in sent_by_verbs().values() for step in one.script.steps}
    return [*sorted(making - _called()[1]), *sorted(changing() - sent)]


def place_in_core(path: Path) -> str:
    """Return the path of a module as seen from `core/`."""
    return path.relative_to(CORE).as_posix()


def makers(source: str) -> Iterator[str]:
    """Give the qualified names of the functions in a module that make a script."""
    for place, function in functions(ast.parse(source), ""):
        calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
        if any(isinstance(one, ast.Name) and one.id == "Script" for one in calls):
            yield place


def functions(tree: ast.AST, within: str) -> Iterator[tuple[str, ast.AST]]:
    """Give the functions of a module and of its classes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{node.name}.")
        if isinstance(node, ast.FunctionDef):
            yield f"{within}{node.name}", node


def changing() -> set[str]:
    """Return the named statements that change a table, without those that only migrations send."""
    queries = load_queries("sqlserver")
    changed = {name for name, query in queries.items() if any(use.verb != "SELECT" for use in uses_of(query.text))}
    return changed - set(OF_THE_OWNER)


def stores() -> list[type]:
    """Return the classes of the store that take a database or a stream of one, and are no database themselves."""
    found = []
    for path in STORES:
        module = importlib.import_module(f"core.{place_in_core(path).removesuffix('.py').replace('/', '.')}")
        for _, one in inspect.getmembers(module, inspect.isclass):
            is_own = one.__module__ == module.__name__ and not hasattr(one, "run") and one is not OneStream
            if is_own and {Database, OneStream} & set(hints_of(constructor(one)).values()):
                found.append(one)
    return found


@cache
def _called() -> tuple[Mapping[str, Sent], set[str]]:
    """Call every verb; return the scripts by verb and seed, and the functions of the store that ran."""
    sent: dict[str, Sent] = {}
    ran: set[str] = set()
    verbs = {verb: one for one in stores() for _, verb in inspect.getmembers(one, inspect.isfunction)}
    for verb, one in verbs.items():  # one that several stores inherit is called once
        is_own = not verb.__name__.startswith("_") and verb is not Partitions.write  # it runs its caller's script
        for seed in SEEDS if is_own else ():
            for place, script in enumerate(_call(one, verb, seed, ran)):
                sent[f"{one.__name__}.{verb.__name__} of seed {seed}, {place}"] = script
    return sent, ran


def _call(of: type, verb: Callable[..., Any], seed: int, ran: set[str]) -> list[Sent]:
    """Call a verb. An answer need not fit: the scripts before its fault count."""
    database, values = Listening(random.Random(f"{verb.__qualname__} {seed}")), Distinct(seed)
    hints = {name: hint for name, hint in hints_of(verb).items() if name != "return"}
    arguments, store = values.arguments(hints), made(of, database, values)
    with suppress(Exception), noting(ran):
        verb(store, **arguments)
    return database.sent


def made(of: type, database: Database, values: Distinct) -> Any:
    """Return a store over a database."""
    given = {
        Database: database,
        OneStream: OneStream(database, values.of(Stream)),
        Partitions: Partitions(database),
        tuple[type, ...]: ROW_CLASSES,
    }
    hints = hints_of(constructor(of))
    return of(**{name: given.get(hints[name]) or values.of(hints[name], name) for name in needed(of)})


def constructor(of: Any) -> Any:
    """Return the function that fills a new object of a class."""
    return of.__init__


@cache
def needed(of: type) -> tuple[str, ...]:
    """Return the arguments of a class that have no default."""
    parameters = inspect.signature(of).parameters.items()
    return tuple(name for name, one in parameters if one.default is inspect.Parameter.empty)


@contextmanager
def noting(ran: set[str]) -> Iterator[None]:
    """Note the functions of the store that run."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename in FILES:
            ran.add(f"{place_in_core(Path(frame.f_code.co_filename))}: {frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


@cache
def connection() -> sqlite3.Connection:
    """Return an empty embedded database with the tables of all rooms."""
    opened = sqlite3.connect(":memory:")
    opened.create_function(EXACT_FLOAT, 1, lambda value: value)
    opened.create_function(STORE_TIME, 0, EPOCH.isoformat)
    opened.create_function(ROWS_HASH, 1, lambda value: value)
    for migration in all_migrations("sqlite"):
        opened.executescript(migration.text)
    return opened


def text_of(statement: Named) -> str:
    """Return the text of a statement for SQLite."""
    return rows_text(statement) if isinstance(statement, OfRows) else load_queries("sqlite")[statement].text


def bind(script: Script) -> None:
    """Let SQLite compile every step of a script and bind its values; it does nothing to the tables."""
    known: dict[str, Any] = {name: 1 for one in script.steps for name in (one.keeps, one.counts) if name}
    for step in script.steps:
        values = {**step.values, **known}
        for given in [values] if step.many is None else many_values(step, values):
            connection().execute(f"EXPLAIN {text_of(step.statement)}", given)
