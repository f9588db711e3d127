"""Mutants of replays: ranges, pieces, states of their time, retraction, dry runs, and the job's progress."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core/replay"
REPLAYS, JOBS = "tests/contract/test_replays.py", "tests/contract/test_replay_jobs.py"

KEYED = "tests/contract/test_keyed_replays.py"

MUTANTS = (
    *in_file(
        "core/replay/pieces.py",
        f"{UNIT}/test_pieces.py {KEYED}",
        (
            "a replay by key takes the events of all keys",
            "if order_key(found[number]) in self._keys] if self._keys",
            "if order_key(found[number]) != ''] if self._keys",
        ),
        (
            "a replay by key counts the events of other keys as gone",
            "tuple(span.holes(passed))",
            "tuple(span.holes(number for number in wanted if number <= last))",
        ),
        (
            "a piece by key that is cut counts what is gone twice",
            "        return tuple([both for one in self.gone if (both := one.overlap(part)) is not None])\n",
            "        return self.gone\n",
        ),
        (
            "a piece by key has more events than a piece",
            "            room -= len(read[-1].events)\n",
            "            pass\n",
        ),
        (
            "a replay by key passes over the events of a new hub",
            "            self._state.refuse_other_hub(found[number])\n",
            "            pass\n",
        ),
        ("a piece by key is read without end", "< left.last and not is_late():", "< left.last:"),
    ),
    *in_file(
        "core/replay/run.py",
        f"{UNIT}/test_run.py",
        (
            "a piece by key is read to the end of its slice",
            "            self.until -= READ_MARGIN\n",
            "            pass\n",
        ),
        (
            "a piece by key is read for a whole slice",
            "ends = min(now() + LONGEST_READ, self.until)",
            "ends = self.until",
        ),
        ("a slice by key begins a piece in its last seconds", "self.is_late = True", "self.is_late = False"),
    ),
    *in_file(
        "core/replay/store/scripts.py",
        KEYED,
        (
            "a ledger row claims the events of other keys",
            '"absent": commit.piece.left_alone,',
            '"absent": commit.counts.gone,',
        ),
    ),
    *in_file(
        "core/replay/store/replays.py",
        KEYED,
        (
            "the keys of a replay are not stored",
            ", request.transform_version, request.keys)",
            ", request.transform_version)",
        ),
        ("a replay by key counts the states of other keys", "        if job.asked.keys:\n", "        if False:\n"),
    ),
    *in_file(
        "core/replay/ranges.py",
        f"{UNIT}/test_ranges.py",
        (
            "a range by time takes the first event after its end",
            "event.sequence_number if is_the_end else event.sequence_number - 1",
            "event.sequence_number",
        ),
        ("a replay reaches beyond the checkpoint", "return min(end, one.checkpoint), beyond", "return end, beyond"),
        (
            "a replay may be larger than the settings allow",
            "    if events > most:\n",
            "    if events > 10 * most:\n",
        ),
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
            "two parts of a piece share a number",
            "Span(self.span.first, SequenceNumber(following - 1)), Span(",
            "Span(self.span.first, following), Span(",
        ),
        (
            "events that do not fit into a piece are lost",
            "self._read = [event for event in self._read if event.sequence_number > last]",
            "self._read = []",
        ),
        ("a piece ends after the events that were read", "if len(kept) == self._most:", "if len(kept) > self._most:"),
    ),
    *in_file(
        "core/model/spans.py",
        f"{UNIT}/test_pieces.py",
        ("ranges that touch are listed apart", "spans[-1].last + 1 == one.first", "spans[-1].last == one.first"),
    ),
    *in_file(
        "core/replay/plan.py",
        f"{UNIT}/test_plan.py",
        (
            "an event sees a state of its future",
            "carried.number < stands.written_by < self.at",
            "carried.number < stands.written_by",
        ),
        (
            "an event of a new hub is replayed",
            "        trial.state.refuse_other_hub(event)\n",
            "        pass\n",
        ),
        (
            "a replay makes all rows of an event before it counts them",
            "return trial.transform.rows_of(event, learning)",
            "return tuple(trial.transform.rows_of(event, learning))",
        ),
        (
            "states are not carried from piece to piece",
            "_written_by(piece, references) if transform.references_of else {}",
            "{}",
        ),
        (
            "rows of a table that the transform no longer writes stay",
            "row_classes=tuple(dict.fromkeys((*transform.row_classes, *settled.rows))),",
            "row_classes=tuple(settled.rows),",
        ),
    ),
    *in_file(
        "core/replay/run.py",
        f"{UNIT}/test_run.py",
        (
            "a slice works on after its time",
            "if self.pieces and means.clock.now() >= self.until:",
            "if self.pieces > 1_000 and means.clock.now() >= self.until:",
        ),
    ),
    *in_file(
        "core/replay/diff.py",
        f"{UNIT}/test_diff.py",
        (
            "a dry run shows a change that a newer state prevents",
            "if stands is None or stands.gives_way_to(number):",
            "if stands is None or number >= 0:",
        ),
        (
            "a dry run shows an equal decimal as changed",
            "if getattr(before, name) != getattr(after, name)}",
            "if old[name] != new[name]}",
        ),
    ),
    *in_file(
        "core/replay/store/scripts.py",
        REPLAYS,
        (
            "a replay deletes rows without a copy",
            '            steps.append(Step(of_rows("retract", row_class), events, counts="rows_retracted"))\n',
            "            pass\n",
        ),
        ("a replay leaves no attempt of a letter", '        Step("record_attempts", attempts),\n', ""),
        (
            "a letter whose event succeeds stays open",
            '        Step("resolve_letters", resolved, counts="letters_resolved"),\n',
            '        Step("resolve_letters", {**resolved, "succeeded": "[]"}, counts="letters_resolved"),\n',
        ),
        (
            "a letter whose event fails again keeps its old reason",
            '[Step("reopen_letters", touched, many=letters), added, made] if letters else []',
            "[added, made] if letters else []",
        ),
    ),
    *in_file(
        "core/replay/store/scripts.py",
        "tests/contract/operator/test_explanations.py",
        (
            "a replay does not count the letters that it makes",
            ", added, made] if letters else []",
            ", added] if letters else []",
        ),
    ),
    *in_file(
        "core/replay/store/scripts.py",
        "tests/contract/test_staged_events.py",
        (
            "a replay keeps the staged events that it used",
            'Step("forget_staged", staged), ',
            "",
        ),
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
        (
            "a letter of a replay does not name its commit",
            ":failed_at, :touched_by, :commit_number,",
            ":failed_at, :touched_by, NULLIF(:commit_number, :commit_number),",
        ),
    ),
    *in_file(
        "core/replay/store/scripts.py",
        "tests/contract/test_open_replays.py",
        (
            "only the first states of a job that ended are deleted",
            'while database.run(script).kept["forgotten"] == ROWS_AT_ONCE:',
            'while database.run(script).kept["forgotten"] > ROWS_AT_ONCE:',
        ),
    ),
    *in_file(
        "sql/queries/replay_state.sql",
        JOBS,
        (
            "the states of a job that ended stay",
            "WHERE t.status IN ('done', 'cancelled', 'failed')\n        LIMIT",
            "WHERE t.status IN ('cancelled', 'failed')\n        LIMIT",
        ),
    ),
)
