"""`tasks`, `replay`, `purge` and `erase`: work that takes longer than one request: start, wait, show, pause, cancel."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Annotated, Any, Literal, NamedTuple

import typer
from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from core.tasks.statuses import TaskStatus
from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Everything, Why, begun
from hubledger.cli.operate.letters import messages_of, number_of, numbers_in, segment
from hubledger.cli.output import (
    BAD,
    GREEN,
    WARNING,
    WRITTEN,
    Column,
    Output,
    Refused,
    UsageFault,
    brief,
    counted,
    moment,
    printable,
    program,
    text_of,
    toned,
    yes_or_no,
)
from hubledger.cli.remote.client import AppAnswer, Interrupted, NoConnection, Refusal

EVERY = 0.5  # seconds between two looks at a task
LONG = 36  # characters of an id
SILENT = 20  # looks without an answer, after which the command ends: the task does not need it
ENDED = ("done", "cancelled", "failed")
_NOTHING = "There is nothing to do."
PAGE = 20  # events of a diff that `start` shows
_DRY = ("events_changed", "rows_added", "rows_removed", "rows_changed", "letters_added", "letters_resolved", "gone")
_REAL = ("events", "rows_written", "rows_retracted", "letters_added", "letters_resolved", "held", "gone")
Value = Mapping[str, Any]
Listing = tuple[str, str, str]  # the list of an answer, the words of its columns, and a title


def replay_facts(out: Output, value: Value) -> dict[str, object]:
    """Return the facts of a replay that no other task has."""
    counts = value["counts"]
    return {
        "kind": _kind_of(value),
        **{name.replace("_", " "): counts[name] for name in (_DRY if value["dry_run"] else _REAL)},
        **({"keys": value["keys"], "other keys": value["other_keys"]} if "keys" in value else {}),
        "transform": value["transform_version"],
        **{
            f"transforms of partition {one['partition_id']}": ", ".join(one["transform_versions"])
            for one in value["partitions"]
            if len(one["transform_versions"]) > 1
        },
    }


def _kind_of(value: Value) -> str:
    return "dry run: nothing was changed" if value["dry_run"] else "for real"


def replay_lines(value: Value) -> list[str]:
    """Return what is said of the partitions in which nothing can be replayed, and of keys without an event."""
    lines = [f"left out: partition {one['partition_id']}, {one['why']}" for one in value["left_out"]]
    if "keys" in value and value["status"] == "done" and not value["counts"]["events"]:
        lines.append("no event of the range has one of these partition keys")
    return lines


def redrive_facts(out: Output, value: Value) -> dict[str, object]:
    """Return the facts of a redrive that no other task has."""
    letters = value.get("letters")
    return {
        "move": value["move"],
        "letters": f"{text_of(len(letters))} selected" if letters else brief(value.get("filter") or {}) or "all",
        "moved": moved_of(value),
        "unmoved": value["unmoved"],
        "came later": value["came_later"],
        "outcome": outcome_of(value),
        "per second": value["per_second"],
    }


def outcome_of(value: Value) -> Text | None:
    """Return what became of the letters that a retry moved, in its colour, or None where it is unknown."""
    outcome = value.get("outcome")
    if outcome is None:
        return None
    seen = outcome["letters"]
    of_some = f"of {counted(seen, 'letter')}: " if seen < value["moved"] else ""
    return Text(of_some + text_of(outcome["words"]), style=GREEN if outcome["result"] == "helped" else WARNING)


def moved_of(value: Value) -> str:
    """Return how many of the confirmed letters a redrive moved."""
    return f"{text_of(value['moved'])} of {counted(value['total'], 'letter')}"


def audit_facts(out: Output, value: Value) -> dict[str, object]:
    """Return what an audit has found. It knows that the ledger is balanced only when it is done."""
    count, status = len(value["faults"]), value.get("status", "done")
    ledger = yes_or_no(value["balanced"], "balanced", "NOT BALANCED")
    is_known = count or status == "done"
    return {
        "ledger": ledger if is_known else Text(f"not known: the audit is {text_of(status)}", style=WARNING),
        "accounted": value["accounted"],
        "faults": Text(text_of(count), style=BAD if count else "") if is_known else None,
    }


def plain_facts(out: Output, value: Value) -> dict[str, object]:
    """Return the fields that only this kind has, but no lists: they follow `history`, the last one of every kind."""
    own = [*dropwhile(lambda name: name != "history", value)][1:]
    return {name.replace("_", " "): brief(value[name]) for name in own if not isinstance(value[name], list)}


def tables_of(out: Output, value: Value, tables: Sequence[Listing]) -> Iterator[RenderableType]:
    """Yield the tables of a task that have rows."""
    for field, words, title in tables:
        rows = value[field]
        if rows:
            pairs = rows if isinstance(rows, list) else [{"table": name, "rows": count} for name, count in rows.items()]
            yield out.listing(words, pairs, title)


class Shown(NamedTuple):
    """The parts of the output for a kind of task: its own facts, its tables, and the lines after them."""

    facts: Callable[[Output, Value], dict[str, object]]
    tables: Sequence[Listing] = ()
    lines: Callable[[Value], list[str]] = lambda _: []


AUDIT: Sequence[Listing] = (
    (
        "partitions",
        "partition=partition_id, first#~, last#, commits#, accounted#, letters#~, complete, state=balanced^",
        "",
    ),
    ("faults", "partition=partition_id, kind!, first#, last#, detail", "faults"),
)
_OF_REPLAY = "partition=partition_id, first#, last#, next#, events=counts.events#, closed=closed_at@~, note~?"
_PURGED = "table, rows#, octets=bytes#~, oldest@~, newest@~, what stays=notes~?"
_OF_A_PURGE = "rows, ages in days=older_than_days%"
_FOUND = "stream%?, partition=partition_id, number=sequence_number#"
_OF_ERASURE = "subjects, rows, letters, reasons, staged, retracted, diffs"
KINDS: Mapping[str, Shown] = {
    "replay": Shown(replay_facts, (("partitions", _OF_REPLAY, ""),), replay_lines),
    "redrive": Shown(redrive_facts),
    "purge": Shown(
        lambda out, value: {"kind": _kind_of(value), **out.stated(_OF_A_PURGE, value)}, (("tables", _PURGED, ""),)
    ),
    "audit": Shown(audit_facts, AUDIT),
    "erasure": Shown(
        lambda out, value: {"kind": _kind_of(value), **out.stated(_OF_ERASURE, value)},
        (("tables", "table, rows#", "rows"), ("letters_found", _FOUND, "the first letters that mention them")),
        lambda value: [str(one) for one in value["notes"]],
    ),
}

TaskId = Annotated[str, typer.Argument(metavar="ID", help="The id of a task, or how it begins.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when the app has accepted the dry run.")]
KindName = Literal["replay", "redrive", "purge", "audit", "erasure"]
_Kind = Annotated[KindName | None, typer.Option("--kind", help="One kind. Default: all.")]
_Status = Annotated[TaskStatus | None, typer.Option("--status", help="One status. Default: all.")]
_COLUMNS = "id=task_id, kind=is, status*, done#~, total#~, requested=requested_at@~, by=requested_by~, reason~, fault+?"


def list_tasks(
    at: At,
    kind: _Kind = None,
    status: _Status = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Tasks of a page.")] = 20,
    everything: Everything = False,
) -> None:
    """List tasks, the newest first.

    Example: bin/hubledger tasks list --kind replay
    """
    rows, _ = at.listed("tasks", "tasks", {"kind": kind, "status": status, "limit": limit}, everything)
    if not at.out.as_json:
        kinds = [{**one, "is": f"{one['kind']}, dry run" if one["dry_run"] else one["kind"]} for one in rows]
        at.out.show(at.out.listing(_COLUMNS, kinds))


def task_named(at: At, given: str) -> str:
    """Return the id of the task that begins as given."""
    given = given.lower()
    if len(given) == LONG or not given.isascii():  # the app, or the way there, refuses what is no id
        return given
    if not re.fullmatch("[0-9a-f-]+", given):
        raise UsageFault(f"{given!r} is no id of a task, and no beginning of one: {program()} tasks list")
    pages = at.app.pages("tasks", {"limit": 100}, True)
    if found := begun(given, [one["task_id"] for page in pages for one in page.value["tasks"]], "task"):
        return found
    raise Refused(f"no id of a task begins with {given}\n  look at what there is: {program()} tasks list --all")


def show_task(at: At, task_id: TaskId) -> int:
    """Show a task with its progress and its history.

    Ends with 1 when the task has failed, or an audit has found a fault.

    Example: bin/hubledger tasks show 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11
    """
    return shown(at, at.app.get(f"tasks/{segment(task_named(at, task_id))}"))


def shown(at: At, found: AppAnswer) -> int:
    """Print a task. Return 1 when it has failed, or has found a fault."""
    value, out = found.value, at.out
    own = KINDS.get(value["kind"], Shown(plain_facts))
    if out.as_json:
        out.json(found.text)
    else:
        times = {"started": "started_at", "updated": "updated_at", "ended": "ended_at"}
        cause = (value.get("filter") or {}).get("fingerprint")  # of the letters of a redrive
        facts = {
            value["kind"]: value["task_id"],
            "status": toned(value["status"]),
            "done": f"{text_of(value['done'])} of {text_of(value['total'])}",
            **{name: one for name, one in own.facts(out, value).items() if value["status"] != "planned" or one != 0},
            "reason": value["reason"] or None,
            "requested": f"{out.ago(value['requested_at'])} by {value['requested_by']}",
            **{name: out.ago(value[field]) for name, field in times.items() if value.get(field)},
            "fault": value["fault"],
            "cause": cause and "; ".join(dict.fromkeys(messages_of(at, {"fingerprint": cause}).values())),
        }
        tables = (*own.tables, ("history", "at@, move, by, why", "history"))
        out.show(out.facts(facts), *tables_of(out, value, tables))
        out.say(*own.lines(value))
        if value["status"] in ("planned", "running"):
            out.say(f"It is {value['status']}. To see how it ends: {program()} tasks show {value['task_id']}")
    return UNHEALTHY if value["status"] == "failed" or value.get("faults") else GOOD


@dataclass(frozen=True, slots=True)
class Job:
    """Work of the app that the command waits for: its name, its answer, and the fields that count its progress.

    `left` is printed when a person leaves the wait. By default the wait is over when the work has ended or is paused.
    """

    name: str
    read: Callable[[], AppAnswer]
    done: str
    total: str = "total"
    left: str = ""
    is_over: Callable[[Value], bool] = lambda value: value["status"] in (*ENDED, "paused")


def wait_for(job: Job, out: Output, every: float = EVERY) -> AppAnswer:
    """Return the answer about a job when the wait is over. Ctrl-C ends the wait, not the job."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[word]}", markup=False),
        TimeRemainingColumn(),
    )
    is_hidden, silent = out.as_json or not out.errors.is_terminal, 0
    try:
        with Progress(*columns, console=out.errors, transient=True, disable=is_hidden) as bar:
            task = bar.add_task(job.name, total=None, word="")
            while True:
                try:
                    found = job.read()
                except (NoConnection, Refusal) as fault:
                    silent += 1
                    if silent >= SILENT or (isinstance(fault, Refusal) and fault.status < 500):
                        raise
                else:
                    silent, value = 0, found.value
                    done, total = value.get(job.done) or 0, value.get(job.total)
                    counts = text_of(done) if total is None else f"{text_of(done)} of {text_of(total)}"
                    said = value.get("fault") or (value.get("outcome") or {}).get("words") or value["status"]
                    bar.update(task, completed=done, total=total, word=printable(f"{counts} {said}"))
                    if job.is_over(value):
                        return found
                time.sleep(every)
    except KeyboardInterrupt:
        raise Interrupted(f"the {job.name} goes on in the app. {job.left}") from None


