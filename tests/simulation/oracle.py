"""The oracle: from the hub's log and the acts of operators it computes what the tables must hold at the end.

It shares no code with the product: it has its own statements and its own model of the transforms.
"""

import json
import sqlite3
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from hmac import new as keyed
from itertools import combinations, pairwise
from typing import Any, NamedTuple

from tests.simulation.expected import Effect, effects, forgetting

Sql = Callable[..., list[Any]]
Place = tuple[int, str]  # stream and partition


@dataclass(frozen=True)
class Truth:
    """The log of one partition in one incarnation. `gone` numbers left the hub, `lost` ones uncommitted.

    Nothing is committed to a closed incarnation: `last` is None, and its letters stay as they are.
    """

    stream_id: int
    partition_id: str
    events: Mapping[int, Any]
    last: int | None
    gone: set[int]
    lost: set[int]

    @property
    def place(self) -> Place:
        return self.stream_id, self.partition_id


class Range(NamedTuple):
    commit: int
    kind: str
    first: int
    last: int
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    version: str
    invocation: str

    @property
    def numbers(self) -> range:
        return range(self.first, self.last + 1)


# One attempt at a letter, and one letter in its present state.
Attempt = namedtuple("Attempt", "attempt kind status commit touched_by why")
Letter = namedtuple(
    "Letter",
    "number body body_kept error_class version status attempts due_at settled_at replayed_in held_behind",
)
READ = {  # the columns of each table after the place, and their order
    "event_hub_checkpoint": "sequence_number, commit_number",
    "partition_anchor": "sequence_number",
    "batch_ledger": "commit_number, kind, first_sequence_number, last_sequence_number, written, filtered,"
    " dead_lettered, held, absent, transform_version, invocation_id",
    "event_hub_dead_letter": "sequence_number, body, body_kept, error_class, transform_version, status, attempts,"
    " due_at, settled_at, replay_commit_number, held_behind",
    "dead_letter_attempt": "sequence_number, attempt, kind, status, commit_number, touched_by, (SELECT s.why FROM"
    " sim_attempt AS s WHERE (s.stream_id, s.partition_id, s.sequence_number, s.attempt) = (a.stream_id,"
    " a.partition_id, a.sequence_number, a.attempt))",
    "sequence_gap": "first_sequence_number, last_sequence_number, status",
    "sensor_reading": "sequence_number, commit_number, 'sensor_reading', ordinal, home_id, sensor_id, kind, state, ppm,"
    " observed_at",
    "home_alert": "sequence_number, commit_number, 'home_alert', ordinal, home_id, sensor_id, kind, ppm, observed_at",
}
TOTALS = "commits, {0}written, {0}filtered, {0}dead_lettered, {0}held, {0}absent"


# Of each partition of a replay: the numbers of its task, the counts in its report, and the ranges that are gone.
PROGRESS = """
    SELECT p.task_id, t.stream_id, p.part, p.first_sequence_number, p.position, p.report ->> 'written',
           p.report ->> 'filtered', p.report ->> 'dead_lettered', p.report ->> 'gone_ranges', p.last_sequence_number,
           p.report ->> 'events', p.report ->> 'gone'
      FROM task_part AS p JOIN task AS t USING (task_id) WHERE t.kind = 'replay'
"""


