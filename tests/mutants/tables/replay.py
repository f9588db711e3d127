"""Mutants of replays: ranges, pieces, states of their time, retraction, dry runs, and the job's progress."""

from tests.mutants.mutant import in_file

UNIT = "tests/core/replay"
REPLAYS, JOBS = "tests/core/replay/test_store.py", "tests/core/replay/test_task.py"

KEYED = "tests/core/replay/test_keyed.py"

MUTANTS = (
    *in_file(
        "core/replay/pieces.py",
        f"{UNIT}/test_pieces.py {KEYED}",
        (
            "a replay by key takes the events of all keys",
            "if order_key(found[number]) in self.keys] if self.keys",
            "if order_key(found[number]) != ''] if self.keys",
        ),
    ),
    *in_file(
        "core/replay/store.py",
        KEYED,
        (
            "a ledger row claims the events of other keys",
            "**counts_of(commit.settled, commit.piece.left_alone),",
            "**counts_of(commit.settled, commit.counts.gone),",
        ),
    ),
    *in_file(
        "core/replay/request.py",
        f"{UNIT}/test_ranges.py",
        ("a replay reaches beyond the checkpoint", "return min(end, one.span.last), beyond", "return end, beyond"),
    ),
    *in_file(
        "core/replay/pieces.py",
        f"{UNIT}/test_pieces.py",
        (
            "the hub's event is taken although a letter has it",
            "for event in (*self._read, *kept)",
            "for event in (*kept, *self._read)",
        ),
        (
            "events that do not fit into a piece are lost",
            "self._read = [event for event in self._read if event.sequence_number > last]",
            "self._read = []",
        ),
        (
            "an event of a new hub is replayed",
            "            self.state.refuse_other_hub(found[number])\n",
            "            pass\n",
        ),
        ("a piece ends after the events that were read", "if len(kept) == self.most:", "if len(kept) > self.most:"),
    ),
    *in_file(
        "core/replay/plan.py",
        f"{UNIT}/test_plan.py",
        (
            "an event sees a state of its future",
            "stands.written_by is None or stands.written_by >= self.at",
            "stands.written_by is None",
        ),
        (
            "states are not carried from piece to piece",
            "carried=carried if transform.references_of else {},",
            "carried={},",
        ),
        (
            "rows of a table that the transform no longer writes stay",
            "row_classes=tuple(dict.fromkeys((*transform.row_classes, *settled.rows))),",
            "row_classes=tuple(settled.rows),",
        ),
    ),
    *in_file(
        "core/replay/store.py",
        REPLAYS,
        (
            "a replay deletes rows without a copy",
            '            steps.append(Step(of_rows("retract", row_class), events, counts="rows_retracted"))\n',
            "            pass\n",
        ),
        (
            "a letter whose event succeeds stays open",
            '        Step("resolve_letters", resolved, counts="letters_resolved"),\n',
            '        Step("resolve_letters", {**resolved, "succeeded": "[]"}, counts="letters_resolved"),\n',
        ),
    ),
    *in_file(
        "core/replay/store.py",
        "tests/core/ledger/test_explain.py",
        (
            "a replay does not count the letters that it makes",
            ", added, made] if letters else []",
            ", added] if letters else []",
        ),
    ),
    *in_file(
        "core/replay/store.py",
        "tests/core/replay/test_staged_events.py",
        (
            "a replay forgets staged events that it did not use",
            '"sequence_numbers": numbers_json(commit.numbers)}\n    steps = (*_writing_steps(commit)',
            '"sequence_numbers": numbers_json(range(100))}\n    steps = (*_writing_steps(commit)',
        ),
    ),
    *in_file(
        "sql/queries/event_hub_checkpoint.sql",
        JOBS,
        (
            "a piece goes beyond the checkpoint",
            " AND sequence_number >= :last_sequence_number\n",
            " AND sequence_number >= :last_sequence_number - 1000\n",
        ),
    ),
    *in_file(
        "sql/queries/event_hub_dead_letter.sql",
        REPLAYS,
        ("a replay reopens a letter that a person discarded", "   AND status <> 'discarded';", "   ;"),
    ),
)
