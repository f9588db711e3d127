"""`bin/hubledger try EVENTS.jsonl`: run a transform on a file of events, without a hub."""

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from core.model.commits import DeadLetter
from core.model.release import DEFAULT_TRANSFORM
from core.model.rows import Row, row_table
from core.model.transforms import Transform
from core.replay.diff import document
from core.settle.partition_store import Partitions
from core.store.columns import row_of_json
from core.transforms.loading import check_transform, full_name, import_transform, load_transform, room_of
from hubledger.cli.output import ROOT, Refused, UsageFault, printable, say, show_table
from hubledger.cli.trial import (
    Difference,
    EventFile,
    TrialOutcome,
    difference,
    ingest_file,
    means_of,
    read_events,
    states_of,
    trial_database,
)
from local.feed.event_file import samples_in
from local.trials.determinism import check_deterministic
from local.trials.replay_identity import register

CHECKED = 100  # events of a file, of which each must have one outcome

_Events = Annotated[
    Path | None,
    typer.Argument(
        metavar="[EVENTS]",
        help="One body a line, in base64 in a file named *.base64, or a file of Event Hubs Capture; default: the"
        " samples of the transform's room.",
    ),
]
_Transform = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A room or a module; default: the setting TRANSFORM, or the only room in apps/."),
]
_References = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help='States that exist before: {"table": "home", "row": {...}}, one a line.'),
]
_Against = Annotated[
    str | None, typer.Option(metavar="NAME", help="An older transform: show how the rows differ from its rows.")
]
_Limit = Annotated[int, typer.Option(min=0, max=1000, help="Rows of each table, letters and changes to show.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@dataclass(frozen=True, slots=True)
class Report:
    """All that a trial found.

    `again` counts the events that a second delivery of the file committed. `impure` names an event with two outcomes.
    """

    name: str
    transform: Transform
    outcome: TrialOutcome
    counts: dict[str, int]
    rows: dict[type, list[tuple[int, Row]]]
    again: int
    impure: str | None
    differing: Difference | None


def try_events(
    events: _Events = None,
    transform: _Transform = None,
    references: _References = None,
    against: _Against = None,
    limit: _Limit = 20,
    as_json: _Json = False,
) -> int:
    """Try a transform on a file of events.

    It prints rows, letters and differences, and needs no hub. Ends with 1 when every event becomes a letter, or when
    one of the first 100 events has another outcome a second time or in another process.

    Example: bin/hubledger try events.jsonl --transform apps.parcels
    """
    name, against = chosen_transform(transform), against and named_transform(against)
    for each in filter(None, (name, against)):
        check_transform(each)
    path = events or _samples_of(name)
    if not path.is_file():
        raise Refused(f"{path} is no file: name a file with one event a line")
    report = _report(name, path, _known(references, load_transform(name)), against, limit)
    if as_json:
        print(json.dumps(_document(report), ensure_ascii=False, indent=2))
    else:
        _show(report)
        say(*_next_of(name, events, report.outcome.events))
    is_all_letters = 0 < report.outcome.events == report.outcome.dead_lettered
    return 1 if is_all_letters or report.impure else 0


def _next_of(name: str, events: Path | None, count: int) -> tuple[str, ...]:
    """Return the command that publishes the same file to a hub, if a person named one."""
    if events is None or not count:
        return ()
    words = (f"TRANSFORM={name}", f"EVENTS_FROM={events}", f"EVENTS={count}")
    return "", "Next, with a hub on this machine:", f"  make demo {shlex.join(words)}"


def chosen_transform(given: str | None) -> str:
    """Return the transform to try: the given one, that of TRANSFORM, or the only room in apps/. With several rooms, a
    person is asked in a terminal."""
    if named := given or os.environ.get("TRANSFORM"):
        return named_transform(named)
    rooms = _rooms()
    if len(rooms) <= 1:
        return rooms[0] if rooms else DEFAULT_TRANSFORM
    if not sys.stdin.isatty():
        raise UsageFault(f"name one of the rooms with --transform: {', '.join(rooms)}")
    return str(typer.prompt("Which room", type=Literal[tuple(rooms)]))


def named_transform(name: str) -> str:
    """Return the full name of a transform, of which a person may have typed the last part."""
    full = full_name(name)
    if "." not in full and not (ROOT / full).exists() and find_spec(full) is None:
        raise Refused(f"there is no transform {name}; the rooms are {', '.join(_rooms()) or DEFAULT_TRANSFORM}")
    return full


def _rooms() -> list[str]:
    return sorted(f"apps.{path.parent.name}" for path in (ROOT / "apps").glob("*/transform.py"))


def _samples_of(name: str) -> Path:
    room = room_of(import_transform(name).__name__)
    if room is None:
        raise UsageFault(f"{name} is in no room with an events.jsonl: name a file")
    return samples_in(room.folder)


def _known(path: Path | None, transform: Transform) -> tuple[Row, ...]:
    """Return the states that a file names."""
    classes = {row_table(each).name: each for each in transform.row_classes if row_table(each).key}
    found: list[Row] = []
    for each in read_events(path) if path else ():
        try:
            given = msgspec.json.decode(each.body, type=dict[str, Any])
            found.append(row_of_json(classes[given["table"]], json.dumps(given["row"])))
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise Refused(
                f'{path}, line {each.line}: write {{"table": ..., "row": {{...}}}} with a table of states'
                f" ({', '.join(classes) or 'this transform has none'}) and all its columns: {error!r}"
            ) from error
    return tuple(found)


def _report(name: str, path: Path, known: Sequence[Row], against: str | None, limit: int) -> Report:
    transform = load_transform(name)
    outcome = TrialOutcome(EventFile(path), limit)
    with trial_database(transform.row_classes) as trial:
        means = means_of(trial.database, transform)
        register(known, means)
        outcome.note_known(known)
        for report in ingest_file(outcome.file, means):
            for commit in report.commits:
                outcome.add(commit)
        again = sum(commit.events for report in ingest_file(outcome.file, means) for commit in report.commits)
        rows = {**outcome.rows, **dict(states_of(outcome, Partitions(trial.database)))}
        counts = trial.counts()
    differing = _against(against, known, transform, outcome) if against and outcome.events else None
    states = [row for row_class, found in rows.items() if row_table(row_class).key for _, row in found]
    impure = _impure(name, outcome, (*known, *states)) if outcome.events else None
    return Report(name, transform, outcome, counts, rows, again, impure, differing)


def _impure(name: str, outcome: TrialOutcome, known: Sequence[Row]) -> str | None:
    """Return the first event that has two outcomes, with both; None where each has one."""
    try:
        check_deterministic(name, islice(outcome.file, CHECKED), references=known)
    except AssertionError as found:
        return f"not pure: {found}"
    return None


def _against(old: str, known: Sequence[Row], transform: Transform, outcome: TrialOutcome) -> Difference:
    before = load_transform(old)
    with trial_database((*before.row_classes, *transform.row_classes)) as trial:
        means = means_of(trial.database, before)
        register(known, means)
        for _ in ingest_file(outcome.file, means):
            pass
        return difference(outcome.file, outcome.events, trial.database, transform, outcome.limit)


def _show(report: Report) -> None:
    outcome = report.outcome
    for row_class in report.transform.row_classes:
        _show_rows(row_class, report)
    if outcome.letters:
        letters = ((_line_of(each, outcome), each.error_class, each.error_at, each.error) for each in outcome.letters)
        show_table(
            f"letters: {_of(len(outcome.letters), outcome.dead_lettered)}", ("line", "class", "at", "error"), letters
        )
    if outcome.filtered_lines:
        lines = ", ".join(map(str, outcome.filtered_lines))
        say(f"filtered: {_of(len(outcome.filtered_lines), outcome.filtered)}, line {lines}")
    if report.differing is not None:
        _show_difference(report.differing)
    say(*map(unknown_line, outcome.unknown_fields.items()))
    say(
        f"{report.name}, {report.transform.version}: events {outcome.events}, with rows {outcome.written},"
        f" filtered {outcome.filtered}, letters {outcome.dead_lettered}",
        f"new events in a second delivery of the file: {report.again}",
        *([report.impure] if report.impure else []),
    )


def unknown_line(counted: tuple[str, int]) -> str:
    """Say how many events have a field that the body does not know, and what to do about it."""
    name, events = counted
    have = "1 event has" if events == 1 else f"{events:,} events have"
    return f"{have} the unknown field `{printable(name)}`: add it to the body, or ignore it"


def _show_rows(row_class: type, report: Report) -> None:
    table, rows = row_table(row_class), report.rows.get(row_class, [])
    title = f"{table.name}: rows {_of(len(rows), report.counts[table.name])}"
    show_table(title, ("line", *table.columns), ((line or "before", *document(row).values()) for line, row in rows))


def _show_difference(differing: Difference) -> None:
    counts = differing.counts
    title = f"changed events: {_of(len(differing.changes), counts.events_changed)}"
    show_table(title, ("line", "change", "table", "row"), _changes(differing))
    say(
        f"rows after a replay: added {counts.rows_added}, removed {counts.rows_removed}, changed {counts.rows_changed};"
        f" letters: new {counts.letters_added}, resolved {counts.letters_resolved}"
    )


def _changes(differing: Difference) -> Iterator[tuple[object, ...]]:
    for line, change in differing.changes:
        for kind in ("added", "removed"):
            yield from ((line, kind, each["table"], _written(each["row"])) for each in change[kind])
        for each in change["changed"]:
            written = ", ".join(f"{name}: {old} → {new}" for name, (old, new) in each["columns"].items())
            yield line, "changed", each["table"], written
        if "error" in change:
            yield line, change["outcome"], "", change["error"]


def _written(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.items())


def _line_of(letter: DeadLetter, outcome: TrialOutcome) -> int:
    return outcome.file.line_of(letter.event.sequence_number)


def _of(shown: int, all_: int) -> str:
    return str(all_) if shown >= all_ else f"the first {shown} of {all_}"


def _document(report: Report) -> dict[str, Any]:
    outcome = report.outcome
    found: dict[str, Any] = {
        "transform": report.name,
        "version": report.transform.version,
        **{name: getattr(outcome, name) for name in ("events", "written", "filtered", "dead_lettered")},
        "tables": {row_table(each).name: _rows_document(each, report) for each in report.transform.row_classes},
        "letters": [
            {"line": _line_of(each, outcome), "class": each.error_class, "at": each.error_at, "error": each.error}
            for each in outcome.letters
        ],
        "filtered_lines": outcome.filtered_lines,
        "unknown_fields": dict(outcome.unknown_fields),
        "new_events_of_a_second_delivery": report.again,
        "not_pure": report.impure,
    }
    return found if report.differing is None else {**found, "differences": report.differing.to_json()}


def _rows_document(row_class: type, report: Report) -> dict[str, Any]:
    rows = [{"line": line, "row": document(row)} for line, row in report.rows.get(row_class, [])]
    return {"count": report.counts[row_table(row_class).name], "rows": rows}