class Books:
    """All tables of a database at rest, by partition."""

    def __init__(self, sql: Sql) -> None:
        def read(table: str, make: Callable[..., Any], columns: str = "", order: str = "3") -> dict[Place, list[Any]]:
            found: dict[Place, list[Any]] = defaultdict(list)
            statement = f"SELECT stream_id, partition_id, {columns or READ[table]} FROM {table} AS a ORDER BY {order}"
            for stream_id, partition_id, *values in sql(statement):
                found[stream_id, partition_id].append(make(*values))
            return found

        def row(number: int, commit: int, *row: Any) -> tuple[int, int, tuple[Any, ...]]:
            return number, commit, row

        self.checkpoints = read("event_hub_checkpoint", _values)
        totals = f"first_sequence_number, {TOTALS.format('')}, letters"
        self.totals = read("event_hub_checkpoint", _values, totals)
        self.totals_of_commits = read("batch_ledger", _after, f"commit_number, total_{TOTALS.format('total_')}")
        self.anchors = read("partition_anchor", int)
        self.ledger: dict[Place, list[Range]] = read("batch_ledger", Range)
        self.letters: dict[Place, list[Any]] = read("event_hub_dead_letter", Letter)
        self.attempts = read("dead_letter_attempt", lambda number, *one: (number, Attempt(*one)), order="3, 4")
        self.gaps = read("sequence_gap", _values)
        self.rows = read("sensor_reading", row)
        for place, rows in read("home_alert", row).items():
            self.rows[place] += rows
        self.homes = sql("SELECT home_id, armed, stream_id, partition_id, sequence_number FROM home")
        self.keys_of_replays = keys_of_replays(sql)
        self.gone_in_replays: dict[Place, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for job_id, stream_id, id, *_, ranges, _, _, _ in sql(PROGRESS):
            self.gone_in_replays[stream_id, id][job_id] = gone_numbers(ranges)


def keys_of_replays(sql: Sql) -> dict[str, set[str]]:
    found = sql("SELECT task_id, keys FROM sim_replay")  # as they were asked: an erasure takes subjects away
    return {job_id: set(json.loads(keys)) for job_id, keys in found if keys is not None}


class Tombstone(NamedTuple):
    place: int
    subject: str
    at: datetime
    is_done: bool  # its erasure went to its end


class Forgotten:
    """The erasures of a world, and which of them stood at each commit. `secrets` are all keys of the hashes."""

    def __init__(self, sql: Sql, subjects: Iterable[str], secrets: Iterable[str]) -> None:
        names = {
            keyed(one.encode(), subject.encode(), sha256).hexdigest(): subject
            for subject in subjects
            for one in secrets
        }
        found = sql("SELECT place, subject_hash, erased_at, status FROM sim_tombstone, task WHERE task_id = erased_by")
        self.tombstones = [
            Tombstone(place, names[name], datetime.fromisoformat(at), status == "done")
            for place, name, at, status in found
        ]
        self._commits = {
            (stream_id, id, number): last
            for stream_id, id, number, last in sql("SELECT * FROM sim_commit")
            if self.tombstones
        }
        self.ever = {one.subject for one in self.tombstones}

    def at(self, place: Place, commit: int, event: Any) -> set[str]:
        """Return the subjects of which a commit makes nothing of an event."""
        if not self.tombstones:
            return set()
        last = self._commits[*place, commit]
        return {one.subject for one in self.tombstones if one.place <= last and event.enqueued_at <= one.at}

    def gone(self, event: Any) -> set[str]:
        """Return the subjects of which nothing of an event is left."""
        return {one.subject for one in self.tombstones if one.is_done and event.enqueued_at <= one.at}

    def left(self, rows: Iterable[tuple[Any, ...]], event: Any) -> set[tuple[Any, ...]]:
        """Return the rows of an event that may be left: an erasure that was cancelled has come to some of them."""
        gone = self.gone(event)
        others = {one.subject for one in self.tombstones if event.enqueued_at <= one.at} - gone
        return {
            tuple(sorted(row for row in rows if row[2] not in {*gone, *some}))
            for count in range(len(others) + 1)
            for some in combinations(sorted(others), count)
        }

    def done(self, truths: Sequence[Truth]) -> dict[str, list[tuple[int, str, int]]]:
        """Return the subjects whose erasures are all done, with the places of the events that reached the hub later."""
        logs = [(truth, event) for truth in truths for event in truth.events.values()]
        last = {one.subject: one for one in self.tombstones}
        return {
            subject: [(*truth.place, number_of(event)) for truth, event in logs if subject not in self.gone(event)]
            for subject in sorted(self.ever)
            if last[subject].is_done
        }

    def copy_without(
        self, later: Iterable[tuple[int, str, int]], copy_to: Callable[[sqlite3.Connection], None]
    ) -> sqlite3.Connection:
        """Return a copy of a database without the rows of some events, and without the notes of the watch."""
        copied, later = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False), list(later)
        copy_to(copied)
        kept = copied.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('trigger', 'table')").fetchall()
        for name, kind in kept:
            if name.startswith("sim_"):
                copied.execute(f"DROP {kind} IF EXISTS {name}")
        for table in OF_EVENTS:
            place = "(stream_id, partition_id, sequence_number)"
            copied.executemany(f"DELETE FROM {table} WHERE {place} = (?, ?, ?)", later)
        copied.executemany(
            "DELETE FROM replay_diff WHERE task_id IN (SELECT task_id FROM task WHERE stream_id = ?)"
            " AND (partition_id, sequence_number) = (?, ?)",
            later,
        )
        return copied

    def search(self, copy_to: Callable[[sqlite3.Connection], None], truths: Iterable[Truth], texts: str) -> None:
        """Search the bytes of a database, and some texts, for each subject whose erasures are all done.

        Rows of events that reached the hub later are left out.
        """
        for subject, later in self.done(list(truths)).items():
            copied = self.copy_without(later, copy_to)
            kept = copied.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            copied.execute(
                "UPDATE task SET asked = '' WHERE kind = 'erasure' AND status IN ('planned', 'running', 'paused')"
            )
            copied.execute("VACUUM")
            found = subject.encode() in copied.serialize()
            where = [
                (table, row)
                for (table,) in kept
                if found
                for row in copied.execute(f"SELECT * FROM {table}")
                if subject in repr(row)
            ]
            copied.close()
            assert not found, (subject, "was erased, but the database has it", where)
            assert later or subject not in texts, (subject, "was erased, but an answer has it")


