"""Mutants of what stops a partition on purpose: a different hub, the next incarnation, and the fuse."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core"
INCARNATION, CONTRACT = f"{UNIT}/ingest/test_incarnation.py", "tests/contract/test_incarnations.py"

MUTANTS = (
    *in_file(
        "core/ingest/incarnation.py",
        INCARNATION,
        ("a recreated hub is taken for the stream's", "return stored != created_at", "return stored is None"),
        (
            "a reading of the hub is as old as a new hub needs to catch up",
            "return min(OLDEST, max(SOONEST, reached / FASTEST))",
            "return OLDEST",
        ),
        ("a partition is not compared again after a pause", "now - met_at >= PAUSE", "now - met_at >= 1_000 * PAUSE"),
        (
            "each thread reads the hub for itself",
            "if self._reading is None or self._reading.sent <= since:",
            "if self._reading is None or self._reading.sent <= since + 1e9:",
        ),
        (
            "a stream adopts a hub that contradicts its checkpoints",
            "self._compare(store.read_partition(partition))",
            "store.read_partition(partition)",
        ),
        ("a hub that lost the checkpoint fits", "if extent.last < state.next_number - 1:", "if extent.last < -1:"),
        ("a different event at the checkpoint fits", "return abs(one - other) <= SAME_INSTANT", "return bool(one)"),
        (
            "events of the former hub pass for events of the new one",
            "former = bisect_left(batch.events, created_at, key=enqueued_at_of)",
            "former = 0",
        ),
        (
            "events that the hub holds are dropped because of their time",
            "if held is not None and is_same_instant(held.enqueued_at, first.enqueued_at):",
            "if held is not None and held.enqueued_at > created_at:",
        ),
        (
            "a process never notices the next incarnation",
            "    store.forget_partition(state.partition)\n",
            "",
        ),
    ),
    *in_file(
        "core/letters/retry.py",
        "tests/contract/test_incarnations.py",
        (
            "a keeper never begins the letters of the next incarnation",
            "    for _ in range(2):",
            "    for _ in range(1):",
        ),
    ),
    *in_file(
        "core/ingest/ingest.py",
        INCARNATION,
        (
            "a hub that was recreated while a gap was read leaves numbers absent",
            "if batch.asked is not None:  # the hub",
            "if batch.asked is ...:  # the hub",
        ),
        (
            "a stop stays although the hub is the stream's again",
            '    means.store.clear_stops(state, ["incarnation"])\n',
            "",
        ),
    ),
    *in_file(
        "core/ingest/silence.py",
        INCARNATION,
        (
            "a hub that was recreated while a partition is closed leaves numbers absent",
            "        self.means.incarnations.verify_now(state, self.means.store)\n",
            "",
        ),
        (
            "the silence check sees no recreated hub",
            "        self.means.incarnations.verify_whole(state, self.means.store)\n",
            "",
        ),
    ),
    *in_file(
        "core/ingest/fuse.py",
        f"{UNIT}/ingest/test_fuse.py",
        ("poison is taken for an outage", 'if one[0].error_class != "poison" or past().was_good', "if one"),
        ("poison never holds a partition", "or past().was_good", ""),
        ("a crash is taken for an outage", '"refused", "poison")', '"refused", "poison", "crash")'),
        ("a few events of poison hold a partition on", '(self.floor if error_class == "poison" else floor)', "floor"),
        ("a held batch that is delivered smaller becomes letters", "1 if stop else self.floor)", "self.floor)"),
        (
            "real poison blocks a partition for ever",
            "if attempt > self.patience:",
            "if attempt > 1_000 * self.patience:",
        ),
        ("a few failures of a large batch are an outage", " and len(failed) >= self.share * events:", ":"),
        (
            "two classes of failures add up",
            "alike = [one for one in letters if one.error_class == error_class]",
            "alike = [*letters]",
        ),
        (
            "each commit of an invocation is judged alone",
            "letters = [letter for commit in commits for",
            "letters = [letter for commit in commits[-1:] for",
        ),
        ("a patience of none holds batches", "if not self.patience or (not planned", "if (not planned"),
    ),
    *in_file(
        "core/ingest/ingest.py",
        f"{UNIT}/ingest/test_fuse.py",
        (
            "the stop of an outage stays after a healthy batch",
            "outage=is_healthy",
            "outage=False",
        ),
    ),
    *in_file(
        "core/model/commits.py",
        f"{UNIT}/ingest/test_recurrence.py",
        ("a repeated fault stays recorded", '"store": True}', '"store": False}'),
    ),
    *in_file(
        "core/ingest/recurrence.py",
        f"{UNIT}/ingest/test_recurrence.py",
        ("a repeated fault is not recorded", "+ 1 >= RECURRENT", "+ 1 >= 10 * RECURRENT"),
        ("the count of faults begins anew with each batch", "if is_recurrent or stop is not None:", "if is_recurrent:"),
        (
            "a commit that is refused without rows is no fault",
            "from core.errors import InfrastructureFault, StoreFault, StoreUnreachable\n",
            "from core.errors import InfrastructureFault, StoreUnreachable\n"
            "from core.errors import StoreUnavailable as StoreFault\n",
        ),
    ),
    *in_file(
        "core/ingest/silence.py",
        f"{UNIT}/ingest/test_recurrence.py",
        ("a record that a different owner left stays", "and self._has_moved(state):", "and self._has_moved is None:"),
    ),
    *in_file(
        "handlers/ingest.py",
        "tests/unit/handlers/test_ingest.py",
        ("a repeated fault has no line in the log", "    if batch.retries:\n", "    if batch.retries > 99:\n"),
        ("a batch waits past the end of its invocation", "        with in_time():\n", "        if in_time():\n"),
    ),
    *in_file(
        "core/ingest/ingest.py",
        f"{UNIT}/ingest/test_fuse.py",
        ("a stop is not recorded", "        record_stop(batch.partition, stop, means)\n", ""),
    ),
    *in_file(
        "core/settle/store/partitions.py",
        "tests/contract/test_stops.py",
        ("a commit leaves the stops that it ends", "    if commit.ends:\n", "    if commit.ends is None:\n"),
    ),
    *in_file(
        "core/model/commits.py",
        f"{UNIT}/model/test_commits.py",
        ("a process remembers a stop that has ended", "self.state.without_stops(self.ends).stops", "self.state.stops"),
    ),
    *in_file(
        "core/ledger/next_incarnation.py",
        f"{UNIT}/ledger/test_next_incarnation.py",
        (
            "an order is carried out on a state that the person never saw",
            "if expected != (found.number, created_at):",
            "if not all(expected):",
        ),
        (
            "a hub that fits is closed",
            "if evidence is None and not order.is_forced:",
            "if evidence is None and order.is_forced:",
        ),
        ("a dry run opens the next incarnation", "    if not order.is_dry_run:\n", "    if order.reason:\n"),
        (
            "a hub that is recreated during a dry run is opened as it was",
            "if means.hub.created_at() != created_at:",
            "if means.hub.created_at() is None:",
        ),
        (
            "an opening whose answer was lost counts as failed",
            "(opening.closed.number + 1, opening.opened_at):",
            "(opening.closed.number, opening.opened_at):",
        ),
    ),
    *in_file(
        "core/ledger/hub_comparison.py",
        f"{UNIT}/ledger/test_hub_comparison.py",
        (
            "a recreated hub passes the audit",
            "and stored is not None and created_at != stored:",
            "and stored is None:",
        ),
        (
            "a different event at the checkpoint passes the audit",
            "evidence = differing_event(state, hub, hub.extent(state.partition))",
            "evidence = None",
        ),
        (
            "a letter with nested values of a different type counts as changed",
            "return looks_like_a_tag(one) or looks_like_a_tag(other)",
            "return False",
        ),
        (
            "a letter with a changed nested value passes the audit",
            "return len(one) == len(other) and all(map(_agree, one, other))",
            "return len(one) == len(other)",
        ),
    ),
    *in_file(
        "core/ledger/watch.py",
        f"{UNIT}/ledger/test_watch.py",
        (
            "stops raise no alert",
            "stops=sum(map(len, own.store.read_stops().values())),",
            "stops=len(own.store.read_stops()),",
        ),
    ),
    *in_file(
        "core/ledger/store/incarnations.py",
        CONTRACT,
        (
            "two operators open two incarnations",
            'Step("close_incarnation", closing, expect=1, otherwise=conflict),',
            'Step("close_incarnation", closing),',
        ),
        (
            "the next incarnation has no anchors",
            '            Step("anchor_incarnation", {**stream_id, "anchored_at": at}, many=anchors),\n',
            "",
        ),
        (
            "the stops of the former hub stay",
            '            Step("clear_incarnation_stops", stream_id),\n',
            "",
        ),
        (
            "tasks of the former hub continue",
            '            Step("cancel_tasks_of_stream", {**stream_id, "moved_at": at, "fault": WHY_CANCELLED}),\n',
            "",
        ),
        (
            "the states of replays of the former hub stay",
            "        forget_states(self._database)\n",
            "",
        ),
    ),
    *in_file(
        "sql/queries/event_hub_checkpoint.sql",
        CONTRACT,
        (
            "a batch is committed to a closed stream",
            "e.closed_at IS NOT NULL)\nRETURNING commit_number;  -- sqlite only\n\n-- name: count_commit",
            "e.closed_at < '')\nRETURNING commit_number;  -- sqlite only\n\n-- name: count_commit",
        ),
    ),
    *in_file(
        "sql/queries/event_stream.sql",
        CONTRACT,
        ("a stream changes the hub that it adopted", "AND hub_created_at IS NULL;", "AND stream_id > 0;"),
        (
            "a read finds the first incarnation",
            " ORDER BY e.incarnation DESC\n LIMIT 1;\n\n-- name: adopt_hub",
            " ORDER BY e.incarnation\n LIMIT 1;\n\n-- name: adopt_hub",
        ),
    ),
    *in_file(
        "core/store/memory.py",
        CONTRACT,
        (
            "a keeper retries letters of a closed stream for ever",
            "if self._monotonic() - read_at < STREAM_SECONDS else None",
            "if self._monotonic() >= read_at else None",
        ),
    ),
    *in_file(
        "core/store/stream.py",
        CONTRACT,
        (
            "an operator sees the closed stream for ever",
            "Memory(timedelta(), monotonic)",
            "Memory(timedelta(), lambda: 0.0)",
        ),
    ),
    *in_file(
        "core/worker/ownership.py",
        f"{UNIT}/store/test_ownership.py",
        (
            "a worker keeps the links of the former hub",
            'if self._begins_anew and any(wanted["owner_id"] for wanted in ownership_list):',
            "if self._begins_anew and not ownership_list:",
        ),
    ),
    *in_file(
        "handlers/operations/health.py",
        "tests/unit/handlers/operations/test_status.py",
        ("a stopped partition is healthy", "healthy=books.balanced and not stops,", "healthy=books.balanced,"),
    ),
    *in_file(
        "handlers/operations/status.py",
        "tests/unit/handlers/operations/test_status.py",
        ("the status shows no stop", "stops=stop_answers(id, found.stops.get(id, ())),", "stops=[],"),
    ),
)
