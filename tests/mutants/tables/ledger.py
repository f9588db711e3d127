"""Mutants of the books: the balance, the audit, the recount, the watch, and the runs of aggregation."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core"
TOTALS = "    ranges = RangeAudit(store, id, reading, partial(_faults_of_piece, store, id))\n"
ENDS = "    ends = store.read_ledger_ends(id)\n"

MUTANTS = (
    *in_file(
        "core/ledger/books.py",
        f"{UNIT}/ledger/test_books.py",
        (
            "books with more outcomes than numbers are balanced",
            "return self.is_recorded and self.accounted == self.numbers",
            "return self.is_recorded and self.accounted >= self.numbers",
        ),
        (
            "letters that are missing do not show",
            "return sum(self.counts.values()) + self.purged == self.dead_lettered + self.replayed",
            "return sum(self.counts.values()) <= self.dead_lettered + self.replayed",
        ),
        (
            "letters of replays count as too many",
            "== self.dead_lettered + self.replayed",
            "== self.dead_lettered",
        ),
        (
            "the numbers between the anchor and the first range need no outcome",
            "(self.first if self.anchor is None else self.anchor)",
            "self.first",
        ),
        (
            "held events have no outcome",
            "return self.dead_lettered + self.held",
            "return self.dead_lettered",
        ),
    ),
    *in_file(
        "core/ledger/balance.py",
        f"{UNIT}/ledger/test_books.py",
        (
            "a commit between two statements looks like an imbalance",
            "[one.commit_number for one in partitions] == [one.commit_number for one in before]",
            "len(partitions) == len(before)",
        ),
        (
            "letters of replays that come without rest look like an imbalance",
            "min(max(found - most, less), more)",
            "less",
        ),
    ),
    *in_file(
        "core/ledger/audit.py",
        f"{UNIT}/ledger/test_audit.py",
        (
            "a ledger that ends early passes the audit",
            "if ledger.last < ledger.checkpoint:",
            "if ledger.checkpoint < 0:",
        ),
        (
            "a ledger that ends late passes the audit",
            "if ledger.last > ledger.checkpoint >= 0:",
            "if ledger.checkpoint < 0:",
        ),
        (
            "a ledger that begins late passes the audit",
            "elif ledger.first > anchor:",
            "elif ledger.first < 0:",
        ),
        (
            "a commit without a row passes the audit",
            "yield from _missing_commits(store, id, commits, piece)",
            "yield from ()",
        ),
        ("letters of replays that are missing pass the audit", "    if made != found:\n", "    if made < found:\n"),
        (
            "outcomes that do not sum to the numbers pass the audit",
            "if not ledger.holes and ledger.accounted != ledger.last - ledger.first + 1:",
            "if ledger.holes and ledger.accounted != ledger.last - ledger.first + 1:",
        ),
        (
            "letters of a range that counts none pass the audit",
            "if ledger.letters != ledger.lettered and not any(",
            "if ledger.letters != ledger.lettered and any(",
        ),
    ),
    *in_file(
        "core/ledger/comparison.py",
        f"{UNIT}/ledger/test_audit.py",
        ("an overlap is reported as a hole", "if first > previous_last:", "if commit:"),
    ),
    *in_file(
        "core/ledger/ranges.py",
        "tests/contract/operator/test_verified_commits.py",
        (
            "totals of a checkpoint that are wrong pass the audit",
            "        if not counted.equals(",
            "        if counted.equals(",
        ),
        (
            "ranges with a fault count as verified",
            "            self._add(fault)\n            self._end_clean(before.commit_number)",
            "            self._add(fault)",
        ),
        ("an audit does not end in time", "if self._reading.is_over():", "if False:"),
        (
            "the next audit reads every range again",
            "            self.since = self.summed = verified\n",
            "            self.since = self.summed = purged_sum(None)\n",
        ),
    ),
    *in_file(
        "core/ledger/ranges.py",
        "tests/contract/operator/test_audits_at_once.py",
        (
            "a rival audit keeps the verified commit after a fault",
            "while (totals := self._store.read_totals(self._id)) and totals",
            "if (totals := self._totals) and totals",
        ),
    ),
    *in_file(
        "core/ledger/audit.py",
        "tests/contract/operator/test_audits_at_once.py",
        (
            "a range that comes between two statements is a fault",
            TOTALS + ENDS,
            ENDS + TOTALS,
        ),
    ),
    *in_file(
        "core/ledger/audit.py",
        "tests/contract/operator/test_verified_commits.py",
        ("the search for letters does not end in time", "        if reading.is_over():", "        if False:"),
    ),
    *in_file(
        "core/ledger/recount.py",
        f"{UNIT}/ledger/test_recount.py",
        (
            "retention during a recount looks like a hole",
            "held.overlap(Span(hub.extent(ledger.partition).beginning, extent.last)) or held",
            "held",
        ),
        ("missing rows are reported as added", "if one.rows < one.appended else", "if one.rows > one.appended else"),
        (
            "a hub that ends before the checkpoint passes the recount",
            "if ledger.checkpoint > extent.last:",
            "if extent.last < -1:",
        ),
        (
            "a number that is absent in the ledger and there in the hub passes the recount",
            "faults += _found_after_all(id, numbers, absent)",
            "faults += _found_after_all(id, numbers, [])",
        ),
        (
            "rows after the checkpoint are not looked for",
            "LAST_NUMBER if span.last == ledger.checkpoint else span.last",
            "span.last",
        ),
    ),
    *in_file(
        "core/ledger/watch.py",
        f"{UNIT}/ledger/test_watch.py",
        (
            "a partition that commits counts as stopped",
            "return waits and (one.moved_at is None or now - one.moved_at >= STOPPED_AFTER)",
            "return waits",
        ),
        (
            "absent numbers are never reported",
            "own.store.count_absent(now - ABSENT_WITHIN)",
            "own.store.count_absent(now)",
        ),
        (
            "a partition whose events left the hub has not stopped",
            "waits = one.since is None or",
            "waits = one.since is not None and",
        ),
        (
            "the watch reports the shortest wait of all partitions",
            '"lag_seconds": max(ages(seen).values(), default=0.0),',
            '"lag_seconds": min(ages(seen).values(), default=0.0),',
        ),
        (
            "a partition that never committed waits for number 0",
            "return own.store.find_anchor(id) or SequenceNumber(0)",
            "return SequenceNumber(0)",
        ),
        (
            "a partition ahead of its hub's end reduces the lag of the others",
            "max(0, end + 1 - _following(own, id, known.get(id)))",
            "end + 1 - _following(own, id, known.get(id))",
        ),
        ("a minute records the ends of the hub as its lag", "        lags=lags,", "        lags=ends,"),
    ),
    *in_file(
        "sql/queries/ledger_audit.sql",
        "tests/simulation/test_tampering.py",
        (
            "the audit sees no range that overlaps",
            " WHERE r.first_sequence_number <> r.previous_last + 1\n ORDER BY",
            " WHERE r.first_sequence_number > r.previous_last + 1\n ORDER BY",
        ),
        (
            "the audit misses a commit number at the end",
            "    SELECT :last_commit + 1 AS commit_number",
            "    SELECT :last_commit AS commit_number",
        ),
    ),
    *in_file(
        "sql/queries/ledger_audit.sql",
        "tests/simulation/test_tampering.py",
        (
            "the totals of a commit are compared with themselves",
            "n.total_written <> n.written_before + n.counts * n.written",
            "n.total_written <> n.total_written",
        ),
        (
            "a letter too many in the totals of a checkpoint passes the audit",
            "SELECT c.letters - c.dead_lettered - c.held FROM",
            "SELECT NULL FROM",
        ),
    ),
    *in_file(
        "sql/queries/event_hub_checkpoint.sql",
        "tests/contract/operator/test_books.py",
        ("a batch adds no outcome to the totals", "written = written + :written,", "written = :written,"),
        (
            "a batch of which events are held adds no letter",
            "letters = letters + :dead_lettered + :held",
            "letters = letters",
        ),
    ),
    *in_file(
        "sql/queries/event_hub_checkpoint.sql",
        "tests/contract/operator/test_verified_commits.py",
        (
            "an audit that comes late moves the verified commit back",
            " AND verified_commit = :expected;",
            " AND :expected = :expected;",
        ),
    ),
    *in_file(
        "sql/queries/ledger_audit.sql",
        "tests/contract/operator/test_purges.py",
        (
            "the first commit after a purge may have any totals",
            "LAG(l.total_written, 1, :written_before)",
            "LAG(l.total_written, 1, NULLIF(:written_before, :written_before))",
        ),
    ),
    *in_file(
        "sql/queries/purge_stub.sql",
        "tests/contract/operator/test_purges.py",
        ("a piece of a purge overwrites a newer stub", " AND pieces = :pieces - 1 AND NOT", " AND NOT"),
        ("a purge has two stubs", "WHERE k.stream_id = :stream_id AND k.partition_id = :partition_id)", "WHERE FALSE)"),
    ),
    *in_file(
        "core/ledger/retention/stub.py",
        "tests/contract/operator/test_purges.py",
        ("a changed stub is not named", "if stub.stub_hash != stub_hash(stub):", "if not stub.stub_hash:"),
        ("the hash of letters depends on their order", "(int(before, 16) + ", "(7 * int(before, 16) + "),
        ("the first number of a second purge is its own", "stub.first if stub.batches or", "stub.first if"),
    ),
    *in_file(
        "core/ledger/purged.py",
        "tests/contract/operator/test_purges.py",
        ("an older copy of a stub is not named", "following != stub.commit_number + 1:", "following is None:"),
        ("purged commits may come back", "oldest <= stub.commit_number:", "oldest < 0:"),
    ),
    *in_file(
        "core/settle/cause.py",
        "tests/unit/core/settle/test_cause.py",
        ("letters of one cause have a cause each", "[error_type, template_of(text), ", "[error_type, text, "),
        ("a cause depends on the app's own frames", "if not file.startswith(_NOT_OF_A_ROOM) and", "if"),
        ("a field in a message is a value", 'GAP if found["kept"] is None else', "GAP or"),
        (
            "the frame that is shown is the first one",
            "            found = Place(frame",
            "            found = found if found.line else Place(frame",
        ),
        ("values that all messages share are shown", "len(several) == 1 or len(set(place)) > 1", "place"),
        ("a value has the cause of all its letters", "{_digest(values, CAUSE_LENGTH // 2)}", "{len(values)}"),
    ),
    *in_file(
        "jobs/ranges.py",
        "tests/unit/jobs/test_ledger_query.py",
        ("all purged commits are one slice", "numbers <= 2 * NUMBERS_EACH:", "numbers:"),
    ),
    *in_file(
        "core/aggregation/runs.py",
        f"{UNIT}/aggregation/test_runs.py",
        (
            "a staged result is thrown away while the engine is silent",
            "    if staged is not None:\n",
            "    if staged is not None and answer.answered:\n",
        ),
        (
            "a job is submitted twice while the engine is silent",
            "patience = limits.grace if answer.answered else limits.deadline",
            "patience = limits.grace",
        ),
        ("a run is planned where nothing is new", "if cut_to == standing.cut:", 'if cut_to == "":'),
        (
            "a run is tried without end",
            "run.attempt >= self.attempts or run.submits >= self.submits",
            "run.attempt < 0",
        ),
        (
            "a job beyond its deadline runs on",
            "in (JobState.RUNNING, None) and waited <= limits.deadline",
            "in (JobState.RUNNING, None)",
        ),
        ("a cut depends on the order of its partitions", "json.dumps(named, sort_keys=True,", "json.dumps(named,"),
    ),
    *in_file(
        "core/aggregation/tick.py",
        f"{UNIT}/aggregation/test_tick.py",
        (
            "the engine is called before the intent of a run is stored",
            "    if not own.store.open_run(run):\n",
            "    if _submit(own, run) and not own.store.open_run(run):\n",
        ),
        (
            "a failed run is followed by the next one at once",
            "now - (last.closed_at or now) < own.limits.rest",
            "now < (last.closed_at or now)",
        ),
    ),
    *in_file(
        "core/aggregation/store/commits.py",
        "tests/contract/test_slices.py",
        (
            "a result is committed from a cut that has moved",
            'Step("move_cut", values, expect=1, otherwise=MovedOn),',
            'Step("move_cut", values),',
        ),
    ),
    *in_file(
        "core/store/windows.py",
        "tests/contract/test_aggregation.py",
        (
            "a window forgets its least value",
            'order = "<=" if measure.kind == "least"',
            'order = ">" if measure.kind == "least"',
        ),
        ("a window counts only its last run", 'return f"{standing} + {staged}"', 'return f"{staged}"'),
    ),
    *in_file(
        "core/store/sqlite/windows.py",
        "tests/contract/test_slices.py",
        ("the hash of the staged rows is not compared", " AND d.rows_hash = f.rows_hash\\n", "\\n"),
        (
            "rows of a slice that no job staged are committed",
            "AND f.portion_windows = {of_facts",
            "AND f.portion_windows >= {of_facts",
        ),
        ("a line feed in a key ends its row", ", char(10), ' ')", ", char(11), ' ')"),
    ),
    *in_file(
        "core/aggregation/commit.py",
        "tests/contract/test_slices.py",
        ("a commit begins again at the first slice", "if one.number >= first", "if one.number >= 0"),
        ("a tick commits without an end", "        if at >= until:", "        if False:"),
    ),
    *in_file(
        "sql/queries/aggregation_run.sql",
        "tests/contract/test_slices.py",
        (
            "slices are committed twice",
            " WHERE run_id = :run_id AND cut_from = :cut_from AND status IN ('submitting', 'submitted')\n"
            "   AND committed_slices = :expected_slices",
            " WHERE run_id = :run_id AND cut_from = :cut_from AND status IN ('submitting', 'submitted')\n"
            "   AND committed_slices >= :expected_slices",
        ),
        ("a run fails whose slices are committed", "(committed_slices = 0 OR kind = 'repair')", "1 = 1"),
    ),
)
