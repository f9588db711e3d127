"""`status` shows the books of the app, once or again and again. `health` says if the app can work."""

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
    place_of,
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
        at.out.show(view(at.out, with_errors(at, found.value)))
        following = next_of(found.value)
        at.out.say(*([f"Next: {program()} {following}"] if following else []))
    return GOOD if is_healthy(found.value) else UNHEALTHY


def with_errors(at: At, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the status with the errors of its stops, for who may see them."""
    if all(stop["detail"] for one in value["partitions"] for stop in one["stops"]):
        return value
    try:
        found = at.app.get("revealed/stops").value["stops"]
    except Refusal as refusal:
        if refusal.status not in (401, 403):
            raise
        at.out.note("Words of errors are hidden: this key or account may not reveal what events hold.")
        return value
    by_partition = [
        {**one, "stops": [stop for stop in found if stop["partition_id"] == one["partition_id"]]}
        for one in value["partitions"]
    ]
    return {**value, "partitions": by_partition}


# The command that shows more of a stop, "" for one whose events become letters. The others have an error in the log.
_NEXT = {
    "incarnation": "streams next-incarnation",
    "erasure_key": "doctor",
    **dict.fromkeys(("held", ""), "letters causes"),
}


def next_of(value: Mapping[str, Any]) -> str | None:
    """Return the next command for the worst thing of a status: a stop, a fault of the hub or the ledger, letters."""
    stops = [stop for one in value["partitions"] for stop in one["stops"]]
    reasons = ["" if makes_letters(one) else one["reason"] for one in stops]
    if reasons or value["standing"]:
        return next((_NEXT[one] for one in reasons if one in _NEXT), "logs")
    if not value["ledger_balanced"]:
        return "ledger audit"
    return "logs" if value["hub_fault"] else GIVEN_UP if value["letters"]["exhausted"] else None


def is_healthy(value: Mapping[str, Any]) -> bool:
    """Return whether the books balance, and no partition is stopped or stands."""
    return bool(value["ledger_balanced"]) and not value["stops"] and not value["standing"]


def _watch(at: At, every: float) -> None:
    """Look until Ctrl-C. A look that fails is shown, and the next one follows."""
    out = at.out
    if not out.as_json and not out.console.is_terminal:
        raise UsageFault("--watch redraws a terminal, and this is none: give --json for a line at each update")
    try:
        while out.as_json:
            out.json(at.app.get("status").text)
            time.sleep(every)
        with Live(console=out.console, screen=True, auto_refresh=False) as live:
            while True:
                try:
                    seen = view(out, at.app.get("status").value, max(3, out.console.height - _HEAD))
                except (NoConnection, Refusal) as fault:
                    seen = Text(lines_of(str(fault)), style=BAD)
                live.update(Group(Text(f"{out.now:%Y-%m-%d %H:%M:%S}Z   Ctrl-C ends"), seen), refresh=True)
                time.sleep(every)
    except KeyboardInterrupt:
        raise Interrupted("") from None


def view(out: Output, value: Mapping[str, Any], most: int | None = None) -> RenderableType:
    """Return the books as they are shown. With a limit, the partitions that need a look come first."""
    partitions: Sequence[Mapping[str, Any]] = value["partitions"]
    shown = partitions
    if most is not None and len(partitions) > most:
        shown = sorted(partitions, key=lambda one: (-len(one["stops"]), one["balanced"], -(one["lag"] or 0)))[:most]
    standing, rows = {one["partition_id"] for one in value["standing"]}, list[list[object]]()
    for one in shown:
        state = Text("ok", style=GREEN) if one["balanced"] else Text("NOT BALANCED", style=BAD)
        if one["stops"] or one["partition_id"] in standing:
            goes_on = one["stops"] and all(map(makes_letters, one["stops"]))
            state = Text("FAILS" if goes_on else "STOPPED" if one["stops"] else "STANDS", style=BAD)
        row = [
            one["partition_id"], one["checkpoint"], one["hub_end"], one["lag"], seconds(one["lag_seconds"]),
            one["written"], one["filtered"], one["dead_lettered"], one["held"], one["open_gaps"], state,
        ]  # fmt: skip
        rows.append(row)
    parts: list[RenderableType] = [out.facts(_facts(out, value)), out.table(_COLUMNS, rows)]
    if left := len(partitions) - len(shown):
        parts.append(Text(f"{left:,} more partitions, without stops and with less lag"))
    parts += [stop_line(out, stop) for one in partitions for stop in one["stops"]][:most]
    parts += [standing_line(out, one) for one in value["standing"]][:most]
    return Group(*parts)


def _facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    letters, oldest, hub, lag = value["letters"], value["oldest_open_letter"], value["hub_forgets"], value["lag"]
    counts = ", ".join(
        f"{name} {text_of(letters[name])}" for name in ("waiting", "retrying", "held", "exhausted") if letters[name]
    )
    where = oldest and f"{place_of(oldest)}, failed {out.ago(oldest['failed_at'])}"
    hours = hub["letters_expiring_hours"]  # for which the hub holds the events of open letters
    held: object = f"{seconds(hours * 3600)} more" if letters["open"] and hours >= 0 else None
    if hub["events_lost"]:
        others = f", the others {seconds(hours * 3600)}" if held and letters["open"] > hub["events_lost"] else ""
        lost = [f"partition {text_of(one['partition_id'])} before {text_of(one['before'])}" for one in hub["lost"]]
        held = Text(f"{counted(hub['events_lost'], 'event')} lost ({'; '.join(lost)}){others}", style=BAD)
    return {
        "hub": f"{value['event_hub']}, {value['consumer_group']}, incarnation {text_of(value['incarnation'])}",
        "ledger": yes_or_no(value["ledger_balanced"], "balanced", "NOT BALANCED"),
        "accounted": f"{text_of(value['accounted'])} of {text_of(value['numbers'])}",
        "lag": Text("unknown: the hub gave no answer", style=WARNING) if lag is None else text_of(lag),
        "letters open": f"{text_of(letters['open'])}{f' ({counts})' if counts else ''}",
        "oldest": where,
        "held by the hub": held,
        "gaps open": Text(text_of(value["open_gaps"]), style=WARNING if value["open_gaps"] else ""),
        "stops": yes_or_no(not value["stops"], "none", text_of(value["stops"])),
        "unknown fields": ", ".join(
            f"{one['name'] or 'others'} in {counted(one['events'], 'event')}" for one in value["unknown_fields"]
        ),
        "without a key": Text(text_of(value["without_key"]), style=WARNING) if value["without_key"] else None,
        "hub fault": value["hub_fault"] and Text(text_of(value["hub_fault"]), style=WARNING),
    }


def makes_letters(stop: Mapping[str, Any]) -> bool:
    """Return whether the fuse's attempts are used up: the partition goes on, and events that fail become letters."""
    return bool(stop["patience"]) and stop["attempts"] >= stop["patience"]


def stop_line(out: Output, stop: Mapping[str, Any]) -> Text:
    """Return a stop of a partition in a line. An outage says its error, and when or that its events become letters."""
    said = [f"partition {stop['partition_id']} stopped {out.ago(stop['stopped_at'])} by {stop['reason']}"]
    if stop["tried"]:
        said.append(f"{stop['failed']:,} of {stop['tried']:,} events fail, most with {stop['failure']}")
    if makes_letters(stop):
        said.append(f"no longer held: events that fail become letters now, {stop['letters']:,} so far")
    elif stop["patience"]:
        said.append(f"held, attempt {stop['attempts']} of {stop['patience']}; then events that fail become letters")
    return Text(text_of(": ".join([*said, *([stop["detail"]] if stop["detail"] else [])])), style=BAD)


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
    rows, answers, refusals = list[list[object]](), list[AppAnswer](), list[Refusal]()
    for name in ("live", "ready", "ledger"):
        try:
            found = at.app.get(f"health/{name}", also=(503,))
        except Refusal as refusal:  # without a right to it, the others are shown all the same
            refusals.append(refusal)
            rows.append([name, Text("unknown", style=WARNING), "the app refuses to tell"])
            continue
        answers.append(found)
        value, why = found.value, found.value.get("fault") or ""
        if "accounted" in value:
            accounted = f"accounted {text_of(value['accounted'])} of {text_of(value['numbers'])}"
            why = f"{accounted}, letters open {text_of(value['letters_open'])}"
        rows.append([name, yes_or_no(value["healthy"], "healthy", "NOT HEALTHY"), why])
    if at.out.as_json:
        for answer in answers:
            at.out.json(answer.text)
    else:
        at.out.show(at.out.table((Column("check"), Column("result"), Column("detail")), rows))
        at.out.show(*(stop_line(at.out, stop) for one in answers for stop in one.value.get("stops", [])))
        at.out.show(*(standing_line(at.out, each) for one in answers for each in one.value.get("standing", [])))
    if refusals:
        raise refusals[0]
    return GOOD if all(one.value["healthy"] for one in answers) else UNHEALTHY
