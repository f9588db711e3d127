"""`bin/hubledger migrate-diff`: write the next migration of a room, from its classes."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from core.model.release import DEFAULT_TRANSFORM
from core.store.migrations import NAME_LIMIT, migrations_of
from core.transforms.loading import MIGRATIONS, import_transform, load_aggregates, load_transform, room_of
from hubledger.cli.ddl.migration import next_migration
from hubledger.cli.output import Refused, UsageFault, say, say_faults, show_table
from hubledger.cli.try_events import named_transform

PERMISSIONS = "permissions.sql"
_NAME = re.compile(r"[A-Za-z0-9_-]+")

_Transform = Annotated[
    str | None, typer.Option(metavar="NAME", help="A room, such as apps.orders; default: the setting TRANSFORM.")
]
_Named = Annotated[str | None, typer.Option("--name", metavar="NAME", help="The name of the migration: add_note.")]
_Check = Annotated[bool, typer.Option("--check", help="Write nothing, and exit with 1 when something is missing.")]


def migrate_diff(transform: _Transform = None, name: _Named = None, check: _Check = False) -> None:
    """Write the next migration of a room.

    It compares the classes with the migrations for SQLite, and writes the next one for both engines.

    Example: bin/hubledger migrate-diff --transform apps.parcels --name add_note
    """
    if name is not None and (not _NAME.fullmatch(name) or len(name) > NAME_LIMIT):
        raise UsageFault(f"--name {name}: a name has 1 to {NAME_LIMIT} letters of ASCII, digits, _ and -")
    given = named_transform(transform or os.environ.get("TRANSFORM") or DEFAULT_TRANSFORM)
    room = room_of(import_transform(given).__name__)
    if room is None:
        raise Refused(
            f"{given} is in no room: a room is a package with migrations/ or aggregates/, such as apps.orders"
        )
    row_classes = load_transform(given).row_classes
    found = next_migration(row_classes, load_aggregates(row_classes), room.folder)
    file = f"{len(migrations_of(room, 'sqlite')) + 1:04}_{name or found.name_hint}.sql"
    texts = {f"{MIGRATIONS}/{engine}/{file}": text for engine, text in found.texts.items()}
    if found.permissions is not None:
        texts[PERMISSIONS] = found.permissions
    if texts:
        if not check:
            _write(room.folder, texts)
        title = f"{room.name}: missing" if check else f"{room.name}: written"
        statements = {
            file: [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("--")]
            for file, text in texts.items()
        }
        rows = [(file, next(iter(lines), "a comment only")) for file, lines in statements.items()]
        show_table(title, ("file", "it begins with"), rows)
    if found.cannot:
        say_faults("not made, because a person has to decide:", *(f"  {each}" for each in found.cannot))
    elif not texts:
        say(f"{room.name}: the migrations fit the classes; nothing to do")
    if found.later:
        say("", "Left for later:", *(f"  {each}" for each in found.later))
    if texts and not check:
        say("", "Next:", *_commands(given, texts))
    if found.cannot or (check and texts):
        raise typer.Exit(1)


def _write(folder: Path, texts: dict[str, str]) -> None:
    """Write all files or none: each beside its place, and then all into their places."""
    waiting: list[tuple[Path, Path]] = []
    try:
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f".{path.name}.new")
            waiting.append((beside, path))
            beside.write_text(text, encoding="utf-8")
        for beside, path in waiting:
            beside.replace(path)
    finally:
        for beside, _ in waiting:
            beside.unlink(missing_ok=True)


def _commands(transform: str, texts: dict[str, str]) -> Iterator[str]:
    """Yield the commands to run next. They change the store that STORE_CONNECTION names."""
    if any(name != PERMISSIONS for name in texts):
        yield f"  .venv/bin/python -m core.store.migrate --transform {transform}"
        yield "  (make run and make serve migrate their own stores when they start)"
    if PERMISSIONS in texts:
        yield f"  on SQL Server, run {PERMISSIONS} of the room after the migrations (`azd up` does)"
    if any("_wider RENAME TO" in text for text in texts.values()):
        yield "When the app runs, retry the letters of events that the narrower columns refused:"
        yield "  bin/hubledger letters causes"
    if any(" ADD COLUMN " in text for text in texts.values()):
        yield "Rows that are there have nothing in a new column. When the app runs, a replay writes them again:"
        yield "  bin/hubledger replay start"
