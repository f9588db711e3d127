"""Wait for a job of the app: a bar on a terminal, and what goes on after Ctrl-C."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from hubledger.cli.output import Output, printable, text_of
from hubledger.cli.remote.client import AppAnswer, Interrupted, NoConnection, Refusal

EVERY = 0.5  # seconds
SILENT = 20  # looks without an answer, after which the command ends: the job does not need it
ENDED = ("done", "cancelled", "failed")


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the app: how it is named and read, which fields count its progress, what a person is told who leaves it,
    and when the wait is over: when it has ended or is paused, if nothing else is said."""

    name: str
    read: Callable[[], AppAnswer]
    done: str
    total: str = "total"
    left: str = ""
    is_over: Callable[[Mapping[str, Any]], bool] = lambda value: value["status"] in (*ENDED, "paused")


def wait_for(job: Job, out: Output, every: float = EVERY) -> AppAnswer:
    """Return the answer about a job when the wait is over. Ctrl-C ends the wait, not the job."""
    silent = 0
    with _bar(out) as bar:
        task = bar.add_task(job.name, total=None, word="")
        while True:
            try:
                found = job.read()
                silent = 0
                _advance(bar, task, found.value, job)
                if job.is_over(found.value):
                    return found
            except (NoConnection, Refusal) as fault:
                silent += 1
                if silent >= SILENT or (isinstance(fault, Refusal) and fault.status < 500):
                    raise
            except KeyboardInterrupt:
                raise _left(job) from None
            _pause(job, every)


def _pause(job: Job, every: float) -> None:
    try:
        time.sleep(every)
    except KeyboardInterrupt:
        raise _left(job) from None


def _left(job: Job) -> Interrupted:
    return Interrupted(f"the {job.name} goes on in the app. {job.left}")


def _bar(out: Output) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[word]}", markup=False),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=out.errors, transient=True, disable=out.as_json or not out.errors.is_terminal)


def _advance(bar: Progress, task: TaskID, value: Mapping[str, Any], job: Job) -> None:
    done, total = value.get(job.done) or 0, value.get(job.total)
    counts = text_of(done) if total is None else f"{text_of(done)} of {text_of(total)}"
    said = printable(f"{counts} {value.get('fault') or (value.get('outcome') or {}).get('words') or value['status']}")
    bar.update(task, completed=done, total=total, word=said)
