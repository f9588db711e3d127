"""The plan of a run in SQL, and the order of a repair or a backfill, which waits beside the cut of its job."""

import json

from core.aggregation.kinds import Days, Order, RunOrder
from core.aggregation.runs import AggregationRun
from core.store.columns import WHO_LENGTH, WHY_LENGTH, cut, instant_text
from core.store.database import Database
from core.store.script import Script, Step


class MovedOn(Exception):
    """Another tick was first; nothing was written."""


def plan_script(run: AggregationRun, order: RunOrder | None = None) -> Script:
    """Return the transaction of a plan, which ends the order of the run: the row of the cut is its lock."""
    values = {
        "run_id": run.run_id,
        "job": run.job,
        "run_number": run.number,
        "expected_number": run.number - 1,
        "cut_from": run.cut_from,
        "cut_to": run.cut_to,
        "engine": run.engine,
        "attempt": run.attempt,
        "submits": run.submits,
        "planned_at": instant_text(run.planned_at),
        "intent_at": instant_text(run.intent_at),
        "rows_limit": -1 if run.rows_limit is None else run.rows_limit,
        "rows_planned": -1 if run.rows_planned is None else run.rows_planned,
        "kind": run.kind,
        "rows_from": run.rows_from,
        **days_values(run.days),
    }
    steps = [Step("number_run", values, expect=1, otherwise=MovedOn)]
    if order is not None:
        ended = {"job": run.job, "ordered_at": instant_text(order.at), "entry": ""}
        steps.append(Step("end_order", ended, expect=1, otherwise=MovedOn))
    return Script(f"plan of {run.run_id}", (*steps, Step("open_run", values)))


def days_values(days: Days) -> dict[str, str]:
    """Return days as parameters; a missing end is an empty text."""
    names = {"since_day": days.since, "until_day": days.until}
    return {name: "" if day is None else day.isoformat() for name, day in names.items()}


def place_values(order: RunOrder) -> dict[str, str]:
    """Return an order as the parameters of its statement."""
    who, why = cut(order.who, WHO_LENGTH), cut(order.reason, WHY_LENGTH)
    told = {"ordered_at": instant_text(order.at), "ordered_by": who, "ordered_why": why}
    return {"kind": order.kind, **days_values(order.days), **told}


def end_values(order: Order, waiting: RunOrder) -> dict[str, str]:
    """Return the parameters of the statement that ends the `waiting` order, and adds `order` to the history."""
    return {**entry_values(order), "ordered_at": instant_text(waiting.at)}


def pause_values(order: Order) -> dict[str, str]:
    """Return the parameters of the statement that pauses a job."""
    who, why = cut(order.who, WHO_LENGTH), cut(order.reason, WHY_LENGTH)
    return {**entry_values(order), "paused_at": instant_text(order.at), "paused_by": who, "paused_why": why}


def entry_values(order: Order, days: Days | None = None) -> dict[str, str]:
    """Return the job of an order, and its line in the history."""
    who, why = cut(order.who, WHO_LENGTH), cut(order.reason, WHY_LENGTH)
    line = {"at": instant_text(order.at), "move": order.move, "by": who, "why": why, "run_id": order.run_id}
    line["order_id"] = order.order_id
    if days is not None:
        line["days"] = str(days)
    return {"job": order.job, "entry": json.dumps(line) + "\n"}


def is_first(database: Database, script: Script) -> bool:
    """Run a transaction; return False when another tick was first."""
    try:
        database.run(script)
    except MovedOn:
        return False
    return True
