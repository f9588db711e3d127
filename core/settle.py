"""Settle each event: its rows, nothing, or a dead letter. The one place that catches what a transform raises."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from traceback import extract_tb

from core.commits import DeadLetter, ErrorClass, LetterStatus, Settled
from core.errors import MissingReference, PoisonEvent, RowsRefused
from core.events import Event
from core.rows import PlacedRow, ReferenceKey, References, row_table
from core.transforms import Transform

ERROR_LENGTH = 2_000  # characters of an error that a letter keeps
_STATUS: dict[ErrorClass, LetterStatus] = {
    "poison": "exhausted",
    "reference": "waiting",
    "refused": "waiting",
    "unknown": "waiting",
}
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


def settle(events: Sequence[Event], references: References, transform: Transform) -> Settled:
    """Apply the transform to each event, in order; every event ends as written, filtered or a letter."""
    rows_of = transform.rows_of
    blocks: dict[type, list[PlacedRow]] = {}
    learned: set[type] = set()
    letters: list[DeadLetter] = []
    filtered = 0
    for event in events:
        try:
            rows = tuple(rows_of(event, references))
            for row in rows:
                if type(row) not in blocks:
                    _open_block(type(row), blocks, learned)
        except Exception as error:  # noqa: BLE001 - whatever a transform raises is this event's outcome
            letters.append(dead_letter(event, error))
            continue
        if not rows:
            filtered += 1
        number = event.sequence_number
        for ordinal, row in enumerate(rows):
            blocks[type(row)].append((number, ordinal, row))
            if type(row) in learned:
                references.learn(row)
    return Settled(blocks, letters, len(events) - filtered - len(letters), filtered)


def _open_block(row_class: type, blocks: dict[type, list[PlacedRow]], learned: set[type]) -> None:
    if row_table(row_class).key:
        learned.add(row_class)
    blocks[row_class] = []


def reference_keys(events: Iterable[Event], transform: Transform) -> set[ReferenceKey]:
    """The reference rows that a run needs; an event that cannot say needs none, for its transform fails as well."""
    references_of = transform.references_of
    keys: set[ReferenceKey] = set()
    if references_of is None:
        return keys
    for event in events:
        try:
            keys.update(references_of(event))
        except Exception:  # noqa: BLE001 - settle meets the same fault and keeps it
            continue
    return keys


def dead_letter(event: Event, error: Exception) -> DeadLetter:
    """The letter of an event whose transform raised; MemoryError is no event's fault and goes on."""
    if isinstance(error, MemoryError):
        raise error
    error_class = _class_of(error)
    text = (str(error) or type(error).__name__)[:ERROR_LENGTH]
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    return DeadLetter(event, error_class, name, text, _fingerprint(name, text, error), _STATUS[error_class])


def _class_of(error: Exception) -> ErrorClass:
    if isinstance(error, PoisonEvent):
        return "poison"
    if isinstance(error, MissingReference):
        return "reference"
    if isinstance(error, RowsRefused):
        return "refused"
    return "unknown"


def _fingerprint(name: str, text: str, error: Exception) -> str:
    """The same for the same fault of other events: names of the frames, and the text less its values."""
    frames = [frame.name for frame in extract_tb(error.__traceback__)]
    cause = "|".join([name, _VARYING.sub("?", text), *frames[1:]])
    return hashlib.sha256(cause.encode("utf-8", "replace")).hexdigest()[:16]
