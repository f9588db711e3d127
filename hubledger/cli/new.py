"""`bin/hubledger new NAME`: write a room for events of your own."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from core.errors import InvalidTransform
from hubledger.cli.formats.format import NAMES, SCHEMAS, Format, format_of
from hubledger.cli.output import ROOT, Refused, UsageFault, counted, say, show_table
from hubledger.cli.scaffold.design import EACH_WRITTEN as EACH
from hubledger.cli.scaffold.design import (
    EPOCHS,
    NOTE,
    WRITTEN,
    Design,
    Each,
    Field,
    Kind,
    Wish,
    design_of,
    each_of,
    field_of,
    refuse_name,
    refuse_tables,
)
from hubledger.cli.scaffold.room import commands_of, refuse_existing, taken_tables, write_room
from hubledger.cli.scaffold.sample import Sample, named, read_sample, sample_lines
from local.feed.event_file import FileEvent

_Name = Annotated[str | None, typer.Argument(help="The name of the room and of its events, in the plural: parcels.")]
_From = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Your events, one JSON object a line, or a file of Event Hubs Capture: their fields are found in it.",
    ),
]
_Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="NAME:TYPE",
        help=f"A field, or the type of a field of the file. Types: {WRITTEN}; ? after it: some events have no value."
        " Objects and lists are kept as JSON text.",
    ),
]
_Key = Annotated[
    str | None,
    typer.Option(metavar="FIELD[,FIELD]", help="Keep also the last event of each value of these fields."),
]
_At = Annotated[str | None, typer.Option(metavar="FIELD", help="The time of the event; default: the first instant.")]
_Table = Annotated[str | None, typer.Option(metavar="TABLE", help="The table of the rows; default: parcel_event.")]
_Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="An event with a field that is not in the file is poison. Default: the field is ignored, and counted.",
    ),
]
_Each = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE",
        help=f"Make rows of each element of a body: {EACH} that has the list.",
    ),
]
_Loose = Annotated[
    bool,
    typer.Option(
        "--loose",
        help="Take more than the file shows: numbers are float or decimal, and an event may lack every field that is"
        " not named by --key or --at.",
    ),
]
_Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help=f"The format of the bodies: {', '.join(NAMES)}. The file has them in base64, one a line, when its"
        " name ends with .base64, or as JSON lines, which become bodies; for avro it may be an object container file.",
    ),
]
_Schema = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The schema: for avro a file .avsc, or a folder of files NUMBER.avsc or NUMBER-ID.avsc; for protobuf a"
        " descriptor set of protoc, as FILE:MESSAGE when it has several messages.",
    ),
]
MOST_FAULTS = 5  # lines that were left out, by name
_ASSUMED: dict[Kind, str] = {
    "integer": 'whole numbers, so neither 21.5 nor 10.0 nor "10"', "float": "numbers", "boolean": "true or false",
    "decimal": "numbers of at most 28 digits before the point, and 10 after it", "date": "days as 2026-03-01",
    "instant": "times with a zone, as 2026-03-01T10:00:00Z", **dict.fromkeys(EPOCHS, "times as numbers"),
}  # fmt: skip
_LOOSE_TAKES = "--loose takes numbers with a fraction, and events without a value."
_WIDER = (
    "A room with rows takes more after a change of transform.py and migrate-diff (docs/transforms.md#a-wider-type)."
)


def new(
    name: _Name = None,
    source: _From = None,
    field: _Fields = None,
    key: _Key = None,
    at: _At = None,
    table: _Table = None,
    strict: _Strict = False,
    each: _Each = None,
    loose: _Loose = False,
    format_: _Format = "json",
    schema: _Schema = None,
) -> None:
    """Write a room for your own events.

    It has a transform, its tables, an aggregate, sample events and tests.

    Example: bin/hubledger new parcels --from events.jsonl --key parcel_id
    """
    is_asked = sys.stdin.isatty()
    if name is None and not is_asked:
        raise UsageFault("the name is missing: bin/hubledger new NAME --from events.jsonl")
    name = name or str(typer.prompt("Name of your events, in the plural, such as parcels"))
    refuse_name(name)
    wish = Wish(name, tuple(each.strip() for each in key.split(",")) if key else (), at, table, strict)
    refuse_existing(ROOT / "apps" / wish.name)
    if source is None and not field:
        if not is_asked:
            raise UsageFault('the fields are missing: give --from FILE, or --field "NAME:TYPE" for each')
        source, field = _asked(wish.name)
    if loose and source is None:
        raise UsageFault("--loose is about the fields of a file: give --from FILE, or write ? after a type of --field")
    form, parted = format_of(format_, schema, source), each_of(each) if each is not None else None
    if parted is not None and form.name != "json":
        raise Refused(f"--each {each} parts bodies in JSON: leave out --format {form.name}, or --each")
    given = {one.name: one for one in map(field_of, field or [])}
    if len(given) < len(field or []):
        raise Refused("--field names one field twice")
    if source is None:
        sample = _made(tuple(given.values()), form, parted)
    else:
        named_by_key = frozenset(filter(None, (*wish.key, wish.at)))
        sample = read_sample(source, given, form, named_by_key if loose else None, parted)
    design = replace(
        design_of(wish, sample.fields, sample.lengths, sample.first), format=form, events=sample.events, each=parted
    )
    refuse_tables(design, taken_tables())
    try:
        files = write_room(design, source, sample.instead)
    except InvalidTransform as fault:
        raise Refused(f"this room cannot be made: {'; '.join(fault.faults)}; nothing was written") from fault
    _report(design, files, sample, source, is_loose=loose)


def _asked(name: str) -> tuple[Path | None, list[str]]:
    """Ask for a file, or for one field after the other."""
    file = typer.prompt(f"File with {name}, one JSON object a line (empty: name the fields)", default="")
    if file:
        return Path(file), []
    say(f"Types: {WRITTEN}; with ? after it, a field may be missing. An empty line ends the fields.")
    fields: list[str] = []
    while given := typer.prompt("Field, such as id:ascii(32)", default="", show_default=False):
        try:
            field_of(given)
        except Refused as fault:
            say(str(fault))
        else:
            fields.append(given)
    return None, fields


def _made(fields: tuple[Field, ...], form: Format, each: Each | None) -> Sample:
    """Return the sample of fields that a person named, without a file."""
    if form.name in SCHEMAS:
        raise Refused(f"--format {form.name} needs a file of events: --from FILE")
    lines = tuple(each.body_of(one) if each else one for one in sample_lines(fields))
    return Sample(fields, {}, lines, tuple(form.sent(FileEvent(0, line)) for line in lines), 0)


def _report(design: Design, files: Sequence[str], sample: Sample, source: Path | None, *, is_loose: bool) -> None:
    rows = []
    for one in design.fields:
        facts = {
            "key": one in design.key,
            "grouped by": design.has_aggregate and one == design.by,
            "time of the event": design.has_aggregate and one == design.at,
            "kept as JSON text": one.kind == "json",
        }
        rows.append((one.name, one.column, one.written, ", ".join(name for name, is_so in facts.items() if is_so)))
    show_table(f"apps/{design.name}: fields", ("field", "column", "type", ""), rows)
    say(*(f"apps/{design.name}/{file}" for file in files))
    if source is not None:
        say(f"{design.samples_file[0]} holds the first {len(design.samples)} of {sample.lines} events of {source}.")
    say(*([NOTE] if design.each else []))
    if design.has_aggregate:
        say(f"The aggregate sums by hour and {design.by.name if design.by else ''} into the table {design.aggregate}.")
    else:
        how = ": name them by --at and --key" if is_loose else ""
        say(f"No aggregate was made: it needs an instant and a text or an integer that every event has{how}.")
    if sample.faults:
        more = len(sample.faults) - MOST_FAULTS
        said = f"Left out: {counted(len(sample.faults), 'line')} of {source}"
        say("", said, *(f"  {each}" for each in sample.faults[:MOST_FAULTS]))
        say(*([f"  and {more:,} more"] if more > 0 else []))
    assumed = list(_assumed(design)) if source is not None else []
    if assumed:
        said = f"Assumed, because each line of {source} shows it (an event that differs becomes a letter):"
        say("", said, *assumed, *([] if is_loose else [_LOOSE_TAKES]), _WIDER)
    say(*(["", *(f"Note: {each}." for each in sample.notes)] if sample.notes else []))
    say(*(["", *(f"Consider: {each}." for each in sample.advice)] if sample.advice else []))
    if any("--" in each for each in (*sample.notes, *sample.advice)) or assumed:
        say(f"To add an option: rm -r apps/{design.name}, and run the same command with it.")
    say("", "Next:", *(f"  {each}" for each in commands_of(design)))


def _assumed(design: Design) -> Iterator[str]:
    """Yield what the types of a room need, each with its fields."""
    needed: dict[str, list[str]] = {}
    for one in design.fields:
        is_text = one.kind in ("text", "ascii")
        needs = {
            "always present": not one.is_optional,
            _ASSUMED.get(one.kind, ""): one.kind in _ASSUMED,
            "neither empty nor with a blank at the end, because it is a key": is_text and one in design.key,
            "without a blank at the end, because it groups the aggregate": is_text
            and one == design.by not in design.key,
            f"at most {one.length} characters": is_text and one in design.keys,
        }
        for need in (need for need, is_so in needs.items() if is_so):
            needed.setdefault(need, []).append(one.name)
    yield from (f"  {need}: {named(names)}" for need, names in needed.items())
