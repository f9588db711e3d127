"""`doctor` says what is wrong with an app, a line for each part. `open` shows its page, and `logs` its log."""

import json
import os
import platform
import time
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TextIO

import typer
from rich.text import Text

from core.model.release import VERSION
from hubledger.cli.operate.command import GOOD, UNHEALTHY, At
from hubledger.cli.operate.status import GIVEN_UP
from hubledger.cli.output import BAD, GREEN, WARNING, Column, brief, counted, program, text_of
from hubledger.cli.remote.client import Refusal
from hubledger.cli.remote.connection import find_local_run

LINES = 40  # of a log that are shown
EVERY = 0.5  # seconds between two looks at a log
QUERY = """AppTraces
| where TimeGenerated > ago(1h) and Properties startswith "{"
| project TimeGenerated, SeverityLevel, Message, Properties
| order by TimeGenerated desc"""
_Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines until Ctrl-C.")]


class Diagnosis(NamedTuple):
    """A part of the app, its state, and what to do about it, with the next command, where there is one."""

    part: str
    state: str
    said: str
    next: str = ""


def doctor(at: At) -> int:
    """Look at the app, its database, its hub, what is stopped, what waits for you, and the Spark engine.

    Ends with 1 when something is wrong, and with 2 when the app cannot be reached.

    Example: bin/hubledger doctor
    """
    system = f"{platform.system()} {platform.release().partition('-')[0]}"
    versions = f"hubledger {VERSION}, Python {platform.python_version()}, {system}"
    at.out.say(versions)  # before the app is asked, which may not answer
    found = list(_findings(at))
    if at.out.as_json:
        for one in (Diagnosis("versions", "ok", versions), *found):
            at.out.json(json.dumps(one._asdict()))
    else:
        styles = {"ok": GREEN, "look": WARNING, "wrong": BAD}
        rows = [[one.part, Text(one.state, style=styles[one.state]), one.said] for one in found]
        at.out.show(at.out.table((Column("part"), Column("state"), Column("what")), rows))
        at.out.say(*dict.fromkeys(f"Next, for {one.part}: {one.next}" for one in found if one.next))
    return UNHEALTHY if any(one.state == "wrong" for one in found) else GOOD


def _findings(at: At) -> Iterator[Diagnosis]:
    yield Diagnosis("address", "ok", at.app.url)
    ready = at.app.get("health/ready", also=(503,)).value
    yield (
        Diagnosis("database", "ok", "it answers, and has the tables of this version")
        if ready["healthy"]
        else Diagnosis("database", "wrong", text_of(ready.get("fault") or "the app is not ready: look at its log"))
    )
    try:
        status = at.app.get("status").value
    except Refusal as refusal:
        part = "sign-in" if refusal.status in (401, 403) else "status"
        yield Diagnosis(part, "wrong", str(refusal).splitlines()[0])
        return
    yield Diagnosis("sign-in", "ok", "this key or account may read")
    theirs = status.get("version", "unknown")
    said = f"hubledger {text_of(theirs)}"
    is_ours = theirs == VERSION
    yield Diagnosis(
        "app", *(("ok", said) if is_ours else ("look", f"{said}: use the command line of the app's release"))
    )
    yield from _of_status(status)
    try:
        found = at.app.get("aggregations", {"limit": 1}).value
    except Refusal as refusal:
        yield Diagnosis("engine", "look", str(refusal).splitlines()[0])
        return
    engine, failed = str(found["engine"]), any(one["failure"] for one in found["runs"])
    if found["paused"]:
        said = f"{engine}, paused by {text_of(found['paused']['who'])}"
        yield Diagnosis("engine", "look", said, f"{program()} runs resume")
    elif engine == "none":
        yield Diagnosis("engine", "ok", "none: nothing is summed")
    elif failed:
        yield Diagnosis("engine", "look", f"{engine}, the last run failed", f"{program()} runs list")
    else:
        yield Diagnosis("engine", "ok", engine)


