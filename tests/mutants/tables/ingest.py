"""Mutants of a batch: the guard, the anchor, gaps, silence, the ambiguous commit, settling and halving."""

from tests.mutants.mutant import in_file

UNIT = "tests/core"
ISOLATE = f"{UNIT}/settle/test_isolate.py"

MUTANTS = (
    *in_file(
        "core/ingest/guard.py",
        f"{UNIT}/ingest/test_guard.py",
        ("the guard keeps redelivered events", "fresh = events[known:] if known else events", "fresh = events"),
        (
            "the guard takes an old number of a new hub for a redelivered event",
            "        state.refuse_other_hub(event)\n",
            "        pass\n",
        ),
        (
            "the guard sees no gap between the checkpoint and the batch",
            "if last - first + 1 == len(events):",
            "if last - events[0].sequence_number + 1 == len(events):",
        ),
        (
            "the guard sees only the first hole of a batch",
            "end = last - above if above else events[0].sequence_number - 1",
            "end = events[0].sequence_number - 1",
        ),
    ),
    *in_file(
        "core/incarnations/hub_check.py",
        f"{UNIT}/incarnations/test_anchor.py",
        (
            "an event that arrives while the anchor is chosen is left out",
            "    extent = hub.extent(state.partition)  # read first: events that arrive later come after it\n"
            "    found = hub.first_at(state.partition, moment)\n",
            "    found = hub.first_at(state.partition, moment)\n    extent = hub.extent(state.partition)\n",
        ),
    ),
    *in_file(
        "core/incarnations/hub_check.py",
        f"{UNIT}/ingest/test_gaps.py",
        (
            "a stream begins at the batch that came first, wherever the hub begins",
            "beginning if in_hand is None else min(beginning, in_hand.sequence_number)",
            "beginning if in_hand is None else in_hand.sequence_number",
        ),
    ),
    *in_file(
        "core/ingest/ingest.py",
        f"{UNIT}/ingest/test_ingest.py",
        (
            "a commit without an answer is taken as committed",
            "if doubtful and state.checkpoint and state.checkpoint.commit_id == doubtful.commit_id:",
            "if doubtful and state.checkpoint:",
        ),
        (
            "a commit without an answer is forgotten although it was made",
            "progress.doubtful = commit",
            "progress.doubtful = None",
        ),
        (
            "a conflict is never given to the host",
            "return self.conflicts < CONFLICT_LIMIT",
            "return self.conflicts < 1_000",
        ),
        (
            "a retry after a conflict reads no new references",
            "References(means.store.read_references(keys) if keys else {})",
            "References({})",
        ),
    ),
    *in_file(
        "core/ingest/ingest.py",
        f"{UNIT}/ingest/test_gaps.py",
        ("absent numbers are not counted", "absent=last.sequence_number - first + 1 - len(run),", "absent=0,"),
        (
            "a gap is healed without a note",
            "means.store.note_gap(gap.state, gap.missing, means.clock.now())",
            "means.clock.now()",
        ),
        (
            "healing commits only the first piece of a gap",
            "        yield from _ingest(piece, replace(means, gap_reading=NO_GAP_READING)).commits\n",
            "        yield from _ingest(piece, replace(means, gap_reading=NO_GAP_READING)).commits\n        return\n",
        ),
    ),
    *in_file(
        "core/ingest/gaps.py",
        f"{UNIT}/ingest/test_gaps.py",
        (
            "the part of a gap that was not committed is forgotten",
            "if covered.last < asked.last:",
            "if covered.last > asked.last:",
        ),
        (
            "an event that is in hand and in the hub comes twice",
            "each_once = (next(same) for _, same in groupby(in_order, key=number_of))",
            "each_once = in_order",
        ),
        ("numbers that the hub lost count as healed", '"healed" if is_there else "absent"', '"healed"'),
    ),
    *in_file(
        "core/ingest/stalled_partitions.py",
        f"{UNIT}/ingest/test_stalled_partitions.py",
        (
            "a number is absent although the hub's newest event is young",
            "- extent.last_enqueued_at < self.grace:",
            "< extent.last_enqueued_at:",
        ),
        (
            "a different owner is not noticed during the healing",
            "if commit.first != following:",
            "if not commit.first:",
        ),
        (
            "a partition that moves counts as silent",
            "return seen is not None and seen.waits_for != state.next_number",
            "return seen is None and self.due is None",
        ),
        (
            "the silence check leaves the lost end of a partition open",
            "if state.next_number > gap.last or",
            "if state.next_number >= gap.first or",
        ),
        (
            "one partition with a fault ends the silence check of all",
            "                yield Unhealed(partition, fault)\n",
            "                yield Unhealed(partition, fault)\n                return\n",
        ),
    ),
    *in_file(
        "core/ingest/stalled_partitions.py",
        f"{UNIT}/ingest/test_stalled_partitions.py",
        (
            "a checkpoint of the host moves back",
            "if found.sequence_number >= checkpoint",
            "if found.sequence_number == checkpoint",
        ),
    ),
    *in_file(
        "core/settle/isolate.py",
        f"{ISOLATE}::TestOneRefusedEvent::test_keeps_the_words_of_the_database"
        f" {ISOLATE}::TestManyRefusedEvents::test_are_tried_alone_at_once_where_most_events_are_refused"
        f" {ISOLATE}::TestManyRefusedEvents::test_are_bounded_in_one_invocation_and_the_next_one_goes_on",
        ("refusals of one invocation have no limit", "self.refusals > self.limit", "self.refusals > 100 * self.limit"),
        (
            "events after a refused one are tried all at once again",
            "self.reach = max(1, last - max(self.refused))",
            "self.reach = None",
        ),
    ),
    *in_file(
        "core/settle/settle.py",
        f"{UNIT}/settle/test_settle.py",
        ("the rows of one event share an ordinal", "            ordinal += 1", "            ordinal += 0"),
        (
            "a bad event counts as filtered as well",
            "order.note(letters[-1])\n            continue\n",
            "order.note(letters[-1])\n            rows = ()\n",
        ),
        (
            "later events of a batch do not see the states that earlier ones wrote",
            "        references.learn(placed[2])\n",
            "",
        ),
        ("a missing reference is taken for a bug", 'return "reference"', 'return "unknown"'),
        (
            "a written event counts as filtered",
            "return Settled(blocks, letters, len(events) - filtered - len(letters), filtered)",
            "return Settled(blocks, letters, len(events) - filtered, filtered)",
        ),
    ),
)
