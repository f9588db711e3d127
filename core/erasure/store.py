"""Erasures in SQL: what a range of a partition has of some subjects, and the transaction that removes it."""

import json
from collections.abc import Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime
from itertools import accumulate
from typing import Any

from core.erasure.erasure import LAKE, NOTHING_ERASED, WORDED, Erasing, FoundPiece, RetractedPlace
from core.letters.store import move_steps
from core.model.aggregates import Aggregate
from core.model.commits import ROWS_AT_ONCE
from core.model.events import Partition, PartitionId, SequenceNumber, Span, span
from core.model.letters import LetterMove
from core.model.policies import SubjectKey
from core.model.rows import row_table
from core.model.shapes import Answered
from core.replay.store import opened_key
from core.settle.mentions import ERASED_WORD, Mentions, mention_of, needles_of
from core.store.columns import (
    day_of,
    decoded,
    fields_of,
    instant_of,
    instant_text,
    numbers_json,
    span_values,
    subjects_json,
    texts_json,
    types_of,
)
from core.store.database import OneStream, write
from core.store.row_statements import in_table_order
from core.store.script import Script, Step, of_rows
from core.tasks.store import Ending, TaskOpening, advance_steps
from core.tasks.task import Advance, TaskRequest, report_of, report_text


def opening_of(request: TaskRequest, subjects: Sequence[str], key: SubjectKey, at: datetime) -> TaskOpening:
    """Return the steps that open an erasure: tombstones, which no plan made before them survives, and then the parts.

    A dry run has no tombstones. What is committed before them is found by the parts, which end at the checkpoints that
    stand then. What is committed after them was planned with them.
    """
    order = request.order
    own = {"task_id": str(order.task_id), "stream_id": order.stream_id, "report": report_text(NOTHING_ERASED)}
    parts = (Step("add_parts_to_erase", {**own, "lake": LAKE}),)
    if request.is_dry_run:
        return TaskOpening(parts=parts)
    noted = {"hashes": texts_json(map(key.hash_of, subjects)), "key_hash": key.name, "erased_by": str(order.task_id)}
    noted["erased_at"] = instant_text(at)
    note = (Step("renew_erased_subjects", noted), Step("add_erased_subjects", noted))
    former = [] if key.before is None else list(map(key.before.hash_of, subjects))
    forget = [Step("forget_hashes", {"former_hashes": texts_json(former)})] if former else []
    return TaskOpening((Step("refuse_former_plans", {}),), (*forget, *note), parts)


def erasure_script(piece: FoundPiece, by: str, ending: Ending, ahead: Advance) -> Script:
    """Return the transaction of a piece: partition, rows, retracted rows, letters, and its task. `by` ordered it."""
    place = {"stream_id": piece.stream_id, "partition_id": piece.partition.partition_id}
    reach, of_task, conflict = {**place, **span_values(piece.span)}, str(ending.task_id), ending.conflict
    of_subjects = {**reach, "subjects": subjects_json(piece.sought)}
    steps, deleted = [Step("lock_partition", place)], []
    for row_class in in_table_order(piece.rows_of):
        count = piece.rows_of[row_class]
        if not row_table(row_class).key:  # each appended row leaves its place
            stub = of_rows("stub_subject", row_class)
            steps.append(Step(stub, of_subjects, expect=count, otherwise=conflict))
        deleted.append(Step(of_rows("delete_subject", row_class), of_subjects, expect=count, otherwise=conflict))
    if piece.retracted:
        blank = {**reach, "retracted": json.dumps(piece.retracted)}
        steps.append(Step("blank_retracted", blank, expect=len(piece.retracted), otherwise=conflict))
    steps += deleted
    if piece.reasons:
        steps.append(Step("blank_reasons_of_letters", {**place, "reasons": json.dumps(piece.reasons)}))
    if piece.letters:
        blank = {**place, "sequence_numbers": numbers_json(piece.letters), "erased_by": of_task}
        steps.append(Step("blank_letters", blank, expect=len(piece.letters), otherwise=conflict))
        at, why = ending.at, ERASED_WORD
        discard = LetterMove("discard", piece.partition, piece.letters, of_task, at, at, by, why)
        steps += move_steps(discard, piece.stream_id)[1:]
    if piece.letters or piece.reasons:
        attempts = [*((number, None) for number in piece.letters), *piece.reasons]
        steps.append(Step("blank_attempts", {**place, "attempts": json.dumps(attempts)}))
    if piece.staged:
        steps.append(Step("delete_staged_of", {**place, "staged": numbers_json(piece.staged)}))
    steps += advance_steps(ending, ahead)
    if piece.diffs:
        dry_runs = json.dumps(sorted({(task_id,) for task_id, _ in piece.diffs}))
        diffed = numbers_json(sorted({SequenceNumber(number) for _, number in piece.diffs}))
        steps.append(Step("delete_diffs_of", {**place, "dry_runs": dry_runs, "diffed": diffed}))
    return Script(f"erasure {of_task}", tuple(steps), gives_way=True)


