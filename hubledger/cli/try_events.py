"""`bin/hubledger try EVENTS.jsonl`: run a transform on a file of events, without a hub."""

import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from core.model.release import DEFAULT_TRANSFORM
from core.model.rows import Row, row_table
from core.model.transforms import WITHOUT_KEY, Transform
from core.replay.diff import document
from core.settle.partition_store import Partitions
from core.store.columns import row_of_json
from core.transforms.loading import check_transform, full_name, import_transform, load_transform, room_of
from hubledger.cli.output import ROOT, Refused, UsageFault, printable, say, show_table
from hubledger.cli.trial import (
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
    path = events
    if path is None:
        if (room := room_of(import_transform(name).__name__)) is None:
            raise UsageFault(f"{name} is in no room with an events.jsonl: name a file")
        path = samples_in(room.folder)
    if not path.is_file():
        raise Refused(f"{path} is no file: name a file with one event a line")
    found = _tried(name, EventFile(path, load_transform(name).key_of), references, against, limit)
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        _show(found, load_transform(name))
        if events and found["events"]:
            words = (f"TRANSFORM={name}", f"EVENTS_FROM={events}", f"EVENTS={found['events']}")
            say("", "Next, with a hub on this machine:", f"  make demo {shlex.join(words)}")
    return 1 if 0 < found["events"] == found["dead_lettered"] or found["not_pure"] else 0


def chosen_transform(given: str | None) -> str:
    """Return the transform to try: the given one, TRANSFORM's, or the only room in apps/. With several rooms, a
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


def _tried(name: str, file: EventFile, references: Path | None, against: str | None, limit: int) -> dict[str, Any]:
    """Return all that a trial finds, as JSON has it.

    A second delivery of the file commits no new event. `not_pure` names an event that has two outcomes.
    """
    transform = load_transform(name)
    known, outcome = _known(references, transform), TrialOutcome(file, limit)
    with trial_database(transform.row_classes) as trial:
        means = means_of(trial.database, transform)
        register(known, means)
        outcome.note_known(known)
        for report in ingest_file(file, means):
            for commit in report.commits:
                outcome.add(commit)
        again = sum(commit.events for report in ingest_file(file, means) for commit in report.commits)
        rows = {**outcome.rows, **dict(states_of(outcome, Partitions(trial.database)))}
        counts = trial.counts()
    states = [row for row_class, found in rows.items() if row_table(row_class).key for _, row in found]
    not_pure = None
    try:
        if outcome.events:
            check_deterministic(name, islice(file, CHECKED), references=(*known, *states))
    except AssertionError as fault:
        not_pure = f"not pure: {fault}"
    tables = {row_table(each): rows.get(each, []) for each in transform.row_classes}
    found: dict[str, Any] = {
        "transform": name,
        "version": transform.version,
        **{each: getattr(outcome, each) for each in ("events", "written", "filtered", "dead_lettered")},
        "tables": {
            table.name: {
                "count": counts[table.name],
                "rows": [{"line": line, "row": document(row)} for line, row in placed],
            }
            for table, placed in tables.items()
        },
        "letters": [
            {
                "line": file.line_of(each.event.sequence_number),
                "class": each.error_class,
                "at": each.error_at,
                "error": each.error,
            }
            for each in outcome.letters
        ],
        "filtered_lines": outcome.filtered_lines,
        "unknown_fields": {name: events for name, events in outcome.unknown_fields.items() if name != WITHOUT_KEY},
        "without_key": outcome.unknown_fields[WITHOUT_KEY],
        "new_events_of_a_second_delivery": again,
        "not_pure": not_pure,
    }
    if against and outcome.events:
        found["differences"] = difference(file, known, load_transform(against), transform, limit)
    return found


def _show(found: Mapping[str, Any], transform: Transform) -> None:
    """Print what a trial found."""
    for table in map(row_table, transform.row_classes):
        count, rows = found["tables"][table.name].values()
        cells = ((each["line"] or "before", *each["row"].values()) for each in rows)
        show_table(f"{table.name}: rows {_of(len(rows), count)}", ("line", *table.columns), cells)
    if letters := found["letters"]:
        title = f"letters: {_of(len(letters), found['dead_lettered'])}"
        show_table(title, tuple(letters[0]), (each.values() for each in letters))
    if lines := found["filtered_lines"]:
        say(f"filtered: {_of(len(lines), found['filtered'])}, line {', '.join(map(str, lines))}")
    if "differences" in found:
        counts, changes = found["differences"].values()
        title = f"changed events: {_of(len(changes), counts['events_changed'])}"
        show_table(title, ("line", "change", "table", "row"), _changes(changes))
        say(
            f"rows after a replay: added {counts['rows_added']}, removed {counts['rows_removed']}, changed"
            f" {counts['rows_changed']}; letters: new {counts['letters_added']}, resolved {counts['letters_resolved']}"
        )
    for name, events in found["unknown_fields"].items():
        have = "1 event has" if events == 1 else f"{events:,} events have"
        say(f"{have} the unknown field `{printable(name)}`: add it to the body, or ignore it")
    if without := found["without_key"]:
        say(f"key_of() gave no key for {without:,} of {found['events']:,} events: they have their partition key")
    say(
        f"{found['transform']}, {found['version']}: events {found['events']}, with rows {found['written']},"
        f" filtered {found['filtered']}, letters {found['dead_lettered']}",
        f"new events in a second delivery of the file: {found['new_events_of_a_second_delivery']}",
        *([found["not_pure"]] if found["not_pure"] else []),
    )


def _changes(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[object, ...]]:
    for each in events:
        for kind in ("added", "removed"):
            for one in each[kind]:
                yield (
                    each["line"],
                    kind,
                    one["table"],
                    ", ".join(f"{name}={value}" for name, value in one["row"].items()),
                )
        for one in each["changed"]:
            written = ", ".join(f"{name}: {old} → {new}" for name, (old, new) in one["columns"].items())
            yield each["line"], "changed", one["table"], written
        if "error" in each:
            yield each["line"], each["outcome"], "", each["error"]


def _of(shown: int, all_: int) -> str:
    return str(all_) if shown >= all_ else f"the first {shown} of {all_}"
