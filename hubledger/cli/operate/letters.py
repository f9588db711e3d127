"""`letters`: list and show dead letters, and group them by cause."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import Annotated, Any, Literal

import typer
from rich.console import RenderableType
from rich.text import Text

from hubledger.cli.operate.command import At, Everything, begun
from hubledger.cli.output import WRITTEN, Output, UsageFault, cut, lines_of, moment, place_of, program, text_of
from hubledger.cli.remote.client import AppAnswer, Refusal

MOST_CAUSES = 100  # of an answer
WHOLE = 16  # characters of a cause; after a dot come eight of the values of its message
_CAUSE = re.compile(r"[0-9a-f]{16}(\.[0-9a-f]{8})?")
_BEGINNING = re.compile(r"[0-9a-f]{1,16}(\.[0-9a-f]{1,8})?")


def cause_named(at: At, given: str, query: Mapping[str, str]) -> str:
    """Return the cause, or the value of it, that begins as given. UsageFault where several of the letters' do, and
    for a text that begins no cause at all.
    """
    if _CAUSE.fullmatch(given):
        return given
    if not given.isascii():  # the app, or the way there, refuses it
        return given
    if not _BEGINNING.fullmatch(given):
        raise UsageFault(f"--cause {given!r} is no cause, and no beginning of one: {program()} letters causes")
    cause, dot, value = given.partition(".")
    found = cause if len(cause) == WHOLE else _only(at, cause, query)
    return _only(at, f"{found}.{value}", {**query, "fingerprint": found}) if dot else found


def reveals(query: Mapping[str, Any]) -> bool:
    """Return True for a filter that only a revealing address takes: by partition key, or by one value of a cause."""
    return "partition_key" in query or "." in query.get("fingerprint", "")


def _only(at: At, given: str, query: Mapping[str, str]) -> str:
    place = "revealed/dead-letters/groups" if "fingerprint" in query else "dead-letters/groups"
    groups = at.app.get(place, {**query, "limit": MOST_CAUSES}).value["groups"]
    known = [one["fingerprint"] for one in groups]
    if given not in known and len(known) == MOST_CAUSES:
        raise UsageFault(f"--cause {given}: there are too many causes to find it among them: write it whole")
    return begun(given, known, "cause", "--cause ") or given


def messages_of(at: At, query: Mapping[str, str]) -> dict[str, str]:
    """Return the message of each cause of the letters that a filter chooses. Who may not see messages gets none."""
    try:
        found = at.app.get("revealed/dead-letters/groups", {**query, "limit": MOST_CAUSES})
    except Refusal as refusal:
        if refusal.status not in (401, 403):
            raise
        return {}
    return {one["fingerprint"]: message_of(one) for one in found.value["groups"] if one["template"]}


def message_of(group: Mapping[str, Any]) -> str:
    """Return the message of a cause in a line, with some of the values that stand in its gaps."""
    examples = f" (e.g. {', '.join(group['examples'])})" if group["examples"] else ""
    return cut(f"{group['template']}{examples}")


def groups_of(at: At, query: dict[str, Any], must_reveal: bool) -> AppAnswer:
    """Return the causes with their messages for who may see them, else without."""
    try:
        return at.app.get("revealed/dead-letters/groups", query)
    except Refusal as refusal:
        if must_reveal or refusal.status not in (401, 403):
            raise
    at.out.note("The messages are hidden: this key or account may not reveal what events hold.")
    return at.app.get("dead-letters/groups", query)


COLUMNS = (
    "partition=partition_id, number=sequence_number#, status*, error=message+, failed=failed_at@~, class=error_class~,"
    " cause~, attempts#~, due=due_at@~?"
)


Status = Literal["waiting", "retrying", "held", "resolved", "exhausted", "discarded"]
ErrorClass = Literal["poison", "reference", "refused", "unknown", "crash"]


class Body(StrEnum):
    """The forms in which the app shows a body."""

    text = "text"
    json = "json"
    hex = "hex"


@dataclass(frozen=True, slots=True)
class Where:
    """The options that choose letters by what they are."""

    status: Annotated[Status | None, typer.Option(help="One status.")] = None
    error_class: Annotated[ErrorClass | None, typer.Option("--class", help="The class of the error.")] = None
    cause: Annotated[
        str | None,
        typer.Option("--cause", metavar="FINGERPRINT", help="One cause of `letters causes`, or how it begins."),
    ] = None
    partition: Annotated[str | None, typer.Option("--partition", metavar="ID", help="One partition.")] = None


@dataclass(frozen=True, slots=True)
class When:
    """The options that choose letters by the time at which they failed."""

    failed_from: Annotated[
        str | None, typer.Option("--failed-from", metavar="TIME", help=f"Failed at this time or later: {WRITTEN}.")
    ] = None
    failed_before: Annotated[
        str | None, typer.Option("--failed-before", metavar="TIME", help="Failed before this time.")
    ] = None


ANYWHERE, ANY_TIME = Where(), When()
Key = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="One partition key; like --revealed, it tells of events.")
]
Limit = Annotated[int, typer.Option(min=1, max=500, help="Letters of a page.")]
Revealed = Annotated[
    bool, typer.Option("--revealed", help="Also the texts that quote events. The app logs who saw them.")
]
Position = Annotated[
    list[str], typer.Argument(metavar="PARTITION NUMBER", help="Also 15/1111, or as the page shows it: 15 / 1,111.")
]
_NUMBER = r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+"
_POSITION = rf"([^\s/]+)(?:\s*/\s*|\s+)({_NUMBER})(?:\s+|$)"


def list_letters(
    at: At,
    where: Where = ANYWHERE,
    key: Key = None,
    when: When = ANY_TIME,
    limit: Limit = 50,
    everything: Everything = False,
    revealed: Revealed = False,
) -> None:
    """List letters, the last to fail first.

    Example: bin/hubledger letters list --status exhausted --class poison
    """
    query = filter_of(at, where, when, key)
    path = "revealed/dead-letters" if revealed or reveals(query) else "dead-letters"
    rows, following = at.listed(path, "letters", {**query, "limit": limit}, everything)
    if not at.out.as_json:
        at.out.show(table_of(at.out, rows, messages=messages_of(at, query) if rows and not revealed else {}))
    at.out.say(*(["There are more: give --all, or a filter."] if following else []))
    at.out.say(*_next_of(rows))


def _next_of(letters: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the next commands for the cause of the first of these letters that is open."""
    first = next((one for one in letters if one["status"] not in ("resolved", "discarded")), None)
    if first is None:
        return ()
    cause = cause_of(first)
    return (
        f"Next: {program()} letters show {quote(first['partition_id'])} {first['sequence_number']} --body text",
        f"When it is mended: {program()} letters retry --cause {cause}",
        f"To give them up: {program()} letters discard --cause {cause}",
    )


