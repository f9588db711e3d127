"""The events of a user's room: which file a local run publishes, and by which field its events are keyed."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from core.model.rows import row_table
from core.transforms import load_transform
from core.transforms.contract.whole import check_transform
from core.transforms.rooms import full_name, module_of
from local.feed.domains import HOMES, UnknownDomain, find_domain
from local.feed.sample import Sample, keyed_by, likeliest_key, read_sample
from local.lines import samples_in
from local.processes import APP

# A file may lack what its events refer to: the letters of such events are given up soon. A transform that fails for
# every event stops its partitions only for a moment.
ATTEMPTS = 6
SETTINGS = {"DEAD_LETTER_ATTEMPTS": str(ATTEMPTS), "FUSE_PATIENCE": "3"}


def sample_of(options: argparse.Namespace) -> Sample | None:
    """Return the sample that a run publishes: the file that is named, or that of a room; None for our businesses.

    Without a named field, the key is the first key column of a state that most lines have as a field, because the rows
    of a state are in order only within a partition. Raises UnusableFile, UnknownDomain and InvalidTransform.
    """
    path: Path | None = options.events_from
    if options.transform is None and path is not None:
        raise UnknownDomain(f"name the room of the events in {path}: {_known_rooms()}")
    name = options.transform = transform_named(options.transform or HOMES.name)
    if path is None and _is_business(name):
        return None
    folder = folder_of(name)
    path = path or samples_in(folder)
    check_transform(name)
    lines = read_sample(path)
    key = options.key or likeliest_key(lines, _key_columns(name))
    return keyed_by(path, lines, key) if key else Sample(path, lines)


def _is_business(name: str) -> bool:
    try:
        find_domain(name)
    except UnknownDomain:
        return False
    return True


def transform_named(name: str) -> str:
    """Return the full name of a transform, of which a person may have typed the last part."""
    return find_domain(name).transform if _is_business(name) else full_name(name)


def folder_of(name: str) -> Path:
    """Return the folder of a room, or of a module. Raises UnknownDomain."""
    try:
        spec = find_spec(module_of(name))
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise UnknownDomain(f"there is no room {name}: name home_security, flight_info or {_known_rooms()}")
    return Path(spec.origin).parent


def _known_rooms() -> str:
    rooms = sorted(f"apps.{path.parent.name}" for path in (APP / "apps").glob("*/transform.py"))
    return ", ".join(rooms) or "one like apps.orders"


def _key_columns(name: str) -> list[str]:
    """Return the first key column of each state of a transform, in their order."""
    tables = map(row_table, load_transform(name).row_classes)
    return list(dict.fromkeys(table.key[0] for table in tables if table.key))
