"""The rooms of both examples: every store of the tests has their tables, if the test names no other rooms."""

from pathlib import Path

from core.store.migrations import Migration, load_migrations, migrations_of
from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import Room, room_of


def _room(name: str) -> Room:
    room = room_of(f"{name}.transform")
    assert room is not None
    return room


Rooms = tuple[Room, ...]
EXAMPLES: Rooms = (_room("examples.home_security"), _room("examples.flight_info"))


def migrate_examples(path: Path) -> list[Migration]:
    return migrate_sqlite(path, EXAMPLES)


def all_migrations(engine: str, rooms: Rooms = EXAMPLES) -> list[Migration]:
    return [*load_migrations(engine), *(one for room in rooms for one in migrations_of(room, engine))]
