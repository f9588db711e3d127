"""`runs`: the runs of the aggregation: list, show, pause, resume, repair, backfill, withdraw, cancel, discard."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.text import Text

from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Everything, Why, begun
from hubledger.cli.operate.letters import number_of, segment
from hubledger.cli.output import WARNING, Refused, UsageFault, day, program, seconds, text_of
from hubledger.cli.remote.client import AppAnswer


class What(StrEnum):
    """A run, or its result: the two things that a discard can take away."""

    run = "run"
    result = "result"


RunId = Annotated[str, typer.Argument(metavar="RUN", help="The number of a run, its id, or how the id begins.")]
Aggregate = Annotated[
    str | None,
    typer.Option("--job", metavar="NAME", help="An aggregate, or how it begins; default: the first by name."),
]
Since = Annotated[
    str | None, typer.Option(metavar="DAY", help="The first day in UTC: 2026-02-01, today, yesterday or -3d.")
]
Until = Annotated[str | None, typer.Option(metavar="DAY", help="The last day; default: no end.")]
_COLUMNS = "run=run_id, number#, status*, failure+?, rows#~, planned=planned_at@~, kind~, attempt#~, closed=closed_at@~"


_SAID = {
    "pause": "is paused",
    "resume": "goes on",
    "repair": "is repaired by its next run",
    "backfill": "is filled by its next run",
    "withdraw": "has no order that waits",
}


def job_named(at: At, given: str | None) -> str | None:
    """Return the aggregate that begins as given, or the first by name. The app refuses a name that it does not know."""
    known = at.app.get("aggregations", {"limit": 1}).value["jobs"]
    return next(iter(known), None) if given is None else begun(given, known, "aggregate", "--job ") or given


def list_runs(
    at: At,
    job: Aggregate = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Runs of a page.")] = 20,
    everything: Everything = False,
) -> None:
    """List the runs of an aggregate, the newest first.

    Example: bin/hubledger runs list --job home_activity
    """
    job = job and job_named(at, job)
    pages = list(at.app.pages("aggregations", {"job": job, "limit": limit}, everything))
    if at.out.as_json:
        for page in pages:
            at.out.json(page.text)
        return
    value, out = pages[0].value, at.out

    def noted(what: Mapping[str, Any], said: str) -> Text:
        return Text(text_of(f"{out.ago(what['at'])}, {said}{what['who']}: {what['reason']}"), style=WARNING)

    waiting = value["waiting"]
    facts = {
        "job": value["job"],
        "engine": "none: nothing is summed" if value["engine"] == "none" else value["engine"],
        "oldest commit that waits": seconds(value["lag_seconds"]) if value["engine"] != "none" else None,
        "paused": value["paused"] and noted(value["paused"], "by "),
        "ordered": waiting and noted(waiting, f"{waiting['kind']} by "),
    }
    rows = [{**one, "rows": _rows_of(one)} for page in pages for one in page.value["runs"]]
    out.show(out.facts(facts), out.listing(_COLUMNS, rows) if rows else Text("It has no run yet."))


def _rows_of(run: Mapping[str, Any]) -> Any:
    """Return the rows that the ledger counts for a run, as the page shows them: of its result, else of its plan."""
    counted = (run["quality"] or {}).get("rows_ledger")
    return run["rows_planned"] if counted is None else counted


def run_named(at: At, given: str, job: str | None) -> str:
    """Return the id of the run of an aggregate that has this number, or that begins as given."""
    given = given.lower()
    if re.fullmatch("[0-9a-f]{16}", given) or not given.isascii():  # the app, or the way there, refuses what is no id
        return given
    number, known = number_of(given), list[str]()
    if number is None and not re.fullmatch("[0-9a-f]+", given):
        raise UsageFault(f"{given!r} is no number of a run, and no beginning of an id: {program()} runs list")
    job = job_named(at, job)
    for page in at.app.pages("aggregations", {"job": job, "limit": 100}, True):
        for one in page.value["runs"]:
            if str(one["number"]) == number:
                return str(one["run_id"])
            known.append(one["run_id"])
    if found := begun(given, known, "run"):
        return found
    said = f"{job or 'the app'} has no run {given}; --job names a different aggregate"
    raise Refused(f"{said}\n  look at what there is: {program()} runs list --all")


def show_run(at: At, run_id: RunId, job: Aggregate = None) -> int:
    """Show one run with its failures.

    Ends with 1 when the run has failed.

    Example: bin/hubledger runs show 4f1e2f2b52c84c5f
    """
    return _shown(at, at.app.get(f"aggregations/runs/{segment(run_named(at, run_id, job))}"))


def _shown(at: At, found: AppAnswer) -> int:
    run, out = found.value["run"], at.out
    if out.as_json:
        out.json(found.text)
        return UNHEALTHY if run["status"] == "failed" else GOOD
    days = f"{run['since_day'] or 'the beginning'} to {run['until_day'] or 'now'}"
    made = {
        "run": f"{run['run_id']}, number {text_of(run['number'])} of {run['job']}",
        "days": days if run["kind"] in ("repair", "backfill") else None,
        "quality": dict.fromkeys(("rows_read", "rows_late", "fault")) | (run["quality"] or {}),
        "rows": _rows_of(run),
    }
    words = (
        "run, kind, days, status*, attempt, engine, engine's job=engine_job_id, planned=planned_at@,"
        " submitted=submitted_at@, closed=closed_at@, rows, quality.rows_read, windows, quality.rows_late,"
        " quality=quality.fault!, failure!"
    )
    out.show(out.facts(out.stated(words, {**run, **made})))
    for one in found.value["failures"]:
        failed = f"{out.ago(one['at'])}, attempt {text_of(one['attempt'])}, submit {text_of(one['submit'])}"
        out.show(out.facts({"failed": failed, **out.stated("why, reason&, log&, link", one)}))
    return UNHEALTHY if run["status"] == "failed" else GOOD


def step_runs(at: At, job: Aggregate = None) -> None:
    """Take the timer's next step of an aggregate now, without the pause after a failed run.

    Example: bin/hubledger runs step --job home_activity
    """
    job = job_named(at, job)
    at.confirm(f"Take the next step of {job}?")
    done = at.app.post("aggregations", {"job": job})
    if at.out.as_json:
        return at.out.json(done.text)
    at.out.say(f"{', '.join(done.value['did']) or 'nothing to do'}")
    return None


def pause_runs(at: At, reason: Why, job: Aggregate = None) -> None:
    """Pause an aggregate: no further run is planned, and a running Spark job finishes.

    Example: bin/hubledger runs pause --job home_activity --reason "the database is restored"
    """
    _order(at, "pause", {"job": job, "reason": reason})


def resume_runs(at: At, reason: Why, job: Aggregate = None) -> None:
    """Resume a paused aggregate.

    Example: bin/hubledger runs resume --job home_activity --reason "it is restored"
    """
    _order(at, "resume", {"job": job, "reason": reason})


def repair_runs(at: At, reason: Why, since: Since = None, until: Until = None, job: Aggregate = None) -> None:
    """Order a repair: the windows of some days are summed again.

    Example: bin/hubledger runs repair --since 2026-02-01 --until 2026-02-03 --reason "rows were changed by hand"
    """
    _order(at, "repair", {"job": job, "since_day": day(since), "until_day": day(until), "reason": reason})


def backfill_runs(at: At, reason: Why, since: Since = None, until: Until = None, job: Aggregate = None) -> None:
    """Order a backfill: the first run of an aggregate sums the windows of some days.

    Example: bin/hubledger runs backfill --job flight_punctuality --reason "declared today"
    """
    _order(at, "backfill", {"job": job, "since_day": day(since), "until_day": day(until), "reason": reason})


def withdraw_runs(at: At, reason: Why, job: Aggregate = None) -> None:
    """Withdraw a repair or a backfill that waits for its run.

    Example: bin/hubledger runs withdraw --job home_activity --reason "it is not needed"
    """
    _order(at, "withdraw", {"job": job, "reason": reason})


def _order(at: At, move: str, body: Mapping[str, Any]) -> None:
    days = ""
    if "since_day" in body:
        days = f" from {body['since_day'] or 'the beginning'} to {body['until_day'] or 'now'}"
    body = {**body, "job": job_named(at, body["job"])}
    what = {"pause": "", "resume": "", "withdraw": "the order of "}.get(move, "the windows of ")
    at.confirm(f"{move.capitalize()} {what}{body['job']}{days}?")
    done = at.app.post(f"aggregations/{move}", {"order_id": str(uuid4()), **body})
    if at.out.as_json:
        return at.out.json(done.text)
    at.out.say(f"{done.value['job']} {_SAID[move]}")
    return None


def cancel_run(at: At, run_id: RunId, reason: Why, job: Aggregate = None) -> None:
    """Cancel the Spark job of an open run, whose next attempt follows.

    Example: bin/hubledger runs cancel 4f1e2f2b52c84c5f --reason "the job hangs"
    """
    run_id = run_named(at, run_id, job)
    at.confirm(f"Cancel the job of run {run_id}?")
    _shown(at, at.app.post(f"aggregations/runs/{segment(run_id)}/cancel", {"order_id": str(uuid4()), "reason": reason}))


def discard_run(
    at: At,
    run_id: RunId,
    reason: Why,
    what: Annotated[What, typer.Option(help="The run, or only its staged result.")] = What.run,
    job: Aggregate = None,
) -> None:
    """Discard an open run, or its staged result, and lose no row.

    Example: bin/hubledger runs discard 4f1e2f2b52c84c5f --what result --reason "smaller runs"
    """
    run_id = run_named(at, run_id, job)
    at.confirm(f"Discard {'run' if what is What.run else 'the result of run'} {run_id}?")
    order = {"order_id": str(uuid4()), "what": what.value, "reason": reason}
    _shown(at, at.app.post(f"aggregations/runs/{segment(run_id)}/discard", order))