OF_EVENTS = (
    *("sensor_reading", "home_alert", "home", "event_hub_dead_letter", "dead_letter_attempt"),
    *("retracted_row", "staged_event"),
)


def number_of(event: Any) -> int:
    return int(event.sequence_number)


def _values(*values: Any) -> tuple[Any, ...]:
    return values


def _after(_: int, *values: Any) -> tuple[Any, ...]:
    return values


def gone_numbers(ranges: str) -> set[int]:
    """Return the numbers of a JSON array of {first, last}."""
    return {number for one in json.loads(ranges) for number in range(one["first"], one["last"] + 1)}


SETTLED = ("resolved", "exhausted", "discarded")
GONE = "the event left the hub"


@dataclass(frozen=True)
class Touch:
    """A commit that tried an event, and whether the event became rows or nothing."""

    by: Range
    succeeded: bool


@dataclass(frozen=True)
class Case:
    """One partition in one incarnation: its log, its absent numbers, and the commits that tried each event."""

    truth: Truth
    absent: set[int]
    touches: dict[int, list[Touch]]


def check_balance(truth: Truth, books: Books) -> set[int]:
    """Check that the batches tile [anchor, end of the log], each number with one outcome. Return the absent ones."""
    place, ranges = truth.place, books.ledger[truth.place]
    batches = [one for one in ranges if one.kind == "batch"]
    (anchor,) = books.anchors[place] or [0]
    numbers = [number for one in batches for number in one.numbers]
    last = max(numbers, default=anchor - 1) if truth.last is None else truth.last
    assert numbers == list(range(anchor, last + 1)), (place, "the batches do not tile the log", anchor, batches)
    if batches:
        assert books.checkpoints[place] == [(last, len(ranges))], (place, books.checkpoints[place], last)
    assert [one.commit for one in ranges] == list(range(1, len(ranges) + 1)), (place, "commits do not count on")
    is_open = any(status == "open" for *_, status in books.gaps[place])
    assert truth.last is None or not is_open, (place, "an open gap", books.gaps[place])
    absent = [n for first, last, status in books.gaps[place] if status == "absent" for n in range(first, last + 1)]
    assert len(absent) == len(set(absent)), (place, "absent twice")
    assert set(absent) <= truth.lost, (place, "absent, but the hub had them", set(absent) - truth.lost)
    first_letters = {one.number for one in books.letters[place] if one.replayed_in is None}
    for one in batches:
        assert one.absent == len(set(one.numbers) & set(absent)), (place, "absent in", one)
        letters = one.dead_lettered + one.held
        assert letters == len(set(one.numbers) & first_letters), (place, "letters of", one)
        assert one.written + one.filtered + letters + one.absent == len(one.numbers), (place, one)
    return set(absent)


def check_totals(truth: Truth, books: Books) -> None:
    """Check that each commit has the totals of all batches up to it, and the checkpoint those of its newest commit."""
    place, found = truth.place, []
    totals: tuple[int, ...] = (0,) * 6
    for one in books.ledger[place]:
        if one.kind == "batch":
            own = (1, one.written, one.filtered, one.dead_lettered, one.held, one.absent)
            totals = tuple(total + count for total, count in zip(totals, own, strict=True))
        found.append(totals)
    assert books.totals_of_commits[place] == found, (place, "totals of commits")
    if found:
        (anchor,) = books.anchors[place] or [0]
        assert books.totals[place] == [(anchor, *totals, len(books.letters[place]))], (place, "totals", totals)


