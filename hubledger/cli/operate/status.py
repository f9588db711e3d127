"""`status`: the books of the app, once or again and again; `health`: whether it can work."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from hubledger.cli.operate.command import GOOD, UNHEALTHY, At
from hubledger.cli.output import (
    BAD,
    GREEN,
    WARNING,
    Column,
    Output,
    UsageFault,
    counted,
    lines_of,
    program,
    seconds,
    text_of,
    yes_or_no,
)
from hubledger.cli.remote.client import AppAnswer, Interrupted, NoConnection, Refusal

_COLUMNS = (
    Column("partition"), Column("checkpoint", number=True), Column("hub end", number=True, wide=True),
    Column("lag", number=True), Column("lag time", number=True), Column("written", number=True, wide=True),
    Column("filtered", number=True, wide=True), Column("letters", number=True, wide=True),
    Column("held", number=True, wide=True), Column("gaps", number=True, wide=True), Column("state"),
)  # fmt: skip
GIVEN_UP = "letters causes --status exhausted"  # the command that shows what needs a person
_HEAD = 16  # lines of a screen that are not partitions
_Watch = Annotated[bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")]
_Every = Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.5, help="The time between two updates.")]


def status(at: At, watch: _Watch = False, every: _Every = 2.0) -> int:
    """Show the books: what is accounted for, lag, letters and stops.

    Ends with 1 when the books do not balance, or a partition is stopped or stands.

    Example: bin/hubledger status --watch
    """
    if watch:
        _watch(at, every)
    found = at.app.get("status")
    if at.out.as_json:
        at.out.json(found.text)
    else:
        at.out.show(view(at.out, found.value))
        at.out.say(*([f"Next: {program()} {GIVEN_UP}"] if found.value["letters"]["exhausted"] else []))
    return GOOD if is_healthy(found.value) else UNHEALTHY


def is_healthy(value: Mapping[str, Any]) -> bool:
    """Return whether the books balance, and no partition is stopped or stands."""
    return bool(value["ledger_balanced"]) and not value["stops"] and not value["standing"]


def _watch(at: At, every: float) -> None:
    """Look until Ctrl-C. A look that fails is shown, and the next one follows."""
    out = at.out
    try:
        if out.as_json:
            while True:
                out.json(at.app.get("status").text)
                time.sleep(every)
        if not out.console.is_terminal:
            raise UsageFault("--watch redraws a terminal, and this is none: give --json for a line at each update")
        with Live(console=out.console, screen=True, auto_refresh=False) as live:
            while True:
                live.update(_look(at), refresh=True)
                time.sleep(every)
    except KeyboardInterrupt:
        raise Interrupted("") from None


def _look(at: At) -> RenderableType:
    try:
        value = at.app.get("status").value
    except (NoConnection, Refusal) as fault:
        return Group(_clock(at.out), Text(lines_of(str(fault)), style=BAD))
    return Group(_clock(at.out), view(at.out, value, max(3, at.out.console.height - _HEAD)))


def _clock(out: Output) -> Text:
    return Text(f"{out.now:%Y-%m-%d %H:%M:%S}Z   Ctrl-C ends")


def view(out: Output, value: Mapping[str, Any], most: int | None = None) -> RenderableType:
    """Return the books as they are shown; with a limit, the partitions that need a look come first."""
    partitions: Sequence[Mapping[str, Any]] = value["partitions"]
    shown = partitions
    if most is not None and len(partitions) > most:
        shown = sorted(partitions, key=lambda one: (-len(one["stops"]), one["balanced"], -(one["lag"] or 0)))[:most]
    standing = {one["partition_id"] for one in value["standing"]}
    rows = [_row(one, one["partition_id"] in standing) for one in shown]
    left = len(partitions) - len(shown)
    parts: list[RenderableType] = [out.facts(_facts(out, value)), out.table(_COLUMNS, rows)]
    if left:
        parts.append(Text(f"{left:,} more partitions, without stops and with less lag"))
    parts += [stop_line(out, stop) for one in partitions for stop in one["stops"]][:most]
    parts += [standing_line(out, one) for one in value["standing"]][:most]
    return Group(*parts)


def _facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    letters, oldest = value["letters"], value["oldest_open_letter"]
    counts = ", ".join(
        f"{name} {text_of(letters[name])}" for name in ("waiting", "retrying", "held", "exhausted") if letters[name]
    )
    where = oldest and f"{oldest['partition_id']}/{oldest['sequence_number']}, failed {out.ago(oldest['failed_at'])}"
    return {
        "hub": f"{value['event_hub']}, {value['consumer_group']}, incarnation {text_of(value['incarnation'])}",
        "ledger": yes_or_no(value["ledger_balanced"], "balanced", "NOT BALANCED"),
        "accounted": f"{text_of(value['accounted'])} of {text_of(value['numbers'])}",
        "lag": text_of(value["lag"])
        if value["lag"] is not None
        else Text("unknown: the hub does not answer", style=WARNING),
        "letters open": f"{text_of(letters['open'])}{f' ({counts})' if counts else ''}",
        "oldest": where,
        "held by the hub": _held(value["hub_forgets"], letters["open"]),
        "gaps open": Text(text_of(value["open_gaps"]), style=WARNING if value["open_gaps"] else ""),
        "stops": yes_or_no(not value["stops"], "none", text_of(value["stops"])),
        "unknown fields": ", ".join(
            f"{one['name'] or 'others'} in {counted(one['events'], 'event')}" for one in value["unknown_fields"]
        ),
        "hub fault": value["hub_fault"] and Text(text_of(value["hub_fault"]), style=WARNING),
    }


def _held(hub: Mapping[str, Any], letters: int) -> object:
    """Say how long the hub holds the events of open letters, and how many events are lost."""
    left = seconds(hub["letters_expiring_hours"] * 3600) if letters and hub["letters_expiring_hours"] >= 0 else None
    if hub["events_lost"]:
        return Text(f"{counted(hub['events_lost'], 'event')} lost{f', the others {left}' if left else ''}", style=BAD)
    return left and f"{left} more"


def _row(one: Mapping[str, Any], stands: bool) -> list[object]:
    state = Text("ok", style=GREEN) if one["balanced"] else Text("NOT BALANCED", style=BAD)
    if one["stops"] or stands:
        state = Text("STOPPED" if one["stops"] else "STANDS", style=BAD)
    return [
        one["partition_id"], one["checkpoint"], one["hub_end"], one["lag"], seconds(one["lag_seconds"]),
        one["written"], one["filtered"], one["dead_lettered"], one["held"], one["open_gaps"], state,
    ]  # fmt: skip


def stop_line(out: Output, stop: Mapping[str, Any]) -> Text:
    """Return a stop of a partition in a line."""
    detail = f": {stop['detail']}" if stop["detail"] else ""
    said = f"partition {stop['partition_id']} stopped {out.ago(stop['stopped_at'])} by {stop['reason']}{detail}"
    return Text(text_of(said), style=BAD)


def standing_line(out: Output, one: Mapping[str, Any]) -> Text:
    """Return a partition that stands in a line."""
    fault = f"; the last error of its batches: {one['fault']}" if one["fault"] else ""
    said = f"partition {one['partition_id']} stands since {out.ago(one['since'])}: events wait{fault}"
    return Text(text_of(said), style=BAD)


def health(at: At) -> int:
    """Show whether the app is alive, can use its store, and keeps its books.

    Ends with 1 when one of the three is not healthy.

    Example: bin/hubledger health
    """
    found = {name: _checked(at, name) for name in ("live", "ready", "ledger")}
    refusals = [one for one in found.values() if isinstance(one, Refusal)]
    answers = {name: one for name, one in found.items() if isinstance(one, AppAnswer)}
    if at.out.as_json:
        for answer in answers.values():
            at.out.json(answer.text)
    else:
        stops = [stop for one in answers.values() for stop in one.value.get("stops", [])]
        at.out.show(at.out.table(_CHECKS, [_check(name, one) for name, one in found.items()]))
        at.out.show(*(stop_line(at.out, one) for one in stops))
        standing = [one for answer in answers.values() for one in answer.value.get("standing", [])]
        at.out.show(*(standing_line(at.out, one) for one in standing))
    if refusals:
        raise refusals[0]
    return GOOD if all(one.value["healthy"] for one in answers.values()) else UNHEALTHY


_CHECKS = (Column("check"), Column("result"), Column("detail"))


def _checked(at: At, name: str) -> AppAnswer | Refusal:
    """Read one health; without a right to it, the others are shown all the same."""
    try:
        return at.app.get(f"health/{name}", also=(503,))
    except Refusal as refusal:
        return refusal


def _check(name: str, found: AppAnswer | Refusal) -> list[object]:
    if isinstance(found, Refusal):
        return [name, Text("unknown", style=WARNING), "the app refuses to tell"]
    return [name, yes_or_no(found.value["healthy"], "healthy", "NOT HEALTHY"), _why(found.value)]


def _why(value: Mapping[str, Any]) -> str:
    if "accounted" in value:
        accounted = f"accounted {text_of(value['accounted'])} of {text_of(value['numbers'])}"
        return f"{accounted}, letters open {text_of(value['letters_open'])}"
    return value.get("fault") or ""
