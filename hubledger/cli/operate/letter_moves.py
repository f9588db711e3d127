"""`letters retry` and `letters discard`: a preview, a question, and a job of the app."""

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Why
from hubledger.cli.operate.letters import (
    ANY_TIME,
    ANYWHERE,
    When,
    Where,
    filter_of,
    positions_of,
    reveals,
    segment,
    short_type,
    table_of,
)
from hubledger.cli.operate.tasks import Job, moved_of, outcome_of, wait_for, wait_for_task
from hubledger.cli.output import Refused, UsageFault, counted, program
from hubledger.cli.remote.client import AppAnswer, Refusal

COUNTS = 6  # tries of an order with --yes, each with the count that the app names
LONGEST_WAIT = 90.0  # seconds without a try: the app looks for due letters each minute
Letters = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PARTITION/NUMBER]...", help="Letters by their positions; without any, those that the options choose."
    ),
]
PerSecond = Annotated[int | None, typer.Option("--per-second", metavar="N", min=1, help="Letters a second at most.")]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Return when the app has accepted the job: do not wait for its end.")
]


def retry(
    at: At,
    reason: Why,
    letters: Letters = None,
    where: Where = ANYWHERE,
    when: When = ANY_TIME,
    per_second: PerSecond = None,
    no_wait: NoWait = False,
) -> int:
    """Retry letters: they are due now, and their attempts begin again.

    It shows the number of letters by cause, asks, and waits until each letter was tried. Ctrl-C ends the wait, and the
    job goes on. Ends with 1 when no letter was resolved.

    Example: bin/hubledger letters retry --cause c7d198bb3507cfa9 --reason "the reference table is filled"
    """
    chosen = _chosen(letters, filter_of(at, where, when))
    return _move(at, "retry", chosen, {"reason": reason, "per_second": per_second}, no_wait)


def discard(
    at: At,
    reason: Why,
    letters: Letters = None,
    where: Where = ANYWHERE,
    when: When = ANY_TIME,
    per_second: PerSecond = None,
    no_wait: NoWait = False,
) -> int:
    """Discard letters for good, and keep their events accounted for.

    It shows the number of letters by cause, and asks. Ctrl-C ends the wait, and the job goes on.

    Example: bin/hubledger letters discard 3/41 3/42 --reason "test events of the vendor"
    """
    chosen = _chosen(letters, filter_of(at, where, when))
    return _move(at, "discard", chosen, {"reason": reason, "per_second": per_second}, no_wait)


def _chosen(letters: list[str] | None, given: dict[str, str]) -> dict[str, Any]:
    """Return the letters or the filter, as the app takes them."""
    if letters and given:
        raise UsageFault("name letters or give a filter, not both")
    if not letters:
        return {"filter": given}
    named = dict.fromkeys(positions_of(letters))
    return {"letters": [{"partition_id": partition, "sequence_number": number} for partition, number in named]}


def _move(at: At, move: str, chosen: dict[str, Any], order: dict[str, Any], no_wait: bool) -> int:
    """Order a redrive, wait for the next tries of its letters, and print its end.

    Return 0 when it is done, and a retry has resolved a letter.
    """
    count, chosen = _previewed(at, move, chosen)
    if not count:
        raise Refused(f"no letter to {move}\n  look at what there is: {program()} letters causes")
    at.confirm(f"{move.capitalize()} {counted(count, 'letter')}?")
    wish = {"move": move, **chosen, **order, "expected_count": count}
    for left in reversed(range(COUNTS)):
        try:
            job = at.app.open_task("redrive", wish)
            break
        except Refusal as refusal:  # letters come back from their tries, and with --yes nobody has confirmed a count
            may_count = left and at.yes and "filter" in wish and refusal.kind == "count-differs"
            if not may_count or not refusal.members.get("count"):
                raise
            wish["expected_count"] = refusal.members["count"]
    if job.value["ended_at"] is None and not no_wait:
        found = wait_for_task(at, job, "redrive")
    else:
        at.out.say(f"redrive {job.value['task_id']}")
        found = job
    if no_wait:
        _told(at, found)
        return GOOD
    if found.value["status"] == "done" and found.value["move"] == "retry" and found.value["moved"]:
        found = _tried(at, found.value["task_id"])
    _told(at, found)
    outcome = found.value["outcome"]
    helped = outcome is None or outcome["result"] not in ("did_not_help", "not_tried")
    return GOOD if found.value["status"] == "done" and helped else UNHEALTHY


def _told(at: At, found: AppAnswer) -> None:
    value = found.value
    if at.out.as_json:
        at.out.json(found.text)
    at.out.say(f"{value['status']}: moved {moved_of(value)}")
    if value["unmoved"]:
        at.out.say(f"{counted(value['unmoved'], 'letter')} not moved: changed meanwhile")
    if value["came_later"]:
        at.out.say(f"{counted(value['came_later'], 'letter')} not moved: they came after the preview")
    if value["fault"]:
        at.out.say(f"fault: {value['fault']}")
    outcome = value["outcome"]
    if outcome:
        at.out.say(outcome_of(value) or "")
    if outcome and outcome["result"] == "did_not_help":
        at.out.say(f"Next: {program()} letters causes")
    if outcome and outcome["result"] == "not_tried":
        at.out.say(f"To see how it ends: {program()} tasks show {value['task_id']}")


def _tried(at: At, task_id: str) -> AppAnswer:
    """Wait until each letter of a retry was tried, as long as some are tried within LONGEST_WAIT."""
    seen: tuple[int, float] = (-1, 0.0)

    def is_over(value: Mapping[str, Any]) -> bool:
        nonlocal seen
        outcome = value["outcome"] or {"result": "unknown", "not_tried": 0}
        if outcome["not_tried"] != seen[0]:
            seen = (outcome["not_tried"], time.monotonic())
        return outcome["result"] != "not_tried" or time.monotonic() - seen[1] > LONGEST_WAIT

    said = f"To see how it ends: {program()} tasks show {task_id}"
    return wait_for(
        Job("retry", lambda: at.app.get(f"tasks/{segment(task_id)}"), "done", left=said, is_over=is_over), at.out
    )


def _previewed(at: At, move: str, chosen: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Show the letters that the move would touch. Return their number, and the choice of an order that takes them."""
    if "letters" in chosen:
        return len(chosen["letters"]), chosen
    place = "revealed/dead-letters/preview" if reveals(chosen["filter"]) else "dead-letters/preview"
    answer = at.app.get(place, {"move": move, **chosen["filter"]})
    found: Mapping[str, Any] = answer.value
    if at.out.as_json and not found["count"]:
        at.out.json(answer.text)
    count = int(found["count"])
    if count and not at.out.as_json:
        rows = [{**one, "type": short_type(one["error_type"])} for one in found["causes"]]
        shown = "cause=fingerprint, class=error_class, error type=type, letters#"
        at.out.show(at.out.listing(shown, rows, f"{move}: {counted(count, 'letter')} by cause"))
        at.out.show(table_of(at.out, found["sample"], "some of them"))
    return count, {"filter": {**chosen["filter"], "failed_before": found["failed_before"]}}
