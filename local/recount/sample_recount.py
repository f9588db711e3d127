"""The recount of a user's own events: the record, the hub and the store must tell one story.

The record has the lines that were published, and the hub has them in their order. The transform itself, run again over
that order, says which rows and letters each event must have. The store must have exactly these, at the same places.
"""

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core.model.event_keys import under_key
from core.model.events import Event
from core.model.rows import Row, row_table
from core.transforms.loading import load_transform
from local.feed.businesses import ATTEMPTS, Domain
from local.feed.sample import Sample
from local.recount.expected import Expectation, Place, PossibleOutcome
from local.recount.recount import ACCOUNTING, Recounted, bounded, recounting, shown
from local.recount.stored import Appended, Letter, Stored, are_equal, columns_of, key_of, read_log, read_stored

SETTLED = ("resolved", "exhausted")  # the statuses of letters at the end
RETRIED = [("exhausted", each) for each in ("reference", "refused", "unknown")]
_CHECKPOINTS = "SELECT partition_id, sequence_number FROM event_hub_checkpoint"
_RECORDED = "SELECT partition_key, line, SUM(at_least), SUM(at_most) FROM record.event GROUP BY partition_key, line"
_OUTCOMES = """
SELECT partition_id, first_sequence_number, last_sequence_number, written, filtered, dead_lettered, held, absent
FROM batch_ledger WHERE kind = 'batch' ORDER BY partition_id, first_sequence_number
"""


@dataclass(frozen=True, slots=True)
class Settled:
    """An event in the hub, and the outcomes that are possible and that fit what the store has of it."""

    place: Place
    event: Event
    fitting: tuple[PossibleOutcome, ...]
    likeliest: PossibleOutcome

    @property
    def taken(self) -> tuple[PossibleOutcome, ...]:
        """The outcomes that fit, or the likeliest one, so that a difference is not named twice."""
        return self.fitting or (self.likeliest,)


def recount_sample(domain: Domain, hub: Path, store: Path, record: Path) -> list[str]:
    """Return the differences between the published lines, the hub and the store."""
    assert domain.sample is not None
    transform = load_transform(domain.transform, event_key=os.environ.get("EVENT_KEY", ""))
    events = [(partition_id, under_key(event, transform.key_of)) for partition_id, event in read_log(hub)]
    with recounting(store, record) as connection:
        stored = read_stored(connection, transform.row_classes)
        expectation = Expectation(transform, events, stored.letters.keys())
        settled = [_settled(expectation, stored, *each) for each in events]
        checks: list[Recounted] = [
            *ACCOUNTING,
            partial(_hub, domain.sample, events),
            partial(_ends, events),
            lambda _: _letters(settled, stored),
            lambda _: _appended(settled, stored),
            lambda _: _states(settled, stored),
            lambda _: _nowhere({one.place for one in settled}, stored),
            partial(_outcomes, settled, stored),
        ]
        return [difference for check in checks for difference in bounded(check)(connection)]


def _settled(expectation: Expectation, stored: Stored, partition_id: str, event: Event) -> Settled:
    place = (partition_id, int(event.sequence_number))
    letter, appended = stored.letters.get(place), stored.appended.get(place, [])
    possible = list(expectation.of(partition_id, event))
    if letter is None or letter.status == "resolved":
        fitting = [one for one in possible if one.error_class is None and _are_rows(one.rows, appended)]
    else:
        # only the database knows whether it refuses rows
        refused = letter.error_class == "refused"
        fitting = [one for one in possible if one.error_class == letter.error_class or (refused and one.rows)]
    return Settled(place, event, tuple(fitting), possible[0])


def _are_rows(rows: Iterable[Row], appended: Sequence[Appended]) -> bool:
    expected = [(ordinal, row) for ordinal, row in enumerate(rows) if not row_table(type(row)).key]
    return len(expected) == len(appended) and all(
        any(_is_row(ordinal, row, each) for each in appended) for ordinal, row in expected
    )


def _is_row(ordinal: int, row: Row, found: Appended) -> bool:
    is_there = (found.table, found.ordinal) == (row_table(type(row)).name, ordinal)
    return is_there and are_equal(columns_of(row), found.columns)


