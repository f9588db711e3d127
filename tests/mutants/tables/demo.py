"""Mutants of the demo's aggregation: its recounts, the counts of its runs, replays and killed jobs, and its kills."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/local"

MUTANTS = (
    *in_file(
        "local/aggregate_proof.py",
        f"{UNIT}/test_aggregate_proof.py",
        ("a demo passes without its runs", "if counts[name] < wanted:", "if counts[name] < 0:"),
        ("an open run is proved", " AND status = 'committed'\"\n", '"\n'),
        (
            "a replay is proved before a run has it",
            "HAVING MAX(l.commit_number > COALESCE(j.value, 0)) = 0 AND MAX(",
            "HAVING MAX(",
        ),
        ("a replay of different rows is proved", "            AND r.table_name = :source\n", ""),
        ("a killed job that was committed itself is proved", " AND r.attempt > f.attempt", ""),
        ("a job that failed by itself is proved", " AND f.reason IN (:killed_alone, :killed_all)", ""),
        ("a missing run is no difference", "[*differences, *missing(counts)]", "differences"),
    ),
    *in_file(
        "local/job_killer.py",
        f"{UNIT}/test_job_killer.py",
        (
            "the demo kills the next attempt too",
            "fetchone()[0]:\n                return True",
            "fetchone()[0]:\n                pass",
        ),
        ("the demo kills a job before its program runs", "Path(words[1]).name == PROGRAM", "Path(words[1]).name"),
    ),
    *in_file(
        "local/aggregating.py",
        f"{UNIT}/test_aggregating.py",
        ("an aggregation whose job works on is given up", "looks = 0 if last !=", "looks = looks + 1 if last !="),
    ),
    *in_file(
        "local/replaying.py",
        f"{UNIT}/test_replaying.py",
        ("the demo replays commits that no run has", "= j.key AND l.commit_number <= j.value", "= j.key"),
        ("the demo replays a hub that is gone", " AND l.stream_id = (SELECT MAX(stream_id) FROM event_stream)", ""),
        ("the demo only rehearses its replay", '"dry_run": False', '"dry_run": True'),
        ("a failed replay passes", 'if job["status"] == "done":', 'if job["status"] in ("done", "failed"):'),
        ("a replay that goes on is given up", "(looks if job == seen else 0), job", "looks, job"),
    ),
    *in_file(
        "examples/flight_info/aggregates/flight_punctuality.py",
        f"{UNIT}/test_aggregate_recount.py",
        (
            "cancelled flights are counted as diverted",
            'CountOf("status", "cancelled")',
            'CountOf("status", "diverted")',
        ),
    ),
    *in_file(
        "local/aggregate_recount.py",
        f"{UNIT}/test_aggregate_recount.py",
        ("a window that only the store has is no difference", "{*self.expected, *self.found}", "self.expected"),
        ("a wrong coarser level is no difference", "for one in self.coarser for", "for one in () for"),
        (
            "a row that is stored twice is recounted once",
            "in rows:\n",
            "in {tuple(row.items()): row for row in rows}.values():\n",
        ),
        ("a sum is recounted without its factor", "measure.times * value", "value"),
        ("an empty sum is recounted as 0", "if not values:\n        return None", "if not values:\n        return 0"),
        ("windows are recounted at half their length", "% of.window)", "% (of.window / 2))"),
        ("the recount of the greatest value takes the least", "else max(values)", "else min(values)"),
    ),
)