def wait_for_task(at: At, accepted: AppAnswer, name: str) -> AppAnswer:
    """Show the progress of a task until it has ended or is paused. Return its last answer."""
    task_id = accepted.value["task_id"]
    at.out.say(f"{name} {task_id}")
    left = f"To pause it: {program()} tasks pause {task_id}"
    return wait_for(Job(name, lambda: at.app.get(f"tasks/{segment(task_id)}"), "done", left=left), at.out)


def finished(at: At, accepted: AppAnswer, name: str) -> tuple[int, Value]:
    """Wait for a task, and print its end. Return the task, and 0 when it is done without a fault."""
    found = wait_for_task(at, accepted, name)
    code = shown(at, found)
    return (code if found.value["status"] == "done" else UNHEALTHY), found.value


def dry_run_first(
    at: At, kind: str, order: Mapping[str, object], asked: Callable[[Value], str], *, for_real: bool, no_wait: bool
) -> int:
    """Open a task as a dry run. `asked` shows its result and returns the question, or "" if there is nothing to do.

    `for_real` then asks, and has it done. `no_wait` returns at once.
    """
    if for_real and no_wait:
        raise UsageFault("--for-real needs the dry run first, so it has to wait: leave out --no-wait")
    if for_real:
        at.refuse_without_person()
    dry = at.app.open_task(kind, {**order, "dry_run": True})
    if no_wait:
        return shown(at, dry)
    code, found = finished(at, dry, "dry run")
    question = asked(found)
    if code == GOOD and not (question and for_real):
        at.out.say("Nothing was changed yet: the same command with --for-real does it." if question else _NOTHING)
    elif code == GOOD:
        at.confirm(question)
        code, _ = finished(at, at.app.open_task(kind, {**order, "dry_run": False}), kind)
    return code