def filter_of(at: At, where: Where, when: When, key: str | None = None) -> dict[str, str]:
    """Return the filter of the options, without those that were left out."""
    given = {
        "status": where.status,
        "error_class": where.error_class,
        "partition_id": where.partition,
        "failed_from": moment(when.failed_from),
        "failed_before": moment(when.failed_before),
    }
    found = {name: value for name, value in given.items() if value is not None}
    if where.cause is not None:
        found["fingerprint"] = cause_named(at, where.cause, found)
    return found if key is None else {**found, "partition_key": key}


def positions_of(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return the partition and the number of each position, written in any of the ways that we show one."""
    text = " ".join(words)
    if not re.fullmatch(f"(?:{_POSITION})+", text):
        raise UsageFault(f"{text}: write PARTITION/NUMBER, such as 3/41")
    return [(partition, number.replace(",", "")) for partition, number in re.findall(_POSITION, text)]


def position_of(words: Sequence[str]) -> str:
    """Return the one position of a command as a part of an address."""
    (partition, number), *more = positions_of(words)
    if more:
        raise UsageFault(f"{' '.join(words)}: name one number")
    return f"{segment(partition)}/{number}"


def number_of(text: str) -> str | None:
    """Return the digits of a sequence number. None for a text that is none."""
    return text.replace(",", "") if re.fullmatch(_NUMBER, text) else None


def numbers_in(partitions: Sequence[str], *texts: str | None) -> tuple[list[str], list[str | None]]:
    """Return the partitions, and the texts. A position among the texts names its partition, and leaves its number.
    UsageFault where two partitions are named.
    """
    found = [re.fullmatch(_POSITION, text.strip()) if text and "/" in text else None for text in texts]
    named = list(dict.fromkeys(one[1] for one in found if one))
    if (named and {*named} != {*(partitions or named)}) or len(named) > 1:
        raise UsageFault(f"{', '.join(map(str, filter(None, texts)))}: a number stands in one partition: give that one")
    return named or list(partitions), [one[2] if one else text for one, text in zip(found, texts, strict=True)]


def table_of(
    out: Output, letters: list[Mapping[str, Any]], title: str = "", messages: Mapping[str, str] | None = None
) -> RenderableType:
    """Make a table of letters. A letter without its error shows the message of its cause, where it is known."""
    known = messages or {}
    rows = [
        {
            **one,
            "cause": (cause := cause_of(one)),
            "message": said_by(one, one["error"] or known.get(one["fingerprint"], known.get(cause))),
        }
        for one in letters
    ]
    return out.listing(COLUMNS, rows, title)


def causes(
    at: At,
    where: Where = ANYWHERE,
    key: Key = None,
    when: When = ANY_TIME,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Causes to show.")] = 50,
    revealed: Revealed = False,
) -> None:
    """Group letters by cause, causes with the most open letters first, or the letters of one --cause by value.

    Values are what differs in the messages of a cause. --cause of `letters retry` and `letters discard` takes one, too.

    Example: bin/hubledger letters causes --status exhausted --revealed
    """
    query = {**filter_of(at, where, when, key), "limit": limit}
    found = groups_of(at, query, revealed or reveals(query))
    if at.out.as_json:
        return at.out.json(found.text)
    at.out.show(causes_table(at.out, found.value["groups"]))
    at.out.say(*_next_of(one["sample"] for one in found.value["groups"] if one["open"]))
    return None


def cause_of(letter: Mapping[str, Any]) -> str:
    """Return the cause of a letter, without the values of its message."""
    return str(letter["fingerprint"]).partition(".")[0]


def causes_table(out: Output, groups: list[Mapping[str, Any]]) -> RenderableType:
    """Make a table of causes."""
    rows = [
        {
            **one,
            "error": said_by(one["sample"], one["template"] and message_of(one)),
            "place": place_of(one["sample"]),
        }
        for one in groups
    ]
    return out.listing(
        "error+, letters#, open#~, cause=fingerprint, sample=place~, class=sample.error_class~, last=last_failed_at@~,"
        " first=first_failed_at@~, values=variants#~",
        rows,
    )


def show_letter(
    at: At,
    position: Position,
    revealed: Revealed = False,
    body: Annotated[Body | None, typer.Option(help="Show the body in this form; it reveals the event.")] = None,
) -> None:
    """Show one letter, with its attempts.

    Example: bin/hubledger letters show 3 41 --body json
    """
    path = f"dead-letters/{position_of(position)}"
    is_revealed = revealed or body is not None
    try:
        found = at.app.get(f"revealed/{path}" if is_revealed else path, {"body": body.value if body else None})
    except Refusal as refusal:
        if refusal.kind == "not-found":
            refusal.sentence += f"\n  where the number went: {program()} ledger explain {' '.join(position)}"
        raise
    if at.out.as_json:
        return at.out.json(found.text)
    letter, out = found.value["letter"], at.out
    facts = facts_of(out, letter) | out.stated("offset, properties%, system_properties%", found.value)
    out.show(out.facts(facts), attempts_table(out, found.value["history"]))
    if body_shown := found.value["body"]:
        cut = ", cut" if body_shown["truncated"] else ""
        head = f"body, {text_of(body_shown['bytes'])} octets{cut}"
        fault = body_shown["shown"] is None and Text(text_of(body_shown["fault"]))
        out.show(fault or Text(f"{head}:\n{lines_of(str(body_shown['shown']))}"))
    elif letter["erased_by"]:
        out.say(f"An erasure blanked it: {program()} tasks show {letter['erased_by']}")
    elif not is_revealed:
        out.say("--revealed shows the error, --body text the body.")
    return None


def facts_of(out: Output, letter: Mapping[str, Any]) -> dict[str, object]:
    """Return the names and values of a letter."""
    kept = "stored" if letter["body_kept"] else "in the hub only"
    made = {
        "place": place_of(letter),
        "cause": cause_of(letter),
        "body": "erased" if letter["erased_by"] else f"{text_of(letter['body_bytes'])} octets, {kept}",
    }
    return out.stated(
        "letter=place, status*, held_behind, class=error_class, error_type, error&, raised at=error_at, cause,"
        " attempts, enqueued=enqueued_at@, failed=failed_at@, due=due_at@, settled=settled_at@, settled_why,"
        " partition_key, transform=transform_version, body",
        {**letter, **made},
    )


def attempts_table(out: Output, history: list[Mapping[str, Any]]) -> RenderableType:
    """Make a table of the attempts at a letter."""
    shorter = re.compile(r"^([0-9a-f]{8})-[0-9a-f-]{27}$")  # the id of an invocation
    rows = [
        {**one, "type": short_type(one["error_type"]), "done_by": shorter.sub(r"\1", one["done_by"] or "")}
        for one in history
    ]
    shown = "attempt#, kind, status*, done=done_at@, by=done_by, why~?, error type=type~?, error%?"
    return out.listing(shown, rows, "attempts")


def said_by(letter: Mapping[str, Any], message: str | None) -> str:
    """Return the error of a letter: its type, and its message for who may see it."""
    return ": ".join(filter(None, (short_type(letter["error_type"]), message)))


def short_type(name: str | None) -> str:
    """Return the name of a class without its module."""
    return (name or "").rpartition(".")[2]


def segment(text: str) -> str:
    """Return a text as one segment of an address."""
    from urllib.parse import quote as quoted

    return quoted(text, safe="")
