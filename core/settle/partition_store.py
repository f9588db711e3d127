"""A partition in SQL: its state, its references, and the one transaction of a batch."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from core.errors import CheckpointConflict, DataRefused, ErasureKeyMissing, EventKeyChanged, StopReason
from core.model.commits import (
    BatchCommit,
    Checkpoint,
    DeadLetter,
    OpenKeys,
    PartitionState,
    PartitionStop,
    Past,
    Settled,
)
from core.model.events import Incarnation, Partition, SequenceNumber, Span, Stream
from core.model.policies import NO_KEY, SubjectKey
from core.model.property_values import encode_properties
from core.model.rows import ReferenceKey, Row, keys_by_class, row_table
from core.model.transforms import NONE_UNKNOWN
from core.settle.erased_subjects import NONE_ERASED, Erased
from core.settle.settle import OpenLetter
from core.store.columns import (
    can_stand,
    cut,
    decoded,
    decoder,
    instant_of,
    instant_or_none,
    instant_text,
    key_text,
    names_of,
    numbers_json,
    place_of,
    row_reader,
    span_values,
    storable,
    texts_json,
)
from core.store.database import Database, read_time, write
from core.store.memory import Memory
from core.store.row_statements import in_table_order
from core.store.script import RowVerb, Script, Step, of_rows

UNORDERED = timedelta(minutes=1)  # by which the time of a later event of a partition may be before an earlier one's


def known_erasures(state: PartitionState) -> dict[str, int]:
    """Return the erasures that a plan knows: a commit after a newer one conflicts, so that it is planned anew."""
    return {"known_erasures": state.erasures}


NOTED = "noted"  # the count of rows that the script stores: 0 when the checkpoint has moved


def noting_script(state: PartitionState, gap: Span, found_at: datetime) -> Script:
    """Return the transaction that notes a gap. It locks the checkpoint first, as a commit does, and compares it."""
    place, expected = place_of(state), {"next_sequence_number": state.next_number}
    values = {**place, **expected, **span_values(gap)}
    steps = (
        Step("lock_partition", place),
        Step("note_gap_again", values, counts=NOTED),
        Step("note_gap", {**values, "found_at": instant_text(found_at)}, counts=NOTED, races=("pk_sequence_gap",)),
    )
    return Script(str(state.partition), steps, may_repeat=True)


MOST_OPEN_KEYS = 50_000  # open keys of a partition that are remembered; with more, each batch reads only its own keys


class HeldLetters:
    """The part of the partitions that keeps the events of a partition key in order."""

    def __init__(
        self,
        database: Database,
        memory: Memory | None = None,
        key: SubjectKey = NO_KEY,
        event_key: str | None = None,
    ) -> None:
        self._database = database
        self._memory = memory
        self.erasure_key = key
        self._event_key = event_key

    def read_open_keys(self, state: PartitionState) -> PartitionState:
        """Return the state with the partition keys that have an open letter. Keys that the state has already stay."""
        if state.open_keys is not None:
            return state
        found = self._database.ask("read_open_keys", **place_of(state), most=MOST_OPEN_KEYS + 1)
        keys = frozenset([key for (key,) in found]) if len(found) <= MOST_OPEN_KEYS else None
        known = replace(state, open_keys=OpenKeys(keys))
        return self._memory.remember(known) if self._memory else known

    def find_open_letters(
        self, state: PartitionState, keys: AbstractSet[str], before: SequenceNumber
    ) -> Mapping[str, OpenLetter]:
        """Return the last open letter before a number of each of these partition keys that has one."""
        asked = {"partition_keys": texts_json(keys), "before": before}
        found = self._database.ask("find_open_letters", **place_of(state), **asked)
        return {key: OpenLetter(SequenceNumber(number), error_class) for key, number, error_class in found}

    def read_erased(self, state: PartitionState, since: datetime | None = None) -> Erased:
        """Return the erased subjects of which an event from a time on may be: none, without a call, when no erasure was
        later. Raises ErasureKeyMissing when one has a hash of an unknown key."""
        if state.erased_at is None or (since is not None and since > state.erased_at + UNORDERED):
            return NONE_ERASED
        first = datetime.min.replace(tzinfo=UTC) if since is None else since - UNORDERED
        found = self._database.ask("read_erased_subjects", since=instant_text(first))
        names = self.erasure_key.names
        if any(key_hash not in names for _, _, key_hash in found):
            raise ErasureKeyMissing
        return Erased({subject: instant_of(erased_at) for subject, erased_at, _ in found}, self.erasure_key)

    def has_key(self, state: PartitionState) -> bool:
        """Return True when a partition that waited for the key of erased subjects has it."""
        with suppress(ErasureKeyMissing):
            if state.stop_for("erasure_key") is not None:
                self.read_erased(state)
                return True
        return False

    def count_held(self, state: PartitionState) -> int:
        """Count the held letters of a partition."""
        ((held,),) = self._database.ask("count_held", **place_of(state))
        return int(held)


def order_steps(
    state: PartitionState, invocation_id: str, otherwise: Callable[[], Exception], clears: bool = True
) -> list[Step]:
    """Return the step that refuses a commit whose open letters were read before a different replay committed.

    A commit that `clears` is refused too when its state does not know that the partition is stopped.
    """
    if state.open_keys is None or state.checkpoint is None:
        return []
    values = {
        **place_of(state),
        "read_at_commit": state.checkpoint.commit_number,
        "invocation_id": invocation_id,
        "knows_stop": int(not clears or state.stop_for("held") is not None),
    }
    return [Step("stay_in_order", values, expect=1, otherwise=otherwise)]


def freeing_steps(commit: BatchCommit, freed_at: str) -> list[Step]:
    """Return the step that frees held letters of this commit whose earlier letter was settled since it was read."""
    waited_for = {letter.held_behind for letter in commit.settled.letters if letter.status == "held"}
    before = sorted(number for number in waited_for if number is not None and number < commit.first)
    freed = {"freed_by": freed_by(commit.commit_id), "freed_at": freed_at, "sequence_numbers": numbers_json(before)}
    return [Step("free_letters", {**place_of(commit.state), **freed})] if before else []


def freed_by(token: object) -> str:
    """Return the name of a commit, a claim or a move in the letters that it frees."""
    return f"freed-{token}"


Values = dict[str, Any]
NO_KEYS = "[]"
_COUNTS = ("written", "filtered", "dead_lettered", "held", "rows_written", "rows_appended")
STOP_LENGTH = 2_000  # characters of the detail that are stored
LEFT_OUT = "the detail names an erased subject, so it is left out"


class Partitions(HeldLetters):
    """The partitions in a database. With a memory, a batch costs one call in the steady state.

    Several threads may call all methods. Any method may raise StoreUnavailable. Then nothing was written.
    """

    def open_stream(self, stream: Stream) -> int:
        """Return the id of a stream. Open a stream that the store does not know yet.

        Raises EventKeyChanged when letters, tasks or erasures need a different key of events.
        """
        known = None if self._memory is None else self._memory.stream_id_of(stream)
        if known is not None:
            return known
        found = self._database.ask("find_stream", **names_of(stream))
        if not found:
            opened = names_of(stream) | {"anchored_at": instant_text(read_time(self._database))}
            write(self._database, str(stream), "open_stream", **opened)
            found = self._database.ask("find_stream", **names_of(stream))
        stream_id = int(found[0][0])
        if (former := self.find_former_key(stream_id)) is not None:
            values = {"stream_id": stream_id, "event_key": self._event_key, "former": former}
            write(self._database, f"stream {stream_id}", "change_event_key", **values)
        return self._memory.remember_stream(stream, stream_id) if self._memory else stream_id

    def find_former_key(self, stream_id: int) -> str | None:
        """Return the stored key of a stream's events when it differs from the present one, or None. Raises
        EventKeyChanged when letters, tasks or erasures need the stored one."""
        if (now := self._event_key) is None:
            return None
        ((former, is_needed),) = self._database.ask("read_event_key", stream_id=stream_id)
        if former != now and is_needed:
            raise EventKeyChanged(former, now)
        return None if former == now else former

    def read_incarnation(self, stream: Stream) -> Incarnation:
        """Return the newest incarnation of a stream. A stream that the store does not know yet is opened."""
        self.open_stream(stream)
        return decoder(Incarnation)(self._database.ask("read_incarnation", **names_of(stream))[0])

    def adopt_hub(self, incarnation: Incarnation, created_at: datetime) -> None:
        """Store the hub's creation time, unless the incarnation has one."""
        values = {"stream_id": incarnation.stream_id, "hub_created_at": instant_text(created_at)}
        write(self._database, f"stream {incarnation.stream_id}", "adopt_hub", **values)

    def forget_partition(self, partition: Partition) -> None:
        """Forget the remembered state of a partition and the id of its stream."""
        if self._memory:
            self._memory.forget(partition)

    def read_partition(self, partition: Partition) -> PartitionState:
        """Return the partition's stream and checkpoint. Open a stream that the store does not know yet."""
        if self._memory is None:
            return self._read(partition)
        state = self._memory.state_of(partition)
        if state is None:
            self._memory.forget_references()
            state = self._memory.remember(self._read(partition))
        return state

    def read_past(self, state: PartitionState) -> Past:
        """Return the last events of a partition up to a state."""
        last = 0 if state.checkpoint is None else state.checkpoint.commit_number
        return decoder(Past)(self._database.ask("read_past", **place_of(state), last_commit=last)[0])

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """Return the current `state_of` rows of these keys. Keys without a row are left out."""
        rows, unknown = self._memory.known(keys) if self._memory else ({}, list(keys))
        if not unknown:
            return rows
        found: dict[ReferenceKey, Row] = {}
        for row_class, values in keys_by_class(unknown).items():
            if (standing := keys_json(values)) == NO_KEYS:
                continue
            read = row_reader(row_class)
            for columns in self._database.ask(of_rows("select_states", row_class), keys=standing):
                row = read(columns)
                found[ReferenceKey.of(row)] = row
        if self._memory:
            self._memory.remember_references(found)
        rows.update(found)
        return rows

    def commit_batch(self, commit: BatchCommit) -> int:
        """Write checkpoint, rows, letters, ledger and gaps in one transaction. Return the commit number.

        If the state has open keys, held letters whose earlier letter was settled since are freed. Raises
        CheckpointConflict (the checkpoint is not where the commit expects it, or a replay may have opened letters since
        the open keys were read) and DataRefused. Neither writes anything. Raises CommitOutcomeUnknown when the answer
        was lost. After each fault but DataRefused the next read goes to the database.
        """
        try:
            number = self.write(batch_script(commit), commit.settled)
        except DataRefused:
            raise
        except BaseException:
            if self._memory:
                self._memory.forget(commit.partition)
            raise
        if self._memory:
            self._memory.remember(commit.state_after(number))
        return number

    def write(self, script: Script, settled: Settled) -> int:
        """Run a commit and return its number. Forget the remembered references that it overwrites."""
        try:
            return self._database.run(script).kept["commit_number"]
        finally:
            if self._memory:
                self._memory.forget_states_of(settled)

    def ask_of_open(self, stream: Stream, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that answers nothing for a closed stream: an old remembered id serves it."""
        stream_id = self._memory.last_stream_id_of(stream) if self._memory else None
        if self._memory is not None and stream_id is not None:
            if found := self._database.ask(statement, stream_id=stream_id, **values):
                self._memory.remember_stream(stream, stream_id)
                return found
            self._memory.forget_stream(stream)
        return self._database.ask(statement, stream_id=self.open_stream(stream), **values)

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        """Anchor a partition without a commit at a number, unless it has an anchor already. Return its state."""
        values = {**place_of(state), "sequence_number": anchor, "anchored_at": instant_text(at)}
        write(self._database, str(state.partition), "anchor_partition", **values)
        anchored = self._read(state.partition)
        if anchored.stream_id != state.stream_id or (anchored.checkpoint is None and anchored.anchor is None):
            self.forget_partition(state.partition)
            raise CheckpointConflict(state.partition, None)  # the stream was closed
        return self._memory.remember(anchored) if self._memory else anchored

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        """Record a gap that is being healed, and count each further try.

        Raises CheckpointConflict when the checkpoint has moved since the state was read: the gap may be settled. The
        memory is forgotten then, because a stale one shows gaps that do not exist.
        """
        try:
            if not self._database.run(noting_script(state, gap, found_at)).kept[NOTED]:
                raise CheckpointConflict(
                    state.partition, state.checkpoint.sequence_number if state.checkpoint else None
                )
        except BaseException:
            if self._memory:
                self._memory.forget(state.partition)
            raise

    def close_gaps(self, partition: Partition) -> None:
        """Record the open gaps up to the checkpoint as healed: the hub delivered their events after all."""
        values = {"stream_id": self.open_stream(partition.stream), "partition_id": partition.partition_id}
        write(self._database, str(partition), "close_gaps", **values)

    def note_stop(
        self,
        state: PartitionState,
        reason: StopReason,
        detail: str,
        at: datetime,
        met: Span | tuple[str, int, int] | None = None,
    ) -> None:
        """Record that a partition is stopped, or count one more attempt. The next read of its state shows the stop.
        `met` has the numbers that the own reader carried, or the failures of an outage.

        A detail that quotes an erased subject is left out, unless the key of the subjects is missing. Nothing is
        recorded when an erasure is newer than the state: the next attempt records the stop.
        """
        with suppress(ErasureKeyMissing):
            detail = LEFT_OUT if self.read_erased(state).quotes(detail) else detail
        values: Any = {"detail": cut(detail, STOP_LENGTH), "stopped_at": instant_text(at), **known_erasures(state)}
        first, last = (met.first, met.last) if isinstance(met, Span) else (None, None)
        failure, failed, tried = met if isinstance(met, tuple) else (None, None, None)
        values.update(
            carried_from=first, carried_to=last, failure=failure and cut(failure, 300), failed=failed, tried=tried
        )
        self._change_stops("note_stop", state, reason=reason, **values)

    def clear_stops(self, state: PartitionState, reasons: Collection[StopReason]) -> None:
        """Delete stops. The next read of the state no longer shows them."""
        self._change_stops("clear_stops", state, reasons=texts_json(reasons))

    def _change_stops(self, statement: str, state: PartitionState, **values: object) -> None:
        try:
            write(self._database, str(state.partition), statement, **place_of(state), **values)
        finally:
            if self._memory:
                self._memory.forget(state.partition)

    def _read(self, partition: Partition) -> PartitionState:
        stream_id = self.open_stream(partition.stream)
        key = {"stream_id": stream_id, "partition_id": partition.partition_id}
        stops = decoded(PartitionStop, self._database.ask("read_stops", **key))
        found = self._database.ask("read_checkpoint", **key)
        if found:
            *columns, erased_at, erasures = found[0]
            checkpoint, known = decoder(Checkpoint)(columns), (None, instant_or_none(erased_at), erasures)
            return PartitionState(partition, stream_id, checkpoint, None, None, stops, *known)
        ((anchor, opened_at, erased_at, erasures),) = self._database.ask("read_anchor", **key)
        known = (None, instant_or_none(erased_at), erasures)
        return PartitionState(partition, stream_id, None, anchor, instant_of(opened_at), stops, *known)


def batch_script(commit: BatchCommit) -> Script:
    """Return the transaction of a batch, in lock order: checkpoint, rows, letters, ledger, gaps, attempt, stop."""
    steps = [*_checkpoint_steps(commit), *settled_row_steps(commit.settled, place_of(commit.state))]
    letters, at = commit.settled.letters, {"committed_at": instant_text(commit.committed_at)}
    if letters:
        values = [letter_values(letter, commit.transform_version, at["committed_at"]) for letter in letters]
        steps.append(Step("add_letter", place_of(commit.state), many=values))
        steps += freeing_steps(commit, at["committed_at"])
    recorded = {
        **place_of(commit.state),
        "first_sequence_number": commit.first,
        "last_sequence_number": commit.last.sequence_number,
        **counts_of(commit.settled, commit.absent),
        "transform_version": commit.transform_version,
        "invocation_id": commit.invocation_id,
        **at,
    }
    steps.append(Step("record_batch", recorded))
    if commit.gaps:
        gaps = [{**span_values(Span(gap.first, gap.last)), "status": gap.status} for gap in commit.gaps]
        steps.append(Step("settle_gap", place_of(commit.state), many=gaps))
        steps.append(Step("add_gap", {**place_of(commit.state), **at}, many=gaps, races=("pk_sequence_gap",)))
    if commit.is_marked:
        written = Span(commit.first, commit.last.sequence_number)
        steps.append(Step("clear_attempts", {**place_of(commit.state), **span_values(written)}))
    if commit.ends:
        steps.append(Step("clear_stops", {**place_of(commit.state), "reasons": texts_json(commit.ends)}))
    return Script(str(commit.partition), tuple(steps))


def settled_row_steps(settled: Settled, place: Values) -> list[Step]:
    """Return the steps that write rows. Two transactions may insert the same state at once, so that step may race."""
    steps = []
    for row_class in in_table_order(settled.rows):
        if placed := settled.rows[row_class]:
            table = row_table(row_class)
            verb: RowVerb = "set" if table.key else "append"
            races = (table.name,) if table.key else ()
            steps.append(Step(of_rows(verb, row_class), place, many=placed, races=races))
    return steps


def keys_json(keys: Iterable[tuple[Any, ...]]) -> str:
    """Return keys as JSON, without those that no row can have: a database may refuse to compare them."""
    return json.dumps([key for key in keys if all(map(can_stand, key))], default=key_text)


def letter_values(letter: DeadLetter, transform_version: str, failed_at: str) -> Values:
    """Return the columns of a new letter. Only a waiting letter is due. Texts lose what UTF-8 cannot hold."""
    event, due_at = letter.event, letter.due_at
    first_due_at = failed_at if due_at is None else instant_text(due_at)
    return {
        "sequence_number": event.sequence_number,
        "offset_token": event.offset,
        "enqueued_at": instant_text(event.enqueued_at),
        "partition_key": None if event.key is None else storable(event.key),
        "properties": encode_properties(event.properties, event.stored_annotations),
        "body": event.body if letter.keeps_body else b"",
        "body_kept": int(letter.keeps_body),
        "error_class": letter.error_class,
        "error_type": letter.error_type,
        "error": storable(letter.error),
        "fingerprint": letter.fingerprint,
        "transform_version": transform_version,
        "status": letter.status,
        "due_at": first_due_at if letter.status == "waiting" else None,
        "held_behind": letter.held_behind,
        "failed_at": failed_at,
        "error_at": letter.error_at,
    }


def _checkpoint_steps(commit: BatchCommit) -> list[Step]:
    last, conflict = commit.last, partial(CheckpointConflict, commit.partition, commit.expected)
    values = {
        **place_of(commit.state),
        "sequence_number": last.sequence_number,
        "offset_token": last.offset,
        "enqueued_at": instant_text(last.enqueued_at),
        "commit_id": str(commit.commit_id),
        "updated_at": instant_text(commit.committed_at),
        **counts_of(commit.settled, commit.absent),
        **known_erasures(commit.state),
    }
    known = commit.state.checkpoint.unknown_fields if commit.state.checkpoint else NONE_UNKNOWN
    counted = {**place_of(commit.state), "unknown_fields": commit.unknown_fields, "known_fields": known}
    note = Step("note_unknown_fields", counted, expect=1, otherwise=conflict)
    noted = [note] if commit.settled.unknown_fields else []
    if commit.expected is None:
        key, values = ("pk_event_hub_checkpoint",), {**values, "first_sequence_number": commit.first}
        return [Step("open_checkpoint", values, expect=1, otherwise=conflict, keeps="commit_number", races=key), *noted]
    values["expected"] = commit.expected
    advance = Step("advance_checkpoint", values, expect=1, otherwise=conflict, keeps="commit_number")
    return [advance, *noted, *order_steps(commit.state, commit.invocation_id, conflict)]


def counts_of(settled: Settled, absent: int) -> Values:
    """Return what a commit counts: its events by outcome, and its rows."""
    return {"absent": absent, **{name: getattr(settled, name) for name in _COUNTS}}
