"""The transform that an environment names, and its rooms: their rights, and an event that becomes a row."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import structs

from core.errors import InvalidTransform
from core.model.release import DEFAULT_TRANSFORM
from core.model.rows import References
from core.model.transforms import Transform
from core.settle.settle import settle
from core.transforms.loading import Room, check_transform, load_transform, rooms_of
from infra.hooks.errors import HookRefused
from local.feed.event_file import FileEvent, events_in, samples_in
from local.trials.outcomes import event_of

NAME = "TRANSFORM"
NO_MODULE = "No module named"
NO_PACKAGE = "name the package of that module in requirements.txt, and in requirements-worker.txt if you use the worker"
PERMISSIONS = "permissions.sql"
_GO = re.compile(r"^[ \t]*GO\b[ \t]*\d*[ \t]*;?[ \t]*(?:--.*)?$", re.IGNORECASE | re.MULTILINE)


def name_of(environment: Mapping[str, str]) -> str:
    """Return the name of the transform. An environment that names none has the default one."""
    return environment.get(NAME) or DEFAULT_TRANSFORM


def rooms_in(environment: Mapping[str, str]) -> tuple[Room, ...]:
    """Return the rooms of the environment's transform. Raises HookRefused with every fault of the transform."""
    return rooms_of(transform_in(environment).row_classes)


def transform_in(environment: Mapping[str, str]) -> Transform:
    """Return the environment's transform. Raises HookRefused with every fault of it."""
    name = name_of(environment)
    try:
        check_transform(name)
        return load_transform(name)
    except InvalidTransform as error:
        raise HookRefused(*with_remedy([f"{NAME}={name}: {fault}" for fault in error.faults])) from error


def with_remedy(faults: Sequence[str]) -> list[str]:
    """Return faults, and the action to take where a module is missing."""
    return [*faults, NO_PACKAGE] if any(NO_MODULE in fault for fault in faults) else list(faults)


def rights_of(room: Room) -> tuple[str, ...]:
    """Return the batches of the room's `permissions.sql`, as `GO` parts them. None without the file."""
    path = room.folder / PERMISSIONS
    if not path.is_file():
        return ()
    return tuple(text for text in map(str.strip, _GO.split(path.read_text(encoding="utf-8-sig"))) if text)


def sample_of(transform: Transform) -> tuple[FileEvent, str] | None:
    """Return the first sample event of the rooms that becomes a row without any other event, and its place.

    None when the rooms have no such event.
    """
    for room in rooms_of(transform.row_classes):
        path = samples_in(room.folder)
        for each in events_in(path) if path.is_file() else ():
            event = structs.replace(event_of(each), enqueued_at=datetime.now(UTC))
            if settle([event], References({}), transform).written:
                return each, f"line {each.line} of {room.name}/{path.name}"
    return None