def check_letters(truth: Truth, books: Books) -> None:
    made: dict[int, list[Any]] = defaultdict(list)
    for number, attempt in books.attempts[truth.place]:
        made[number].append(attempt)
    for letter in books.letters[truth.place]:
        where = (truth.place, letter)
        assert truth.last is None or (letter.status in SETTLED and letter.due_at is None), where
        event = truth.events[letter.number]
        assert letter.body == (event.body if letter.body_kept else b""), where
        own = made.pop(letter.number, [])
        _check_attempts(letter, own, where)
        _check_status(letter, own, books.ledger[truth.place], where)
    assert not made, (truth.place, "attempts of no letter", made)


def _check_attempts(letter: Any, made: list[Any], where: object) -> None:
    assert [one.attempt for one in made] == list(range(1, len(made) + 1)), where
    assert len({one.touched_by for one in made}) == len(made), (where, made)
    count, held_again = 1, ("free", "discard") if letter.held_behind is not None else ("free",)
    for before, one in pairwise([Attempt(0, "batch", "waiting", None, "", None), *made]):
        # A replay may hold a resolved letter, and leaves no attempt then; that letter is freed or discarded.
        may_follow = {"resolved": ("replay", *held_again), "discarded": ("replay",)}
        assert one.kind in may_follow.get(before.status, (one.kind,)), (where, made)
        if one.kind == "requeue":
            count = 0
        elif one.kind == "replay" and one.status != "resolved":
            count = 1
        elif one.kind == "retry" and not (one.why or "").startswith(GONE):
            count += 1
    was_held = letter.held_behind is not None or any(one.kind == "free" for one in made)
    assert letter.attempts == count or (was_held and letter.attempts < count), (where, made)


def _check_status(letter: Any, made: list[Any], ledger: list[Range], where: object) -> None:
    """A letter stands where its last attempt left it, unless it is claimed, or a later replay holds it again.

    Such a replay leaves no attempt. The letter is freed or discarded later. Only in a closed stream it stays held.
    """
    if made:
        is_replayed = any(one.kind == "replay" and one.commit > (made[-1].commit or 0) for one in ledger)
        possible = (made[-1].status, "retrying", *["held"] * is_replayed)
        assert letter.status in possible, (where, made)


def check_retries(truth: Truth, books: Books) -> None:
    of_commit: dict[int | None, list[tuple[int, Any]]] = defaultdict(list)
    for number, one in books.attempts[truth.place]:
        if one.kind == "retry":
            of_commit[one.commit].append((number, one))
    for kept in books.ledger[truth.place]:
        if kept.kind != "retry":
            continue
        assert kept.commit in of_commit, (truth.place, "a retry without attempts", kept)
        own = of_commit.pop(kept.commit)
        resolved = sum(one.status == "resolved" for _, one in own)
        assert (kept.first, kept.last) == (own[0][0], own[-1][0]), (truth.place, kept)
        assert (kept.written + kept.filtered, kept.dead_lettered) == (resolved, len(own) - resolved), (kept, own)
    assert not of_commit, (truth.place, "attempts of no commit", of_commit)


def touches_of(truth: Truth, books: Books, absent: set[int]) -> dict[int, list[Touch]]:
    made: dict[int, list[Any]] = defaultdict(list)
    for number, one in books.attempts[truth.place]:
        if not (one.why or "").startswith(GONE):
            made[number].append(one)
    born = {one.number: one.replayed_in or 0 for one in books.letters[truth.place]}
    gone = books.gone_in_replays[truth.place]
    found: dict[int, list[Touch]] = defaultdict(list)
    for kept in books.ledger[truth.place]:
        for number in kept.numbers:
            own = [one for one in made[number] if (one.commit, one.kind) == (kept.commit, kept.kind)]
            if kept.kind == "batch" and number not in absent:
                found[number].append(Touch(kept, born.get(number) != 0))
            elif own:
                assert kept.kind != "replay" or _has_key(truth, number, kept, books), (truth.place, number, kept)
                found[number].append(Touch(kept, own[-1].status == "resolved"))
            elif kept.kind == "replay" and number not in gone[kept.invocation] and _has_key(truth, number, kept, books):
                found[number].append(Touch(kept, _succeeded_unseen(kept, born.get(number), made[number])))
    return found