def pause_task(at: At, task_id: TaskId, reason: Why) -> int:
    """Pause a task between two pieces, and keep its work so far.

    Example: bin/hubledger tasks pause 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "the database is slow"
    """
    return _move(at, task_id, "pause", reason)


def resume_task(
    at: At,
    task_id: TaskId,
    reason: Why,
    transform_version: Annotated[
        str | None, typer.Option("--transform-version", help="The new version of the transform with which it goes on.")
    ] = None,
) -> int:
    """Resume a paused task.

    Example: bin/hubledger tasks resume 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "it is fast again"
    """
    return _move(at, task_id, "resume", reason, transform_version)


def cancel_task(at: At, task_id: TaskId, reason: Why) -> int:
    """Cancel a task for good, and keep its work so far.

    Example: bin/hubledger tasks cancel 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "the wrong range"
    """
    return _move(at, task_id, "cancel", reason)


def _move(at: At, task_id: str, move: str, reason: str, version: str | None = None) -> int:
    task_id = task_named(at, task_id)
    at.confirm(f"{move.capitalize()} task {task_id}?")
    return shown(at, at.app.post(f"tasks/{segment(task_id)}/{move}", {"reason": reason, "transform_version": version}))


_Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="ID", help="A partition; give it once for each. Default: all."),
]
_PLACE = f"a sequence number, or a time: {WRITTEN}"
_From = Annotated[str | None, typer.Option("--from", metavar="PLACE", help=f"The first event: {_PLACE}.")]
_To = Annotated[
    str | None, typer.Option("--to", metavar="PLACE", help=f"The last number, or the time at which it ends: {_PLACE}.")
]
_Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key", metavar="KEY", help="Only events of this partition key; give it once for each. Default: all."
    ),
]


