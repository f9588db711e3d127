"""Settle each event: its rows, nothing, or a dead letter. The only place that catches the errors of a transform."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from core.errors import (
    EarlierLetterOpen,
    InfrastructureFault,
    MissingReference,
    PoisonEvent,
    ProcessDied,
    RowsRefused,
    TooManyRows,
)
from core.model.commits import DeadLetter, ErrorClass, Settled, error_type
from core.model.events import Event, Partition, SequenceNumber, order_key
from core.model.letters import AFTER_FAILURE, LetterPolicy
from core.model.ports import Clock
from core.model.rows import PlacedRow, ReferenceKey, References, refuse_key, refuse_unranked, row_table
from core.model.transforms import WITHOUT_KEY, Transform, counting_unknown_fields
from core.settle.cause import fingerprint_of, raised_in


@dataclass(frozen=True, slots=True)
class OpenLetter:
    """An open letter that later events of its partition key wait for."""

    sequence_number: SequenceNumber
    error_class: ErrorClass


class KeyOrder:
    """The last open letter of each partition key, while a run is settled event by event.

    `discarded` events stay discarded when they fail again, so no event waits for them. `gone` are open letters among
    the events of the run, by number, whose own events cannot be tried.
    """

    __slots__ = ("_discarded", "_gone", "last")

    def __init__(
        self,
        last: Mapping[str, OpenLetter],
        discarded: AbstractSet[SequenceNumber] = frozenset(),
        gone: Iterable[tuple[str, OpenLetter]] = (),
    ) -> None:
        self.last = dict(last)
        self._discarded = discarded
        self._gone = deque(gone)

    def earlier(self, event: Event) -> OpenLetter | None:
        """Return the open letter that an event has to wait for, or None: the event can be tried."""
        while self._gone and self._gone[0][1].sequence_number < event.sequence_number:
            self.last.update([self._gone.popleft()])
        key = order_key(event)
        return None if key is None else self.last.get(key)

    def hold(self, event: Event, earlier: OpenLetter) -> DeadLetter:
        """Return the held letter of an event that waits for an earlier letter of its key."""
        number = earlier.sequence_number
        held = DeadLetter(
            event=event,
            error_class=earlier.error_class,
            error_type=error_type(EarlierLetterOpen),
            error=f"event {number} of the same partition key is an open letter: this event is tried after it",
            fingerprint="held",
            status="held",
            held_behind=number,
        )
        self.note(held)
        return held

    def note(self, letter: DeadLetter) -> None:
        """Let the later events of its key wait for this letter."""
        key, number = order_key(letter.event), letter.event.sequence_number
        if key is not None and number not in self._discarded:
            self.last[key] = OpenLetter(number, letter.error_class)


ERROR_LENGTH = 2_000  # characters of an error that a letter stores


class EventKilled(Exception):
    """An event ended two child processes, or one that hung, which took so many seconds: nothing of its run was settled.

    `Isolation` takes note.
    """

    def __init__(self, number: SequenceNumber, how: str, seconds: float = 0.0) -> None:
        super().__init__(how)
        self.number = number
        self.seconds = seconds


class ChildNotStarted(InfrastructureFault):
    """No child process starts in which to try an event that may kill."""


class ChildNotFree(ChildNotStarted):
    """No child process may try these events now: all are taken, the time is up, or others try or have written them."""


class LetterOfChild(Exception):
    """Carries the letter that a child process made of an event: the error itself stayed there."""

    def __init__(self, letter: DeadLetter) -> None:
        super().__init__(letter.error)
        self.letter = letter


def settle(
    events: Sequence[Event],
    references: References,
    transform: Transform,
    order: KeyOrder | None = None,
    of: Partition | None = None,
) -> Settled:
    """Apply the transform to each event, in order. Every event ends as written, filtered or a letter.

    With an `order`, an event whose partition key has an open letter is held instead. Raises only MemoryError, the
    KeyboardInterrupt of a signal, and the end of a child process: whatever else a transform raises is the outcome of
    its event. `of` is the partition that the watch reports.
    """
    with transform.watch(of, events), counting_unknown_fields() as unknown:
        settled = _settle(events, references, transform, order)
    if transform.key_of is not None and (without := sum(event.own_key is None for event in events)):
        unknown[WITHOUT_KEY] = without
    counted = {name: events for name, events in unknown.items() if not transform.quotes_erased(name)}
    return replace(settled, unknown_fields=counted) if counted else settled


def _settle(events: Sequence[Event], references: References, transform: Transform, order: KeyOrder | None) -> Settled:
    rows_of, limit, most = transform.rows_of, transform.rows_limit, transform.rows_limit + 1
    blocks: dict[type, list[PlacedRow]] = {}
    appenders: dict[type, Callable[[PlacedRow], None]] = {}
    keyed: set[type] = set()
    letters: list[DeadLetter] = []
    filtered = 0
    for event in events:
        if order is not None and not transform.is_erased(event) and (earlier := order.earlier(event)) is not None:
            held = order.hold(event, earlier)
            letters.append(held.without_body() if transform.mentions_erased(event) else held)
            continue
        try:
            made = rows_of(event, references)
            rows = made if type(made) is tuple else tuple(made if type(made) is list else islice(made, most))
            if len(rows) > limit:
                raise TooManyRows(limit)
            for row in rows:
                if type(row) not in appenders:
                    block: list[PlacedRow] = []
                    appenders[type(row)] = _appender(type(row), block, references)
                    blocks[type(row)] = block
                    if row_table(type(row)).key:
                        keyed.add(type(row))
                if keyed and type(row) in keyed:
                    hash(ReferenceKey.of(row))  # a key that cannot be hashed is a fault of this event
                    refuse_unranked(row)
        except BaseException as error:  # any error of a transform is the outcome of this event
            if _ends_the_call(error, transform):
                raise
            letter = dead_letter(event, error, transform)
            if transform.mentions_erased(event, letter.error):
                filtered += 1
                continue
            letters.append(letter)
            if order is not None:
                order.note(letters[-1])
            continue
        if not rows:
            filtered += 1
        ordinal = 0
        for row in rows:
            appenders[type(row)]((event.sequence_number, ordinal, row))
            ordinal += 1  # noqa: SIM113 - enumerate would cost as much as the rest of this loop
    return Settled(blocks, letters, len(events) - filtered - len(letters), filtered)


def scheduled(settled: Settled, policy: LetterPolicy, clock: Clock, now: datetime) -> Settled:
    """Return the outcome with the time of the first retry in each letter, and with or without the bodies."""
    if not settled.letters:
        return settled
    letters = [
        replace(
            letter,
            due_at=now + policy.backoff.pause(1, clock.chance()) if letter.status == "waiting" else None,
            keeps_body=policy.keep_bodies and letter.keeps_body,
        )
        for letter in settled.letters
    ]
    return replace(settled, letters=letters)


def _appender(row_class: type, block: list[PlacedRow], references: References) -> Callable[[PlacedRow], None]:
    """Return a function that takes rows of a class: it adds them to their block, and shows states to later events."""
    if not row_table(row_class).key:
        return block.append

    def keep(placed: PlacedRow) -> None:
        block.append(placed)
        references.learn(placed[2])

    return keep


def reference_keys(
    events: Sequence[Event], transform: Transform, of: Partition | None = None
) -> AbstractSet[ReferenceKey]:
    """Return the keys of the references that a run needs, in the order of its events.

    None for an event whose references cannot be read: its transform then finds no row, and says so.
    """
    references_of = transform.references_of
    keys: dict[ReferenceKey, None] = {}
    if references_of is None:
        return keys.keys()
    with transform.watch(of, events):
        for event in events:
            try:
                given = dict.fromkeys(references_of(event))
                for key in given:
                    if key not in keys:
                        refuse_key(key)
                keys.update(given)
            except BaseException as error:  # settle meets the same fault and makes it a letter
                if _ends_the_call(error, transform):
                    raise
    return keys.keys()


def dead_letter(event: Event, error: BaseException, transform: Transform) -> DeadLetter:
    """Return the letter of an event whose transform raised an error."""
    if isinstance(error, LetterOfChild):
        return error.letter
    error_class = _class_of(error)
    text = (_text_of_error(error, transform) or type(error).__name__)[:ERROR_LENGTH]
    name = error_type(type(error))
    place, status = raised_in(error.__traceback__), AFTER_FAILURE[error_class]
    fingerprint = fingerprint_of(name, text, place)
    return DeadLetter(event, error_class, name, text, fingerprint, status, error_at=place.line)


def _ends_the_call(error: BaseException, transform: Transform) -> bool:
    """Return True for an error that is no outcome of an event: memory ran out, a person ends the program, or a child
    process ended."""
    ends = isinstance(error, (MemoryError, EventKilled, ChildNotStarted))
    return ends or (isinstance(error, KeyboardInterrupt) and transform.takes_signals())


def _text_of_error(error: BaseException, transform: Transform) -> str:
    """Return what an error says, as a text that UTF-8 holds: half of a surrogate pair, which a body can have, becomes
    its escape."""
    try:
        text = str.__str__(str(error))  # a plain text, even if the error returns a subclass of str
        return text.encode("utf-8", "backslashreplace").decode()
    except BaseException as fault:  # an error without a text is still the outcome of this event
        if _ends_the_call(fault, transform):
            raise
        return ""


def _class_of(error: BaseException) -> ErrorClass:
    if isinstance(error, PoisonEvent):
        return "poison"
    if isinstance(error, MissingReference):
        return "reference"
    if isinstance(error, RowsRefused):
        return "refused"
    if isinstance(error, ProcessDied):
        return "crash"
    return "unknown"