def _hub(sample: Sample, events: Sequence[tuple[str, Event]], connection: sqlite3.Connection) -> Iterator[str]:
    """Compare the bodies and the keys in the hub with the published lines of the file."""
    in_hub = Counter((event.partition_key, event.body) for _, event in events)
    bodies = {line.line: line.body for line in sample.lines}
    least: Counter[tuple[str | None, bytes]] = Counter()
    most: Counter[tuple[str | None, bytes]] = Counter()
    for key, line, at_least, at_most in connection.execute(_RECORDED):
        least[key, bodies[line]] += at_least
        most[key, bodies[line]] += at_most
    for one in most.keys() | in_hub.keys():
        if not least[one] <= in_hub[one] <= most[one]:
            yield f"hub: it has {in_hub[one]} and not {most[one]} events with key {one[0]!r} and body {shown(one[1])}"


def _ends(events: Sequence[tuple[str, Event]], connection: sqlite3.Connection) -> Iterator[str]:
    """Compare the checkpoint of each partition with the last event in the hub."""
    last = {partition_id: int(event.sequence_number) for partition_id, event in events}
    found = dict(connection.execute(_CHECKPOINTS).fetchall())
    for partition_id in sorted(last.keys() | found.keys()):
        at, end = found.get(partition_id, -1), last.get(partition_id, -1)
        if at != end:
            yield f"checkpoint: partition {partition_id} is at {at}, the last event in the hub is {end}"


def _letters(settled: Sequence[Settled], stored: Stored) -> Iterator[str]:
    for one in settled:
        letter = stored.letters.get(one.place)
        if letter is not None:
            yield from _letter(one, letter)
        elif one.likeliest.error_class and not one.fitting:
            yield f"letters: {_place(one.place)} is none, but the transform says {_error(one.likeliest)}"


def _letter(one: Settled, letter: Letter) -> Iterator[str]:
    where = _place(one.place)
    if letter.body != one.event.body:
        yield f"letters: {where} has the body {shown(letter.body)} instead of {shown(one.event.body)}"
    if letter.partition_key != one.event.key:
        yield f"letters: {where} has the key {letter.partition_key!r} instead of {one.event.key!r}"
    if letter.status not in SETTLED:
        yield f"letters: {where} is {letter.status}"
    elif (letter.status, letter.error_class) in RETRIED and letter.attempts < ATTEMPTS:
        yield f"letters: {where} is exhausted after {letter.attempts} of {ATTEMPTS} attempts"
    if not one.fitting and letter.status != "resolved":
        said = _error(one.likeliest) if one.likeliest.error_class else f"{len(one.likeliest.rows)} rows"
        yield f"letters: {where} is of class {letter.error_class}, but the transform says {said}"


def _appended(settled: Sequence[Settled], stored: Stored) -> Iterator[str]:
    """Compare the appended rows of each event with those of the outcome that is the likeliest."""
    for one in settled:
        letter, found = stored.letters.get(one.place), stored.appended.get(one.place, [])
        if letter is not None and letter.status != "resolved":
            yield from (f"{row.table}: {_place(one.place)} is a letter and also has a row" for row in found)
        elif not one.fitting:
            yield from _differing(one, found)


def _differing(one: Settled, found: Sequence[Appended]) -> Iterator[str]:
    expected = [(at, row) for at, row in enumerate(one.likeliest.rows) if not row_table(type(row)).key]
    for ordinal, row in expected:
        if not any(_is_row(ordinal, row, each) for each in found):
            yield f"{row_table(type(row)).name}: {_place(one.place)}: missing: {shown(row)}"
    for each in found:
        if not any(_is_row(ordinal, row, each) for ordinal, row in expected):
            yield f"{each.table}: {_place(one.place)}: too many: {shown(each.columns)}"


def _states(settled: Sequence[Settled], stored: Stored) -> Iterator[str]:
    """Compare each state with the newest row of its key in a partition that wrote it."""
    newest = _newest(settled, stored)
    for table, found in stored.states.items():
        expected = newest.get(table, {})
        for key in expected.keys() | found.keys():
            candidates, state = expected.get(key, {}), found.get(key)
            if state is None:
                yield f"{table}: missing: {shown(key)}"
            elif not any(are_equal(columns_of(row), state.columns) for row in candidates.get(state.place, ())):
                known = ", ".join(
                    f"{shown(row)} of {_place(place)}" for place, rows in candidates.items() for row in rows
                )
                wanted = f"instead of {known}" if known else "although no event wrote this key"
                yield f"{table}: {shown(state.columns)} of {_place(state.place)} {wanted}"