def start_replay(
    at: At,
    reason: Why,
    partitions: _Partitions = None,
    first: _From = None,
    to: _To = None,
    keys: _Keys = None,
    for_real: Annotated[bool, typer.Option("--for-real", help="After the dry run, replay for real; it asks.")] = False,
    no_wait: NoWait = False,
) -> int:
    """Start a replay: a dry run, which shows the rows that would change.

    --for-real asks after the dry run, and replays. Ctrl-C ends the wait, and the replay goes on.

    Example: bin/hubledger replay start --partition 3 --from 40 --to 90 --reason "version 2 corrects the unit"
    """

    def place(text: str | None) -> dict[str, str] | None:
        if text is None:
            return None
        return {"sequence_number": number} if (number := number_of(text)) else {"enqueued_at": str(moment(text))}

    def asked(found: Value) -> str:
        if found["counts"]["events_changed"]:
            show_diff(at, found["task_id"])
        elif found["status"] == "done":
            at.out.say("No row and no letter would change.")
            return "Replay it all the same?" if for_real else ""
        return f"Replay {counted(found['counts']['events'] if keys else found['total'], 'event')} for real?"

    named, (begin, end) = numbers_in(partitions or [], first, to)
    wish = {"partitions": named or None, "from": place(begin), "to": place(end), "reason": reason}
    return dry_run_first(at, "replay", {**wish, "keys": keys or None}, asked, for_real=for_real, no_wait=no_wait)


def diff(
    at: At,
    task_id: TaskId,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Events of a page.")] = PAGE,
    everything: Everything = False,
) -> None:
    """Show the rows that a dry run would change. It reveals events, and the app logs who saw them.

    Example: bin/hubledger tasks diff 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11 --all
    """
    show_diff(at, task_named(at, task_id), limit, everything)


