"""The runs that a person orders: the plan of a repair and of a backfill, and the reason when one has to wait."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.aggregation.kinds import OrderedKind, RowsFrom
from core.aggregation.runs import NO_CUT, AggregationRun, Cut, Standing, next_run

HOLD = timedelta(hours=2)  # the longest time that a repair which waits for rows keeps increments from moving the cut


@dataclass(frozen=True, slots=True)
class RowSource:
    """The place from which jobs read the rows of a repair or a backfill, and the cut up to which it has them."""

    name: RowsFrom
    cut: Cut

    def __str__(self) -> str:
        return "the lake" if self.name == "lake" else "the database"


@dataclass(frozen=True, slots=True)
class NotYet:
    """The reason why an order has no run. `ends`: it never gets one. `holds`: no increment begins before its run."""

    why: str
    ends: bool = False
    holds: bool = False


def covers(cut: Cut, other: Cut) -> bool:
    """Return True when a cut has every commit of a different one."""
    numbers: Mapping[str, int] = json.loads(cut)
    return all(number <= numbers.get(name, 0) for name, number in json.loads(other).items())


def fitting(cut: Cut) -> OrderedKind:
    """Return the kind of order that a job at a cut takes."""
    return "backfill" if cut == NO_CUT else "repair"


def ordered_run(
    job: str, standing: Standing, source: RowSource, engine: str, now: datetime
) -> AggregationRun | NotYet | None:
    """Return the run of the order that waits, or the reason why it has none; None without an order."""
    order = standing.order
    if order is None:
        return None
    if order.kind != fitting(standing.cut):
        return NotYet(f"the {order.kind} was dropped: {misfit(job, order.kind)}", ends=True)
    if order.kind == "repair" and not covers(source.cut, standing.cut):
        why = f"the repair waits until the rows in {source} reach the cut"
        return NotYet(why, holds=now - order.at < HOLD)
    cut_to = standing.cut if order.kind == "repair" else source.cut
    if cut_to == NO_CUT:
        return NotYet(f"the backfill waits until {source} has rows", holds=True)
    run = next_run(job, standing, cut_to, engine, now)
    return replace(run, kind=order.kind, days=order.days, rows_from=source.name)


def misfit(job: str, kind: OrderedKind) -> str:
    """Return the reason why a job does not take an order of a kind."""
    if kind == "backfill":
        return f"{job} already has commits: order a repair, which replaces the windows of its days"
    return f"{job} has no commit yet: order a backfill"