def _newest(settled: Sequence[Settled], stored: Stored) -> dict[str, dict[tuple, dict[Place, list[Row]]]]:
    """Return by table and key the rows that may stand there: the newest ones of each partition that wrote the key.

    Where several partitions did, a resolved letter may stand there too: it was written after events of the others.
    """
    written: dict[str, dict[tuple, dict[Place, list[Row]]]] = {}
    for one in settled:
        letter = stored.letters.get(one.place)
        if letter is not None and letter.status != "resolved":
            continue
        for outcome in one.taken:
            for table, key, row in _last_of_each(outcome.rows):
                written.setdefault(table, {}).setdefault(key, {}).setdefault(one.place, []).append(row)
    sure = {one.place for one in settled if len(one.taken) == 1}
    for keys in written.values():
        for key, places in keys.items():
            is_ordered = any(row_table(type(row)).newest_by for rows in places.values() for row in rows)
            keys[key] = _greatest(places, sure) if is_ordered else _standing(places, stored)
    return written


def _greatest(places: dict[Place, list[Row]], sure: set[Place]) -> dict[Place, list[Row]]:
    """Return the rows that may be the greatest in the column that orders them: none is below a row that is sure."""
    ranked = {place: [(row_table(type(row)).rank_of(row)[0], place) for row in rows] for place, rows in places.items()}
    least = max((min(ranks) for place, ranks in ranked.items() if place in sure), default=None)
    return {place: rows for place, rows in places.items() if least is None or max(ranked[place]) >= least}


def _standing(places: dict[Place, list[Row]], stored: Stored) -> dict[Place, list[Row]]:
    last = dict(sorted(places))
    many = len(last) > 1
    return {
        place: rows
        for place, rows in places.items()
        if last[place[0]] == place[1] or (many and place in stored.letters)
    }


def _last_of_each(rows: Iterable[Row]) -> Iterator[tuple[str, tuple, Row]]:
    last: dict[tuple[str, tuple], Row] = {}
    for row in rows:
        table = row_table(type(row))
        if table.key:
            known = last.setdefault((table.name, key_of(row)), row)
            last[table.name, key_of(row)] = max(row, known, key=table.rank_of)  # of equal ones the first: the later row
    return ((table, key, row) for (table, key), row in last.items())


def _nowhere(places: set[Place], stored: Stored) -> Iterator[str]:
    """Report letters and rows at places where the hub has no event."""
    yield from (f"letters: {_place(place)} is no event of the hub" for place in stored.letters if place not in places)
    for place, rows in stored.appended.items():
        if place not in places:
            yield f"{rows[0].table}: {_place(place)} is no event of the hub"


def _outcomes(settled: Sequence[Settled], stored: Stored, connection: sqlite3.Connection) -> Iterator[str]:
    """Compare the counts of each commit with the outcomes of its events."""
    kinds = {one.place: _kind(one, stored) for one in settled}
    for partition_id, first, last, *found in connection.execute(_OUTCOMES):
        counted = Counter(kinds.get((partition_id, number), "absent") for number in range(first, last + 1))
        expected = [counted[kind] for kind in ("written", "filtered", "dead_lettered", "held", "absent")]
        if found != expected and not counted["doubtful"]:
            where = f"partition {partition_id}, {first} to {last}"
            yield f"outcomes: {where}: written, filtered, dead-lettered, held, absent are {found} and not {expected}"


def _kind(one: Settled, stored: Stored) -> str:
    if one.place in stored.letters:
        return "dead_lettered"
    kinds = {"written" if outcome.rows else "filtered" for outcome in one.taken}
    return kinds.pop() if len(kinds) == 1 else "doubtful"


def _place(place: Place) -> str:
    return f"{place[0]}/{place[1]}"


def _error(outcome: PossibleOutcome) -> str:
    return f"{outcome.error_class}: {outcome.error}"