def show_diff(at: At, task_id: str, limit: int = PAGE, everything: bool = False) -> None:
    """Print the rows that a dry run would change."""
    events, following = at.listed(f"tasks/{segment(task_id)}/diff", "events", {"limit": limit}, everything)
    rows: list[list[object]] = []
    for event in () if at.out.as_json else events:
        head: list[object] = [event["partition_id"], event["sequence_number"]]
        rows += [[*head, how, one["table"], brief(one["row"])] for how in ("added", "removed") for one in event[how]]
        for one in event["changed"]:
            changes = ", ".join(f"{name}: {brief(old)} → {brief(new)}" for name, (old, new) in one["columns"].items())
            rows.append([*head, "changed", one["table"], changes])
        if event["outcome"] != "written":
            why = f": {event['error']}" if event["error"] else ""
            rows.append([*head, toned(event["outcome"]), None, f"the event becomes {event['outcome']}{why}"])
    columns = (Column("partition"), Column("number", number=True), Column("change"), Column("table"), Column("row"))
    at.out.show(at.out.table(columns, rows, "rows that would change"))
    if following:
        at.out.say(f"There are more: {program()} tasks diff {task_id} --all")


_Older = Annotated[
    list[str] | None,
    typer.Option(
        "--older-than",
        metavar="TABLE=DAYS",
        help="The age of a table's rows; give it once for each. Default: docs/retention.md.",
    ),
]


def start_purge(
    at: At,
    reason: Why,
    older_than: _Older = None,
    for_real: Annotated[bool, typer.Option("--for-real", help="After the dry run, remove the rows; it asks.")] = False,
    no_wait: NoWait = False,
) -> int:
    """Remove old rows of the store: a dry run, which counts them.

    --for-real asks after the dry run, and removes them. Ctrl-C ends the wait, and the purge goes on.

    Example: bin/hubledger purge start --older-than event_hub_dead_letter=180 --reason "half a year of letters"
    """
    ages = {}
    for one in older_than or []:
        table, _, days = one.partition("=")
        if not table or not days.isascii() or not days.isdigit():
            raise UsageFault(f"--older-than {one}: write TABLE=DAYS, such as event_hub_dead_letter=180")
        ages[table] = int(days)
    order = {"older_than_days": ages or None, "reason": reason}

    def asked(found: Value) -> str:
        return f"Remove {counted(found['rows'], 'row')} for good?" if found["rows"] else ""

    return dry_run_first(at, "purge", order, asked, for_real=for_real, no_wait=no_wait)


_Subjects = Annotated[
    list[str],
    typer.Argument(metavar="SUBJECT...", help="Partition keys, or values of the column that the room declares."),
]
_MostRows = Annotated[
    int | None, typer.Option("--most-rows", min=0, help="End before more rows are erased. Default: no limit.")
]


def start_erasure(
    at: At,
    subjects: _Subjects,
    reason: Why,
    most_rows: _MostRows = None,
    for_real: Annotated[bool, typer.Option("--for-real", help="After the dry run, erase them; it asks.")] = False,
    no_wait: NoWait = False,
) -> int:
    """Forget persons or things: a dry run, which counts what there is of them.

    --for-real asks after the dry run, and erases them. No replay brings them back. Ctrl-C ends the wait, and the
    erasure goes on. The reason is stored, so it must name nobody.

    Example: bin/hubledger erase start home-7 --reason "request 4711" --for-real
    """
    order = {"subjects": list(dict.fromkeys(subjects)), "reason": reason, "most_rows": most_rows}
    question = "Erase these subjects for good?"
    return dry_run_first(at, "erasure", order, lambda _: question, for_real=for_real, no_wait=no_wait)


def forget_key(
    at: At,
    reason: Why,
    for_real: Annotated[bool, typer.Option("--for-real", help="After the dry run, forget them; it asks.")] = False,
) -> None:
    """Forget lost keys of erased subjects: a dry run, which shows them.

    This is the way out when nobody has the key any more. Then nothing waits for it, and what was erased with it can
    come back: by a retry, a replay or the next incarnation, out of the hub, Capture or letters. Erase the subjects
    again.

    Example: bin/hubledger erase forget-key --reason "the vault was deleted" --for-real
    """
    if for_real:
        at.refuse_without_person()
    found = at.app.post("erasure-keys/forget", {"reason": reason, "dry_run": True})
    keys = found.value["keys"]
    if not at.out.as_json:
        words = "key=key_hash, subjects#, last erasure=erased_at@"
        at.out.show(at.out.listing(words, keys) if keys else Text("The app has the key of every erased subject."))
    if for_real and keys:
        at.confirm(f"Forget {counted(len(keys), 'key')}? What was erased before {keys[0]['erased_at']} can come back.")
        found = at.app.post("erasure-keys/forget", {"reason": reason, "dry_run": False})
        if not at.out.as_json:
            at.out.show(at.out.facts({"outcome": "forgotten", "keys": len(keys)}))
    if at.out.as_json:
        at.out.json(found.text)
