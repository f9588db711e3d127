"""The quality of a run, as its job measured it (`jobs/quality.py`) and the app reports it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """A partition in which the tables have a different number of rows than the ledger counts."""

    partition: str
    ledger: int
    found: int


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of the rows that a run added up.

    `rows_ledger`: the appended rows that the ledger counts for the commits of the run; None when some were
    purged. `rows_read`: those that the run read; `rows_removed`: those of its table that a replay removed since;
    `rows_elsewhere`: those of other tables. `fault` says in words that they differ. Shares are of the rows read:
    `null_shares` and `out_of_range_shares` are by column of the source. `transforms` counts the commits by version of
    the transform, and `code` is the version of the modules of app and jobs.
    """

    fault: str | None
    rows_ledger: int | None
    rows_read: int
    rows_removed: int
    rows_elsewhere: int
    rows_difference: int | None
    partitions: tuple[PartitionRows, ...]
    first_commit_at: datetime | None
    late_share: float
    null_shares: Mapping[str, float]
    out_of_range_shares: Mapping[str, float]
    keys: int
    largest_key: str | None
    largest_key_share: float
    transforms: Mapping[str, int]
    code: str | None


def quality_from(text: str | None) -> Quality | None:
    """Return the quality in the JSON of a run; None for a run that has none."""
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    rows, largest = found["rows"], found["largest_key"] or {"key": None, "rows": 0}
    first_at, read = found["first_commit_at"], rows["read"]
    return Quality(
        fault=found["fault"],
        rows_ledger=rows["ledger"],
        rows_read=read,
        rows_removed=rows["removed"],
        rows_elsewhere=rows["other_tables"],
        rows_difference=rows["difference"],
        partitions=tuple(PartitionRows(**one) for one in rows["partitions"]),
        first_commit_at=None if first_at is None else datetime.fromisoformat(first_at),
        late_share=_share(found["late"], read),
        null_shares={name: _share(count, read) for name, count in found["nulls"].items()},
        out_of_range_shares={name: _share(count, read) for name, count in found["out_of_range"].items()},
        keys=found["keys"],
        largest_key=largest["key"],
        largest_key_share=_share(largest["rows"], read),
        transforms=found["transforms"],
        code=found["code"],
    )


def quality_facts(quality: Quality) -> dict[str, object]:
    """Return the figures as fields of a log line: of the shares by column, the greatest."""
    facts: dict[str, object] = {
        "quality_rows_read": quality.rows_read,
        "quality_late_share": quality.late_share,
        "quality_null_share": max(quality.null_shares.values(), default=0.0),
        "quality_out_of_range_share": max(quality.out_of_range_shares.values(), default=0.0),
        "quality_keys": quality.keys,
        "quality_largest_key_share": quality.largest_key_share,
        "quality_code": quality.code,
    }
    if quality.rows_difference is not None:
        facts["quality_rows_difference"] = quality.rows_difference
    if quality.fault is not None:
        facts["quality_fault"] = quality.fault
    return facts


def _share(count: int, rows: int) -> float:
    return round(count / rows, 6) if rows else 0.0