def _has_key(truth: Truth, number: int, kept: Range, books: Books) -> bool:
    keys = books.keys_of_replays.get(kept.invocation)
    return keys is None or truth.events[number].partition_key in keys


def _succeeded_unseen(kept: Range, born: int | None, made: list[Any]) -> bool:
    """Return True when a replay that left no attempt wrote or filtered an event.

    It leaves none when the event had no letter, or a resolved one. A replay whose event fails again leaves none either
    when the letter was discarded or held. A held letter is freed or discarded later.
    """
    if born is None or born > kept.commit:
        return True
    before = [one.attempt for one in made if one.commit is not None and one.commit < kept.commit]
    if not before or made[before[-1] - 1].status != "resolved":
        return False
    return not any(one.kind in ("free", "discard") for one in made[before[-1] :][:1])


def check_rows(case: Case, books: Books, homes: "Homes") -> None:
    """Check that every event has exactly the rows of the last commit that tried it, or a letter of a possible class."""
    place = case.truth.place
    rows: dict[int, list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
    for number, commit, row in books.rows[place]:
        rows[number].append((commit, row))
    letters = {one.number: one for one in books.letters[place]}
    for number, event in case.truth.events.items():
        own, letter, touches = rows.pop(number, []), letters.pop(number, None), case.touches[number]
        where = (place, number, event.body, letter, own, touches)
        if not touches:
            assert not own and letter is None, (where, "nothing may stand here")
        elif letter is not None and letter.status != "resolved":
            assert not own, (where, "rows beside an open letter")
            classes = {one.letter for touch in touches for one in homes.effects(event, touch, case.truth)}
            last = {one.letter for one in homes.effects(event, touches[-1], case.truth)}
            possible = classes if letter.status == "discarded" else last
            was_tried = letter.attempts > 0  # a held one that was not has the class of the letter that it waited for
            assert not was_tried or letter.error_class in possible | {"crash"}, (where, possible)
        else:
            assert all(commit == touches[-1].by.commit for commit, _ in own), (where, "rows of an earlier commit")
            found = homes.effects(event, touches[-1], case.truth)
            possible_rows = {
                rows for one in found if one.letter is None for rows in homes.forgotten.left(one.rows, event)
            }
            assert tuple(sorted(row for _, row in own)) in possible_rows, (where, possible_rows)
    assert not rows and not letters, (place, "rows or letters of no event", rows, letters)


def check_order(case: Case, forgotten: Forgotten) -> None:
    """Check that the events of a key became rows in the order of the hub. A replay may write them again."""
    tried = [touch.by for touches in case.touches.values() for touch in touches]
    if any(by.kind == "replay" for by in tried):
        return
    applied: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, event in case.truth.events.items():
        commits = [
            touch.by.commit
            for touch in case.touches[number]
            if touch.succeeded and not forgotten.at(case.truth.place, touch.by.commit, event) & words_of(event)
        ]
        if event.partition_key is not None:
            applied[event.partition_key] += [(commit, number) for commit in commits]
    for key, found in applied.items():
        numbers = [number for _, number in sorted(found)]
        assert numbers == sorted(numbers), (case.truth.place, key, "out of order", sorted(found))


def check_counts(case: Case, books: Books, homes: "Homes") -> None:
    """Check that each batch counts as written and filtered the events of which its transform makes rows or none."""
    counts: dict[int, list[set[str]]] = defaultdict(list)
    for number, event in case.truth.events.items():
        for touch in case.touches[number][:1]:
            found = {
                one.outcome for one in homes.effects(event, touch, case.truth) if touch.succeeded and not one.letter
            }
            counts[touch.by.commit] += [found] if touch.succeeded else []
            may_differ = homes.forgotten.at(case.truth.place, touch.by.commit, event) & words_of(event)
            is_one = len(found) == touch.succeeded or (touch.succeeded and found and may_differ)
            assert is_one, (case.truth.place, number, event.body, touch, found)
    for kept in books.ledger[case.truth.place]:
        outcomes = counts[kept.commit]
        if kept.kind == "batch":
            assert len(outcomes) == kept.written + kept.filtered, kept
            sure, possible = (
                sum(test(one) for one in outcomes)
                for test in (lambda one: one == {"written"}, lambda one: "written" in one)
            )
            assert sure <= kept.written <= possible, kept


@dataclass(frozen=True)
class Registration:
    """An event that set a home. `is_steady`: it never fails. `is_by_replay`: only replays have set it. `is_gone`: an
    erasure took it away."""

    place: Place
    number: int
    armed: int
    is_steady: bool
    is_by_replay: bool
    is_gone: bool


class Homes:
    """The registrations of homes: those in the table at the end, and those that an event can have seen."""

    def __init__(self, cases: Iterable[Case], books: Books, forgotten: Forgotten) -> None:
        self.forgotten = forgotten
        self._standing = {home: (armed, (stream_id, id), at) for home, armed, stream_id, id, at in books.homes}
        self._set: dict[str, list[Registration]] = defaultdict(list)
        for case in cases:
            for number, event in case.truth.events.items():
                verb, *words = event.body.decode().split()
                setting = [
                    one.by.kind
                    for one in case.touches[number]
                    if one.succeeded and not forgotten.at(case.truth.place, one.by.commit, event) & words_of(event)
                ]
                if verb in ("home", "fixhome") and setting:
                    by_others = [kind for kind in setting if kind != "replay"]
                    is_steady = verb == "home" and "batch" in by_others
                    is_gone = words[0] in forgotten.gone(event)
                    one = Registration(case.truth.place, number, int(words[1]), is_steady, not by_others, is_gone)
                    self._set[words[0]].append(one)

    def effects(self, event: Any, touch: Touch, truth: Truth) -> set[Effect]:
        body, at = event.body.decode(), event.enqueued_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        number, seen = event.sequence_number, self._seen(body, event.sequence_number, touch.by, truth)
        subjects = self.forgotten.at(truth.place, touch.by.commit, event)
        found = effects(body, number, at, touch.by.version, seen)
        words = words_of(event)
        return {forgetting(one, words, subjects, event.partition_key) for one in found} if subjects else found

    def check(self) -> None:
        """Check that each home has its newest registration."""
        expected = {home: self._possible(home, found) for home, found in self._set.items()}
        wrong = {home: one for home, one in self._standing.items() if one not in expected.pop(home, [])}
        missing = {home: one for home, one in expected.items() if one and not self._may_be_gone(home)}
        assert not wrong and not missing, ("states", wrong, missing)

    def _may_be_gone(self, home: str) -> bool:
        """Return True when a cancelled erasure may have deleted the state of a home."""
        return any(one.subject == home and not one.is_done for one in self.forgotten.tombstones)

    def _possible(self, home: str, found: list["Registration"]) -> list[tuple[int, Place, int]]:
        """Return the possible registrations: the newest, unless only a replay set it over a different stream's.

        A replay never replaces a state of a different partition or stream.
        """
        found = [one for one in found if not one.is_gone]
        if not found or self._may_be_gone(home):
            return [(one.armed, one.place, one.number) for one in found]
        newest = max(found, key=lambda one: (one.place, one.number))
        others = [one for one in found if one.place != newest.place or not one.is_by_replay]
        return [(one.armed, one.place, one.number) for one in ([newest, *others] if newest.is_by_replay else [newest])]

    def _seen(self, body: str, number: int, by: Range, truth: Truth) -> set[int | None]:
        """Return the states of a home that an event can have seen: one in a batch when only batches set the home."""
        verb, *words = body.split()
        if verb != "look":
            return {None}
        registered = self._set.get(words[0], [])
        if (
            by.kind == "batch"
            and words[0] not in self.forgotten.ever
            and all(one.is_steady and one.place == truth.place for one in registered)
        ):
            before = [one.armed for one in registered if one.number < number]
            return {before[-1] if before else None}
        return {None, *(one.armed for one in registered)}


def check_remembered(sql: Sql) -> None:
    """Check that every appended row that was ever committed exists, or was retracted by one replay."""
    key = "stream_id, partition_id, sequence_number, ordinal, commit_number"
    written = sorted(sql(f"SELECT table_name, {key} FROM sim_row"))
    live = [one for table in ("sensor_reading", "home_alert") for one in sql(f"SELECT '{table}', {key} FROM {table}")]
    copies = key.replace("commit_number", "row_commit_number")
    taken = sql(f"SELECT table_name, {copies} FROM retracted_row WHERE table_name <> 'home'")
    assert sorted([*live, *taken]) == written, "a row is lost or doubled"


def check_gone(sql: Sql, truths: Iterable[Truth]) -> None:
    """Check that letters and replays call an event gone only if it has left the stream's hub."""
    gone = {truth.place: truth.gone for truth in truths}
    named = [
        *sql(f"SELECT stream_id, partition_id, sequence_number FROM dead_letter_attempt WHERE why LIKE '{GONE}%'"),
        *((*row[1:3], number) for row in sql(PROGRESS) for number in gone_numbers(row[8])),
    ]
    wrong = [(stream_id, id, number) for stream_id, id, number in named if number not in gone[stream_id, id]]
    assert wrong == [], ("called gone, but the hub had them", wrong)


def check_replays(sql: Sql, truths: Iterable[Truth]) -> None:
    """Check the pieces of each job, and its counts against its commits and the log."""
    logs = {truth.place: truth.events for truth in truths}
    keys_of = keys_of_replays(sql)
    reworded = {
        id for (id,) in sql("SELECT task_id FROM sim_replay JOIN task USING (task_id) WHERE asked ->> 'keys' <> keys")
    }
    for job_id, status, is_dry_run in sql("SELECT task_id, status, is_dry_run FROM task WHERE kind = 'replay'"):
        found = sql(f"SELECT * FROM ({PROGRESS}) WHERE task_id = ?", job_id)
        found = [tuple(row[1:]) for row in found]
        for stream_id, id, first, following, *counts, ranges, last, events, left in found:
            own = sql(
                "SELECT first_sequence_number, last_sequence_number, written, filtered, dead_lettered FROM batch_ledger"
                " WHERE invocation_id = ? AND stream_id = ? AND partition_id = ? ORDER BY commit_number",
                *(job_id, stream_id, id),
            )
            numbers = [number for one in own for number in range(one[0], one[1] + 1)]
            assert numbers == ([] if is_dry_run else list(range(first, following))), (job_id, id, own)
            sums = [sum(one[at] for one in own) for at in (2, 3, 4)]
            assert is_dry_run or sums == counts, (job_id, id, sums, counts)
            log, lost = logs[stream_id, id], gone_numbers(ranges)
            tried = [log[n] for n in range(first, following) if n not in lost and n in log]
            keys = keys_of.get(job_id)
            own_events = tried if keys is None else [one for one in tried if one.partition_key in keys]
            is_right = events <= len(own_events) if job_id in reworded else events == len(own_events)
            assert is_right and left == len(lost), (job_id, id, keys, events, left, lost)
            assert status != "done" or following == last + 1, (job_id, id, "done, but not through")


def check_causes(sql: Sql) -> None:
    """One error has one cause, whether a batch, a retry or a replay met it."""
    several = sql(
        "SELECT error_type, error, COUNT(DISTINCT cause) FROM event_hub_dead_letter"
        " WHERE fingerprint NOT IN ('held', 'crash') AND erased_by IS NULL"
        " GROUP BY error_type, error HAVING COUNT(DISTINCT cause) > 1"
    )
    assert several == [], several


def words_of(event: Any) -> set[str]:
    """Return the texts of an event that may be a subject."""
    return {*event.body.decode().split()[1:], event.partition_key}


def check(
    sql: Sql, truths: list[Truth], told: set[tuple[str, int]], forgotten: Forgotten, is_ordered: bool = False
) -> Books:
    """Check a whole database at rest. `told` are the letters that were reported to an operator as discarded.

    `is_ordered`: the events of a partition key were kept in order.
    """
    books = Books(sql)
    cases = []
    for truth in truths:
        absent = check_balance(truth, books)
        check_totals(truth, books)
        check_letters(truth, books)
        check_retries(truth, books)
        cases.append(Case(truth, absent, touches_of(truth, books, absent)))
    homes = Homes(cases, books, forgotten)
    for case in cases:
        check_rows(case, books, homes)
        check_counts(case, books, homes)
        if is_ordered:
            check_order(case, forgotten)
    homes.check()
    check_remembered(sql)
    check_gone(sql, truths)
    check_replays(sql, truths)
    check_causes(sql)
    discarded = {
        (id, number) for (_, id), found in books.attempts.items() for number, one in found if one.kind == "discard"
    }
    assert told <= discarded, ("told, but not discarded", told - discarded)
    return books
