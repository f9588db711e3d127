"""A new room on the disk: written beside its place, checked there, and renamed into it, whole or not at all."""

import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import invalidate_caches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import mkdtemp

from core.transforms.loading import check_transform, load_aggregates, load_transform
from hubledger.cli.ddl.room import rights_text, room_text
from hubledger.cli.ddl.tables import ENGINES
from hubledger.cli.output import ROOT, Refused
from hubledger.cli.scaffold.design import Design
from hubledger.cli.scaffold.modules import aggregate_text, parts_of, rendered, tests_text, transform_text
from hubledger.cli.scaffold.sample import objects_of
from local.feed.event_file import samples_in
from local.trials.outcomes import event_of, fault_of_rows, outcome_of

_CREATES = re.compile(r"CREATE TABLE\s+(?:IF NOT EXISTS\s+)?(?:hubledger\.)?(\w+)", re.IGNORECASE)
_APPS = '"""The rooms of apps of your own. A release of Hubledger changes nothing here."""\n'


def write_room(design: Design, source: Path | None, instead: Mapping[str, str]) -> tuple[str, ...]:
    """Write the room and return its files. Raises Refused when it exists or an event of `source` does not fit.

    `instead` has the types that the file itself shows for fields of which a person gave the type.
    """
    target = ROOT / "apps" / design.name
    refuse_existing(target)
    with _beside(target) as folder:
        _write(folder, _texts(design))
        with _importable(design.package, folder):
            check_transform(design.package)
            row_classes = load_transform(design.package).row_classes
            aggregates = load_aggregates(row_classes)
            heading = f"-- The tables of {design.package}, as its classes declare them.\n\n"
            tables: dict[str, str | bytes] = {
                f"migrations/{engine}/0001_{design.name}.sql": heading + room_text(row_classes, aggregates, engine)
                for engine in ENGINES
            }
            _write(folder, {**tables, "permissions.sql": rights_text(row_classes, aggregates)})
            _try_events(design, source or samples_in(folder), instead)
        _write(folder, {f"tests/test_{design.name}.py": tests_text(design)})  # of a first sample that fits
        written = tuple(sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()))
        if not (shared := target.parent / "__init__.py").exists():
            shared.write_text(_APPS, encoding="utf-8")
        folder.rename(target)
    return written


def refuse_existing(target: Path) -> None:
    """Raise Refused when something is at the place of a room."""
    if target.exists() or target.is_symlink():
        raise Refused(f"apps/{target.name} exists already: choose a different name, or remove the folder first")


def taken_tables() -> dict[str, str]:
    """Return the names of the tables of Hubledger and of all rooms, in small letters, each with its owner."""
    places = {ROOT / "sql/migrations": "Hubledger"}
    for group in ("apps", "examples"):
        places |= {each: f"{group}/{each.parents[1].name}" for each in ROOT.glob(f"{group}/*/migrations/sqlite")}
    return {
        name.lower(): owner
        for place, owner in places.items()
        for file in sorted(place.glob("*.sql"))
        for name in _CREATES.findall(file.read_text(encoding="utf-8"))
    }


def _texts(design: Design) -> dict[str, str | bytes]:
    texts: dict[str, str | bytes] = {
        "__init__.py": f'"""The room of {design.name}: its transform, tables, aggregates and tests."""\n',
        "transform.py": transform_text(design),
        "aggregates/__init__.py": f'"""The aggregates of {design.name}, one in each module."""\n',
        "tests/__init__.py": "",
        "README.md": rendered(
            "README.md",
            parts_of(design),
            room=design.name,
            package=design.package,
            samples=design.samples_file[0],
            format=design.format.name,
            commands="\n".join(commands_of(design)),
        ),
    }
    if design.at is not None and design.by is not None:
        texts[f"aggregates/{design.aggregate}.py"] = aggregate_text(design, design.at, design.by)
    return {**texts, **dict([design.samples_file]), **design.format.files}


def _try_events(design: Design, source: Path, instead: Mapping[str, str]) -> None:
    """Raise Refused with the first line that is an object and does not become rows which a column can hold."""
    transform = load_transform(design.package)
    for event, octets in design.format.read(source):
        try:
            objects_of(source, octets, event.line, design.each)
        except Refused:
            continue
        found = outcome_of(transform, event_of(event))
        fault = fault_of_rows(transform, found.rows) if found.error is None else str(found.error)
        if fault is None:
            continue
        hint = ""
        for one in (each for each in design.fields if f"`$.{each.name}`" in fault):
            if one.name in instead:
                hint += f"; the lines show {instead[one.name]}, and --field {one.name}:{one.written} was given"
            if one in design.key and one.kind == "text":
                hint += "; a key has no empty text, and no blank at its end"
        raise Refused(f"{source}, line {event.line} does not fit: {fault}{hint}; nothing was written")


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Make a hidden folder beside a place, and remove it unless it was renamed."""
    target.parent.mkdir(exist_ok=True)
    folder = Path(mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not any(target.parent.iterdir()):
            target.parent.rmdir()


@contextmanager
def _importable(package: str, folder: Path) -> Iterator[None]:
    """Let `package` be imported from a folder of a different name."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    invalidate_caches()
    spec = spec_from_file_location(package, folder / "__init__.py", submodule_search_locations=[str(folder)])
    if spec is None:
        raise Refused(f"{folder} cannot be imported")
    sys.modules[package] = module_from_spec(spec)
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        for name in [each for each in sys.modules if each == package or each.startswith(f"{package}.")]:
            del sys.modules[name]


def _write(folder: Path, texts: Mapping[str, str | bytes]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


def commands_of(design: Design) -> tuple[str, ...]:
    """Return the next commands: those that name the package of the format, if it has one, and three more."""
    pin = design.format.pin
    files = [ROOT / name for name in ("requirements.txt", "requirements-worker.txt") if pin]
    lacking = [each.name for each in files if not each.is_file() or pin not in each.read_text(encoding="utf-8").split()]
    return (
        *(f"echo {pin} >> {name}" for name in lacking),
        f"bin/hubledger try --transform {design.package}",
        f"make check-room TRANSFORM={design.package}",
        f"make demo TRANSFORM={design.package} EVENTS=2000",
    )
