"""Mutants of what stops a partition on purpose: a different hub, the next incarnation, and the fuse."""

from tests.mutants.mutant import in_file

UNIT = "tests/core"
INCARNATION, CONTRACT = f"{UNIT}/incarnations/test_hub_check.py", "tests/core/incarnations/test_next_incarnation.py"

MUTANTS = (
    *in_file(
        "core/incarnations/hub_check.py",
        INCARNATION,
        ("a recreated hub is taken for the stream's", "return stored != created_at", "return stored is None"),
        (
            "a stream adopts a hub that contradicts its checkpoints",
            "self._compare(store.read_partition(partition))",
            "store.read_partition(partition)",
        ),
        ("a hub that lost the checkpoint fits", "if extent.last < _following(state) - 1:", "if extent.last < -1:"),
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
    ),
    *in_file(
        "core/model/events.py",
        INCARNATION,
        ("a different event at the checkpoint fits", "return abs(one - other) <= SAME_INSTANT", "return bool(one)"),
    ),
    *in_file(
        "core/ingest/ingest.py",
        INCARNATION,
        (
            "a hub that was recreated while a gap was read leaves numbers absent",
            "if batch.asked is not None:  # the hub",
            "if batch.asked is ...:  # the hub",
        ),
    ),
    *in_file(
        "core/ingest/fuse.py",
        f"{UNIT}/ingest/test_fuse.py",
        ("poison is taken for an outage", 'if one[0].error_class != "poison" or past().was_good', "if one"),
        ("poison never holds a partition", "or past().was_good", ""),
        (
            "real poison blocks a partition for ever",
            "if attempt > fuse.patience:",
            "if attempt > 1_000 * fuse.patience:",
        ),
        ("a few failures of a large batch are an outage", " and len(failed) >= fuse.share * events:", ":"),
    ),
    *in_file(
        "core/ingest/ingest.py",
        f"{UNIT}/ingest/test_ingest.py",
        ("a repeated fault is not recorded", "+ 1 >= RECURRENT", "+ 1 >= 10 * RECURRENT"),
    ),
    *in_file(
        "handlers/ingest.py",
        "tests/handlers/test_ingest.py",
        ("a batch waits past the end of its invocation", "        with in_time():\n", "        if in_time():\n"),
    ),
    *in_file(
        "core/ingest/ingest.py",
        f"{UNIT}/ingest/test_fuse.py",
        ("a stop is not recorded", "        record_stop(batch.partition, stop, means)\n", ""),
    ),
    *in_file(
        "core/settle/partition_store.py",
        "tests/core/settle/test_commit.py",
        ("a commit leaves the stops that it ends", "    if commit.ends:\n", "    if commit.ends is None:\n"),
    ),
    *in_file(
        "core/incarnations/next_incarnation.py",
        f"{UNIT}/incarnations/test_opening.py",
        ("a dry run opens the next incarnation", "    if not order.is_dry_run:\n", "    if order.reason:\n"),
    ),
    *in_file(
        "core/incarnations/next_incarnation.py",
        CONTRACT,
        (
            "two operators open two incarnations",
            'Step("close_incarnation", closing, expect=1, otherwise=conflict),',
            'Step("close_incarnation", closing),',
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
)