def _of_status(status: Any) -> Iterator[Diagnosis]:
    hub = f"{status['event_hub']}, {counted(status['lag'] or 0, 'event')} behind"
    fault = ("wrong", text_of(status["hub_fault"]), f"{program()} logs")
    yield Diagnosis("hub", *(fault if status["hub_fault"] else ("ok", hub)))
    even = f"{text_of(status['accounted'])} of {text_of(status['numbers'])} numbers are accounted for"
    audit = ("wrong", even, f"{program()} ledger audit")
    yield Diagnosis("ledger", *(("ok", even) if status["ledger_balanced"] else audit))
    reasons = sorted({stop["reason"] for one in status["partitions"] for stop in one["stops"]})
    if reasons:
        stops = f"{counted(status['stops'], 'stop')} by {', '.join(reasons)}"
        yield Diagnosis("stops", "wrong", stops, f"{program()} status")
    if status["standing"]:
        named = ", ".join(f"{one['partition_id']} ({one['fault'] or 'no error'})" for one in status["standing"])
        said = f"events wait, and partitions stand: {text_of(named)}"
        yield Diagnosis("stops", "wrong", said, f"{program()} status")
    elif not reasons:
        yield Diagnosis("stops", "ok", "no partition is stopped or stands")
    lost = status["lost_erasure_keys"]
    subjects = counted(sum(one["subjects"] for one in lost), "subject")
    said = f"{subjects} were erased with a key that the app does not have: set ERASURE_KEY_BEFORE, or forget the key"
    forget = ("wrong", said, f"{program()} erase forget-key")
    yield Diagnosis("erasures", *(forget if lost else ("ok", "the app has the key of each")))
    exhausted = status["letters"]["exhausted"]
    given_up = ("look", f"{counted(exhausted, 'letter')} that nothing retries any more", f"{program()} {GIVEN_UP}")
    yield Diagnosis("letters", *(given_up if exhausted else ("ok", "none waits for you")))
    for one in status["unknown_fields"]:
        name = one["name"] or "others"
        yield Diagnosis("fields", "look", f"{counted(one['events'], 'event')} had the unknown field {text_of(name)}")
    if status["without_key"]:
        events = counted(status["without_key"], "event")
        yield Diagnosis(
            "keys", "look", f"the key of {events} could not be read: see EVENT_KEY, or key_of() of the room"
        )


def open_page(at: At) -> None:
    """Open the operator's page in the browser, and print its address.

    Example: bin/hubledger open
    """
    if not at.app.get("health/live", also=(503,)).value["healthy"]:
        at.out.note(f"The app says that it is not healthy. Next: {program()} doctor")
    address = f"{at.app.url}/api/ops"
    _say(at, {"address": address}, address)
    webbrowser.open(address)


def logs(at: At, follow: _Follow = False) -> None:
    """Show the log of a local run, or the query for the log of an app in Azure.

    Example: bin/hubledger logs --follow
    """
    file = _local_log(at.app.url)
    if file is None:
        where = f"The log of {at.app.url} is in its Log Analytics workspace. Run this query in the portal, or with"
        command = 'az monitor log-analytics query --workspace ID --analytics-query "…"'
        _say(at, {"query": QUERY}, where, command, "", QUERY)
        return
    is_of_this_checkout = find_local_run() == at.app.url
    at.out.note(f"{file}:")
    lines: TextIO = file.open(encoding="utf-8", errors="replace")
    try:
        for line in lines.readlines()[-LINES:]:
            _print(at, line)
        while follow:
            if line := lines.readline():
                _print(at, line)
                continue
            time.sleep(EVERY)
            # A run that was started again writes another log; the one that was read until now may have been cut.
            newest = _local_log((is_of_this_checkout and find_local_run()) or at.app.url)
            with suppress(FileNotFoundError):
                seen = newest and newest.stat()
                now = os.fstat(lines.fileno())
                if newest and seen and not (os.path.samestat(seen, now) and seen.st_size >= lines.buffer.tell()):
                    lines.close()
                    lines = newest.open(encoding="utf-8", errors="replace")
                    at.out.note(f"{newest}:")
    finally:
        lines.close()


def _say(at: At, value: Any, *lines: str) -> None:
    """Print lines, or a value for a script."""
    if at.out.as_json:
        at.out.json(json.dumps(value))
    at.out.say(*lines)


def _print(at: At, line: str) -> None:
    """Print a line of a log, which is JSON."""
    if at.out.as_json:
        at.out.json(line.rstrip("\n"))
    at.out.say(readable(line))


APART = ("time", "level", "message", "logger", "action", "invocation_id")


def readable(line: str) -> str:
    """Return a line of a log in words: its time, level and message, and the values that say something."""
    try:
        found: dict[str, Any] = json.loads(line)
        head = [found.get("time", "")[11:19], found.get("level", ""), found["message"]]
    except (ValueError, TypeError, KeyError):
        return line.rstrip("\n")
    given = {name: one for name, one in found.items() if one and name not in APART}
    values = [f"{name}={one if isinstance(one, str) else brief(one)}" for name, one in given.items()]
    return " ".join(map(str, filter(None, [*head, *values])))


def _local_log(url: str) -> Path | None:
    """Return the log of the local run at an address, or None for any other app."""
    try:
        from local.stack.folders import running_log
    except ImportError:  # no files of the local run, or no POSIX
        return None
    return running_log(url)
