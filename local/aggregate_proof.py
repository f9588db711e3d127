"""The proof of a demo's aggregate: its recount, and its runs, replays and killed jobs, counted from the store."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from core.model.aggregates import Aggregate
from core.model.rows import row_table
from local.aggregate_recount import Recounted, recount_aggregate
from local.aggregates import aggregate_of_demo
from local.books import reading
from local.feed.domains import HOMES, Domain

SERVED_AT = "http://localhost:7071"  # the address of `make serve`
WANTED = {"runs": 3, "replays": 1, "killed": 1}  # at least
# The engine's reason where its job was killed: Spark alone (128 + SIGKILL), or all of its processes.
KILLED = ("spark-submit ended with 137", "its processes were killed")

_RUNS = "SELECT COUNT(*) FROM aggregation_run WHERE job = :job AND status = 'committed'"
# A replay counts when all its commits are in committed runs, and one of them has replaced rows of the aggregate.
_REPLAYS = """
SELECT COUNT(*) FROM (
    SELECT l.invocation_id
    FROM batch_ledger AS l JOIN aggregation_cut AS c ON c.job = :job
        LEFT JOIN json_each(c.cut) AS j ON j.key = l.stream_id || '/' || l.partition_id
    WHERE l.kind = 'replay'
    GROUP BY l.invocation_id
    HAVING MAX(l.commit_number > COALESCE(j.value, 0)) = 0 AND MAX(EXISTS (
        SELECT 1 FROM retracted_row AS r
        WHERE r.stream_id = l.stream_id AND r.partition_id = l.partition_id AND r.commit_number = l.commit_number
            AND r.table_name = :source
    ))
)
"""
# A killed job counts when a later attempt of its run was committed.
_KILLED = """
SELECT COUNT(*) FROM aggregation_failure AS f JOIN aggregation_run AS r ON r.run_id = f.run_id
WHERE r.job = :job AND r.status = 'committed' AND r.attempt > f.attempt AND f.reason IN (:killed_alone, :killed_all)
"""
_MISSING = {
    "runs": "{found} runs are committed, but the demo must have at least {wanted}; more EVENTS make more runs",
    "replays": "no committed run has a replay of rows that it adds up",
    "killed": "no run was committed by a later attempt after its job was killed",
}


def prove_aggregate(domain: Domain, store: Path, show: Callable[[str], object]) -> tuple[dict[str, object], list[str]]:
    """Return the figures of the aggregate and all differences; show the address of a home's page."""
    of = aggregate_of_demo(domain)
    recounted = recount_aggregate(of, store)
    differences = recounted.differences
    if not recounted.found:
        differences.append(f"{of.name}: it is empty")
    counts = count_work(store, of)
    figures: dict[str, object] = {
        "aggregate": {"name": of.name, "equals_recount": not differences, "rows": recounted.rows},
        "aggregation": {**counts, "windows": len(recounted.found)},
    }
    if domain is HOMES:
        figures["home_page"] = _page(busiest_home(recounted), store, show)
    return figures, [*differences, *missing(counts)]


def count_work(store: Path, of: Aggregate) -> dict[str, int]:
    """Count the committed runs of an aggregate, the replays in them, and the killed jobs that a later attempt redid."""
    source = row_table(of.source).name
    values = {"job": of.name, "source": source, "killed_alone": KILLED[0], "killed_all": KILLED[1]}
    queries = {"runs": _RUNS, "replays": _REPLAYS, "killed": _KILLED}
    with reading(store) as connection:
        return {name: int(connection.execute(query, values).fetchone()[0]) for name, query in queries.items()}


def missing(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each count that is too small: such a demo proves less than it must."""
    for name, wanted in WANTED.items():
        if counts[name] < wanted:
            yield f"aggregation: {_MISSING[name].format(found=counts[name], wanted=wanted)}"


def busiest_home(recounted: Recounted) -> str | None:
    """Return the home with the most readings in the aggregate; None when nothing was aggregated."""
    readings: Counter[str] = Counter()
    for (home_id, *_), (count, *_) in recounted.found.items():
        readings[home_id] += count
    return max(readings, key=lambda home_id: (readings[home_id], home_id), default=None)


def _page(home_id: str | None, store: Path, show: Callable[[str], object]) -> str | None:
    if home_id is None:
        return None
    page = f"{SERVED_AT}/api/homes/{home_id}"
    show(f"a home's page: {page}   once `make serve FOLDER={store.parent}` says that it is ready")
    return page