class ErasureKeyAnswer(Answered):
    """A key that the settings do not have: `subjects` were erased with it, the last one at `erased_at`."""

    key_hash: str
    subjects: int
    erased_at: datetime


AT_ONCE, OCTETS_AT_ONCE = 1_000, 512 * 1024  # texts, and octets of their bodies, that are in memory
NEVER = 2**63 - 1


class Erasures:
    """Reads and erases subjects in every stream of a database, by the tables of one stream's room."""

    def __init__(
        self, stream: OneStream, row_classes: tuple[type, ...], aggregates: tuple[Aggregate, ...] = ()
    ) -> None:
        self.stream = stream
        self.database = stream.database
        self.row_classes = tuple(in_table_order(row_classes))
        self._aggregates = aggregates

    def read_checkpoints(self) -> Mapping[PartitionId, SequenceNumber]:
        return {PartitionId(id): SequenceNumber(number) for id, number, _ in self.stream.ask("read_checkpoints")}

    def read_lost_keys(self, known: Container[str]) -> list[ErasureKeyAnswer]:
        """Return the keys of all hashes but the known ones."""
        found = decoded(ErasureKeyAnswer, self.database.ask("read_erasure_keys"))
        return [one for one in found if one.key_hash not in known]

    def read_unrepaired(self) -> Mapping[str, tuple[date, date]]:
        """Return the first and the last day of the rows of erasures that ended early since the last one that was done,
        for each aggregate whose windows tell no subject."""
        total = NOTHING_ERASED
        for (report,) in self.database.ask("read_unrepaired"):
            total = total.plus(report_of(report, Erasing))
        return {of.name: total.days[of.name] for of in self._aggregates if not of.subject and of.name in total.days}

    def forget_keys(self, names: Sequence[str]) -> None:
        write(self.database, "keys of erased subjects", "forget_erasure_keys", key_hashes=texts_json(names))

    def read_other_streams(self, stream_ids: AbstractSet[int]) -> Mapping[int, str]:
        """Return the names of all streams but the room's present one. Nothing is read when no other id is given."""
        own = self.stream.find()
        named = [] if stream_ids <= {own} else self.database.ask("read_stream_names")
        return {id: f"{hub}, {group}, incarnation {number}" for id, hub, group, number in named if id != own}

    def find_next(self, stream_id: int, partition_id: PartitionId, first: int) -> int:
        """Return the next number at which any table may have something of a subject."""
        place = {"stream_id": stream_id, "partition_id": partition_id, "first_sequence_number": first}
        found = self.database.ask("find_next_erasable", **place)
        for row_class in self.row_classes:
            found += self.database.ask(of_rows("next_number", row_class), **place)
        return min((number for row in found for number in row if number is not None), default=NEVER)

    def find_piece(self, stream_id: int, partition: Partition, reach: Span, subjects: Sequence[str]) -> FoundPiece:
        """Return the finds of some subjects in a range. With many rows or letters, the piece ends before the range."""
        place, last = {"stream_id": stream_id, "partition_id": partition.partition_id}, int(reach.last)
        asked = {**place, **span_values(reach), "subjects": subjects_json(subjects)}
        declared = [one for one in self.row_classes if row_table(one).subject]
        rows = {one: self.database.ask(of_rows("select_subject", one), **asked) for one in declared}
        numbers = sorted(row[1] for chosen in rows.values() for row in chosen)
        if len(numbers) > ROWS_AT_ONCE:
            last = max(reach.first, numbers[ROWS_AT_ONCE] - 1)
        mentions = mention_of(subjects)
        found, last = self._search(
            span(reach.first, last), mentions, {**place, "needles": texts_json(needles_of(subjects))}
        )
        letters = tuple(number for kind, number, _ in found if kind == "letter")
        part = span(reach.first, last)
        diffs = self.database.ask("read_diffs_to_search", **place, **span_values(part))
        rows = {one: [row for row in chosen if row[1] <= last] for one, chosen in rows.items()}
        retracted = self._retracted(part, {str(one) for one in subjects}, place)
        return FoundPiece(
            stream_id=stream_id,
            partition=partition,
            sought=tuple(subjects),
            span=part,
            rows_of={one: len(kept) for one, kept in rows.items() if kept},
            letters=letters,
            reasons=tuple((number, at) for kind, number, at in found if kind == "attempt" and number not in letters),
            staged=tuple(number for kind, number, _ in found if kind == "staged"),
            retracted=tuple(taken for taken, _, _ in retracted),
            diffs=tuple((task_id, number) for task_id, number, diff in diffs if mentions([diff])),
            days=self._days(rows, [(row_class, row) for _, row_class, row in retracted]),
        )

    def erase(self, piece: FoundPiece, by: str, ending: Ending, ahead: Advance) -> None:
        """Erase a piece and advance its part, in one transaction. Raises TaskConflict, with nothing written, when
        anything of the piece has changed since it was found."""
        self.database.run(erasure_script(piece, by, ending, ahead))

    def forget_states(self, subjects: Sequence[str]) -> None:
        """Delete the states of the subjects that replays carry: a dry run goes on without them."""
        mentions, opened = mention_of(subjects), set(map(opened_key, subjects))
        for task_id, id, key, row in self.database.ask("read_states_to_search"):
            if key in opened or mentions([row]):
                place = {"task_id": task_id, "partition_id": id, "state_key": key}
                write(self.database, "a state of a replay", "delete_state_of", **place)

    def reword(self, subjects: Sequence[str]) -> None:
        """Replace the texts of people and errors that mention a subject, a row in a transaction."""
        for one in WORDED:
            for row in self.database.ask(one.read):
                before = dict(zip((*one.key, *one.texts), row, strict=True))
                after = one.without(before, subjects)
                if after != before:
                    write(self.database, "a text", one.reword, **after)

    def _search(
        self, reach: Span, mentions: Mentions, searched: Mapping[str, Any]
    ) -> tuple[list[tuple[str, SequenceNumber, int]], int]:
        """Return the letters, staged events and attempts of a range whose texts mention a subject, in order, and the
        last number that was read.

        The database leaves out most texts without a mention. At most AT_ONCE bodies are in memory, and at most
        OCTETS_AT_ONCE octets of them, unless the bodies of one number have more.
        """
        found = self.database.ask("find_texts_to_search", **searched, **span_values(reach), most=AT_ONCE)
        sums = zip(found, accumulate(size for _, size in found), strict=True)
        chosen = [number for (number, size), total in sums if total <= OCTETS_AT_ONCE or total == size]
        place = {name: searched[name] for name in ("stream_id", "partition_id")}
        values = {**place, "sequence_numbers": numbers_json(chosen)}
        rows = self.database.ask("read_texts_to_search", **values) if chosen else []
        named = [
            (kind, SequenceNumber(number), attempt)
            for kind, number, attempt, body, *texts in rows
            if mentions([bytes(body or b""), *filter(None, texts)])
        ]
        last = chosen[-1] if len(chosen) < len(found) or len(found) == AT_ONCE else reach.last
        return sorted(named, key=lambda one: one[1:]), last

    def _retracted(
        self, part: Span, subjects: set[str], place: Any
    ) -> list[tuple[RetractedPlace, type, Mapping[str, Any]]]:
        """Return the places of the rows of the subjects that replays took away, with their class and their columns."""
        of_table = {row_table(one).name: one for one in self.row_classes}
        found = []
        for *at, text in self.database.ask("read_retracted_to_search", **place, **span_values(part)):
            row_class = of_table.get(at[1])
            if row_class is None or not (subject := row_table(row_class).subject):
                continue
            row = json.loads(text)
            if str(row.get(subject)) in subjects:
                found.append(((at[0], at[1], at[2], at[3]), row_class, row))
        return found

    def _days(self, rows: Any, retracted: Any) -> dict[str, tuple[date, date]]:
        """Return the first and the last day of rows that aggregates add up or have added up: windows still count a row
        that a replay took away, until a run has read its place, and the place will have no columns."""
        days = {}
        for of in self._aggregates:
            at = 3 + row_table(of.source).columns.index(of.at)
            has_instants = datetime in types_of(dict(fields_of(of.source))[of.at])
            values = [row[at] for row in rows.get(of.source, ())]
            values += [row.get(of.at) for row_class, row in retracted if row_class is of.source]
            values = [one for one in values if one is not None]
            dated = [instant_of(value).date() if has_instants else day_of(value) for value in values]
            if dated:
                days[of.name] = (min(dated), max(dated))
        return days
