"""Mutants of a batch: the guard, the anchor, gaps, silence, the ambiguous commit, settling and halving."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core"
ISOLATE = f"{UNIT}/settle/test_isolate.py"

MUTANTS = (
    *in_file(
        "core/ingest/guard.py",
        f"{UNIT}/ingest/test_guard.py",
        (
            "the guard keeps redelivered events",
            "fresh = events[known:] if known else events",
            "fresh = events",
        ),
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
        (
            "the guard asks the hub twice for the same numbers",
            "if missing and asked and asked.holds(missing):",
            "if missing and asked and asked == missing and asked.length == 1:",
        ),
    ),
    *in_file(
        "core/ingest/anchor.py",
        f"{UNIT}/ingest/test_anchor.py",
        (
            "an event that arrives while the anchor is chosen is left out",
            "    extent = hub.extent(state.partition)  # read first: events that arrive later come after it\n"
            "    found = hub.first_at(state.partition, _moment(state, anchoring))\n",
            "    found = hub.first_at(state.partition, _moment(state, anchoring))\n"
            "    extent = hub.extent(state.partition)\n",
        ),
    ),
    *in_file(
        "core/ingest/anchor.py",
        f"{UNIT}/ingest/test_gaps.py",
        (
            "a stream begins at the batch that came first, wherever the hub begins",
            "return min(hub.extent(state.partition).beginning, in_hand.sequence_number)",
            "return in_hand.sequence_number",
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
            "conflicts that are not in a row add up",
            "        self.conflicts = 0\n",
            "",
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
        (
            "absent numbers are not counted",
            "absent=last.sequence_number - first + 1 - len(run),",
            "absent=0,",
        ),
        (
            "the events in hand are left out while a gap is healed",
            "in_hand = [event for event in self.guarded.run if event.sequence_number <= gap.last]",
            "in_hand = []",
        ),
        (
            "a gap is healed without a note",
            "means.store.note_gap(wound.state, wound.gap, means.clock.now())",
            "means.clock.now()",
        ),
        (
            "healing commits only the first piece of a gap",
            "        yield from _ingest(piece, replace(means, healing=NOT_HEALING)).commits\n",
            "        yield from _ingest(piece, replace(means, healing=NOT_HEALING)).commits\n        return\n",
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
            "healing goes on after its deadline",
            "if not first and now() >= deadline:",
            "if first and now() >= deadline:",
        ),
        (
            "an event that is in hand and in the hub comes twice",
            "return (next(same) for _, same in groupby(events, key=number_of))",
            "return iter(events)",
        ),
        (
            "a gap after the checkpoint is read without the event of the checkpoint",
            "return checkpoint.sequence_number\n",
            "return self.gap.first\n",
        ),
        (
            "numbers that the hub lost count as healed",
            '"healed" if is_there else "absent"',
            '"healed"',
        ),
    ),
    *in_file(
        "core/ingest/silence.py",
        f"{UNIT}/ingest/test_silence.py",
        (
            "a partition is healed before its grace is over",
            "return now - seen.since >= self.grace",
            "return now >= seen.since",
        ),
        (
            "a number is absent although the hub's newest event is young",
            "- extent.last_enqueued_at < self.grace:",
            "< extent.last_enqueued_at:",
        ),
        ("a partition that stands waits again after each healing", "    self._carry(state, commits)\n", "    pass\n"),
        (
            "a different owner is not noticed during the healing",
            "if commit.first != following:",
            "if not commit.first:",
        ),
        ("one long gap keeps the others waiting", "if self.means.clock.now() >= over:", "if not commits:"),
        ("a check of partitions that stand has no end", "if self.means.clock.now() >= self.until:", "if not self.due:"),
        (
            "a hub that sends nothing is waited for too long",
            "max(TURN, self.until - now)",
            "TURN",
        ),
        ("partitions that were not reached do not go first", "deque([*first, *(", "deque([*(),*("),
        (
            "a partition that moves counts as silent",
            "return seen is not None and seen.waits_for != state.next_number",
            "return seen is None and self.due is None",
        ),
        ("a clock that was ahead delays the silence check", "or seen.since > now:", "or seen.since is now:"),
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
        "core/ingest/silence.py",
        f"{UNIT}/ingest/test_trigger.py",
        ("a trigger that moves again keeps its stop", '["trigger"])', "[])"),
        ("a trigger that stands is not recorded", "if carrying.stands(now):", "if carrying.stands(seen.since):"),
        ("the same words are said at each check", "if carrying.words != seen.carrying.words:", "if carrying.words:"),
        ("a stop of the trigger ends where no event waits", 'if stop.reason != "trigger"]', "if stop.reason]"),
        ("a new process waits for the grace again", " or _remembered(state)", ""),
        (
            "a trigger that committed before a new process looks keeps its stop",
            "Standstill(brought_to(stop),",
            "Standstill(state.next_number,",
        ),
    ),
    *in_file(
        "core/ingest/trigger.py",
        f"{UNIT}/ingest/test_trigger.py",
        (
            "a checkpoint of the host moves back",
            "if found.sequence_number >= checkpoint",
            "if found.sequence_number == checkpoint",
        ),
        ("a trigger is lifted in a recreated hub", "        verification.verify_whole(state, store)\n", ""),
        (
            "a fault of the host's storage stops the check",
            "    except HostStorageUnreachable as fault:",
            "    except TypeError as fault:",
        ),
        ("a trigger that moves counts as standing", "now if moves else self.moved_at", "self.moved_at"),
        ("the number at which a trigger stands is forgotten", "return -1 if found is None else found", "return -1"),
    ),
    *in_file(
        "core/remote/hub/undeliverable.py",
        "tests/unit/core/remote/hub/test_undeliverable.py",
        ("a body without a value has a reason", " and message.body is not None:", ":"),
        ("any char has a reason", "<= LAST_CHAR", "<= 0x20"),
        ("half of a pair is a char", " and number not in HALVES", ""),
        ("any URI has a reason", "not _is_uri(value.value)", "value.value"),
        ("a list has a reason", "MAPS = 0x73, 0x00, (0xC1, 0xD1)", "MAPS = 0x73, 0x00, (0xC1, 0xD1, 0x45)"),
    ),
    *in_file(
        "core/remote/trigger/blobs.py",
        "tests/unit/core/remote/trigger/test_blobs.py",
        ("the name of a blob has capitals", ".lower()\n\n\ndef", "\n\n\ndef"),
        (
            "a blob is written over without a comparison",
            "etag=found.tag, match_condition=MatchConditions.IfNotModified",
            "",
        ),
        ("a blob that is there is replaced", "overwrite=False", "overwrite=True"),
        ("the other values of a blob are lost", "{**found.others, ", "{"),
    ),
    *in_file(
        "core/settle/isolate.py",
        f"{ISOLATE}::TestOneRefusedEvent::test_keeps_the_words_of_the_database"
        f" {ISOLATE}::TestManyRefusedEvents::test_are_tried_alone_at_once_where_most_events_are_refused"
        f" {ISOLATE}::TestManyRefusedEvents::test_are_bounded_in_one_invocation_and_the_next_one_goes_on",
        (
            "refusals of one invocation have no limit",
            "self.refusals > self.limit",
            "self.refusals > 100 * self.limit",
        ),
        (
            "a refused event loses the words of the database",
            "self.refused[last] = str(fault)",
            'self.refused[last] = "refused"',
        ),
        (
            "events after a refused one are tried all at once again",
            "self.reach = max(1, last - max(self.refused))",
            "self.reach = None",
        ),
    ),
    *in_file(
        "core/settle/isolate.py",
        f"{ISOLATE}::TestOneRefusedEvent"
        "::test_costs_twice_the_logarithm_of_the_batch_in_calls_beside_its_refusal_and_its_letter",
        (
            "a refused run is tried one event at a time",
            "return run[: max(1, suspects // 2)] if suspects > 0",
            "return run[:1] if suspects > 0",
        ),
    ),
    *in_file(
        "core/settle/settle.py",
        f"{UNIT}/settle/test_settle.py",
        (
            "the rows of one event share an ordinal",
            "            ordinal += 1",
            "            ordinal += 0",
        ),
        (
            "half of a surrogate pair in an error reaches diffs and the host",
            'text.encode("utf-8", "backslashreplace").decode()',
            "text",
        ),
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
        (
            "a missing reference is taken for a bug",
            'return "reference"',
            'return "unknown"',
        ),
        (
            "a written event counts as filtered",
            "return Settled(blocks, letters, len(events) - filtered - len(letters), filtered)",
            "return Settled(blocks, letters, len(events) - filtered, filtered)",
        ),
    ),
    *in_file(
        "core/settle/settle.py",
        f"{UNIT}/ingest/test_ingest.py",
        (
            "every letter of an outage is due at the same moment",
            "due_at = now + policy.backoff.pause(1, clock.chance())",
            "due_at = now + policy.backoff.pause(1, 1.0)",
        ),
        (
            "bodies are stored although the settings leave them to the hub",
            "keeps_body=policy.keep_bodies",
            "keeps_body=True",
        ),
    ),
)
