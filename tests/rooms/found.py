"""The rooms under test, and their sample events as the logs of a hub."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from core.model.event_keys import under_key
from core.model.events import Event
from core.model.rows import ReferenceKey, Row, row_table
from core.model.transforms import Transform
from core.transforms.loading import TRANSFORM, Room, load_transform, module_of
from local.feed.businesses import UnknownDomain, folder_of, transform_named
from local.feed.event_file import FileEvent, samples_in
from local.feed.sample import read_sample
from local.trials.outcomes import Outcome, event_of, outcome_of

ROOT = Path(__file__).parents[2]
PARTITIONS = 3


def room_names() -> list[str]:
    """Return the room that ROOM names. Without it, those of examples/ and apps/, and the one that TRANSFORM names."""
    if only := os.environ.get("ROOM"):
        return [only]
    places = [path for house in ("examples", "apps") for path in ROOT.glob(f"{house}/*/{TRANSFORM}.py")]
    found = {f"{path.parts[-3]}.{path.parts[-2]}" for path in places}
    named = os.environ.get("TRANSFORM", "")
    return sorted(found | ({_package_of(named)} if module_of(named).endswith(f".{TRANSFORM}") else set()))


def room_named(name: str) -> Room:
    """Return the room of a package. Raises LookupError when there is none."""
    with suppress(ImportError):
        spec = find_spec(name)
        if spec and spec.submodule_search_locations and find_spec(f"{name}.{TRANSFORM}"):
            return Room(name, Path(spec.submodule_search_locations[0]))
    raise LookupError(f"{name} is not a room: a package with a module {TRANSFORM}, such as apps/orders/")


def transform_of(room: Room) -> Transform:
    return load_transform(room.name)


def lines_of(room: Room) -> tuple[FileEvent, ...]:
    """Return the lines with the sample events, as a demo publishes them. Raises UnusableFile."""
    return read_sample(samples_in(room.folder))


def samples_of(room: Room) -> list[Event]:
    return [_numbered(room, number, line) for number, line in enumerate(lines_of(room))]


def outcomes_of(room: Room) -> list[Outcome]:
    transform, known = transform_of(room), dict[ReferenceKey, Row]()
    found = []
    for event in samples_of(room):
        found.append(outcome_of(transform, event, known.values()))
        known.update(_states(found[-1].rows))
    return found


def known_after(room: Room) -> list[Row]:
    return list({key: row for one in outcomes_of(room) for key, row in _states(one.rows)}.values())


def logs_of(room: Room) -> dict[str, list[Event]]:
    transform, samples, groups = transform_of(room), samples_of(room), list[tuple[set[ReferenceKey], list[int]]]()
    for number, (event, outcome) in enumerate(zip(samples, outcomes_of(room), strict=True)):
        keys = {key for key, _ in _states(outcome.rows)}
        with suppress(Exception):  # a sample whose references cannot be read has none
            keys |= set(transform.references_of(event)) if transform.references_of else set()
        joined = [one for one in groups if one[0] & keys]
        numbers = sorted([number, *(each for _, found in joined for each in found)])
        groups = [one for one in groups if one not in joined]
        groups.append((keys.union(*(found for found, _ in joined)), numbers))
    logs: dict[str, list[int]] = {}
    for place, (_, numbers) in enumerate(sorted(groups, key=lambda group: group[1])):
        logs.setdefault(str(place % PARTITIONS), []).extend(numbers)
    lines = lines_of(room)
    return {id: [_numbered(room, at, lines[one]) for at, one in enumerate(sorted(each))] for id, each in logs.items()}


def _numbered(room: Room, number: int, line: FileEvent) -> Event:
    return under_key(event_of(line, number=number), transform_of(room).key_of)


def _package_of(name: str) -> str:
    return module_of(name).removesuffix(f".{TRANSFORM}")


def _states(rows: Sequence[Row]) -> Iterator[tuple[ReferenceKey, Row]]:
    return ((ReferenceKey.of(row), row) for row in rows if row_table(type(row)).key)


def main(name: str) -> int:
    """Print the package of the room that a person names, or one line that says what to name."""
    try:
        full = transform_named(name)
        folder_of(full)
        print(room_named(_package_of(full)).name)
    except (UnknownDomain, LookupError) as unknown:
        print(f"check-room: {unknown}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
