"""How each kind of task is shown: its own facts, its tables, and the lines after them. Others show plain fields."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from hubledger.cli.views.output import BAD, GOOD, WARNING, Output, yes_or_no
from hubledger.cli.views.texts import brief, counted, text_of

_CHANGES = ("events_changed", "rows_added", "rows_removed", "rows_changed", "letters_added", "letters_resolved", "gone")
Listing = tuple[str, str, str]  # the list of an answer, the words of its columns, and a title
_REAL = ("events", "rows_written", "rows_retracted", "letters_added", "letters_resolved", "held", "gone")


def replay_facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return the facts of a replay that no other task has."""
    counts = value["counts"]
    return {
        "kind": _kind_of(value),
        **{name.replace("_", " "): counts[name] for name in (_CHANGES if value["dry_run"] else _REAL)},
        **({"keys": value["keys"], "other keys": value["other_keys"]} if "keys" in value else {}),
        "transform": value["transform_version"],
        **{
            f"transforms of partition {one['partition_id']}": ", ".join(one["transform_versions"])
            for one in value["partitions"]
            if len(one["transform_versions"]) > 1
        },
    }


def _kind_of(value: Mapping[str, Any]) -> str:
    return "dry run: nothing was changed" if value["dry_run"] else "for real"


def replay_lines(value: Mapping[str, Any]) -> list[str]:
    """Return what is said of the partitions in which nothing can be replayed, and of keys without an event."""
    lines = [f"left out: partition {one['partition_id']}, {one['why']}" for one in value["left_out"]]
    if "keys" in value and value["status"] == "done" and not value["counts"]["events"]:
        lines.append("no event of the range has one of these partition keys")
    return lines


def redrive_facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return the facts of a redrive that no other task has."""
    letters = value.get("letters")
    return {
        "move": value["move"],
        "letters": f"{text_of(len(letters))} selected" if letters else brief(value.get("filter") or {}) or "all",
        "moved": moved_of(value),
        "unmoved": value["unmoved"],
        "outcome": outcome_of(value),
        "per second": value["per_second"],
    }


def outcome_of(value: Mapping[str, Any]) -> Text | None:
    """Return what became of the letters that a retry moved, in its colour; None where nothing is known of it."""
    outcome = value.get("outcome")
    if outcome is None:
        return None
    seen = outcome["letters"]
    of_some = f"of {counted(seen, 'letter')}: " if seen < value["moved"] else ""
    return Text(of_some + text_of(outcome["words"]), style=GOOD if outcome["result"] == "helped" else WARNING)


def moved_of(value: Mapping[str, Any]) -> str:
    """Return how many of the confirmed letters a redrive moved, or how many more than those."""
    moved, total = value["moved"], value["total"]
    if moved <= total:
        return f"{text_of(moved)} of {counted(total, 'letter')}"
    return f"{counted(moved, 'letter')}, {text_of(moved - total)} more than confirmed: they became movable later"


def audit_facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return what an audit has found."""
    count = len(value["faults"])
    return {
        "ledger": yes_or_no(value["balanced"], "balanced", "NOT BALANCED"),
        "accounted": value["accounted"],
        "faults": Text(text_of(count), style=BAD if count else ""),
    }


def plain_facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields that only this kind has, but no lists: they follow `history`, the last one of every kind."""
    own = [*dropwhile(lambda name: name != "history", value)][1:]
    return {name.replace("_", " "): brief(value[name]) for name in own if not isinstance(value[name], list)}


def tables_of(out: Output, value: Mapping[str, Any], tables: Sequence[Listing]) -> Iterator[RenderableType]:
    """Yield the tables of a task; one with a title only where it has rows."""
    for field, words, title in tables:
        rows = value[field]
        if rows or not title:
            yield out.listing(words, rows if isinstance(rows, list) else _pairs(rows), title)


def _pairs(counts: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"table": name, "rows": rows} for name, rows in counts.items()]


class Shown(NamedTuple):
    """How a kind of task is shown: its own facts, its tables, and the lines after them."""

    facts: Callable[[Output, Mapping[str, Any]], dict[str, object]]
    tables: Sequence[Listing] = ()
    lines: Callable[[Mapping[str, Any]], list[str]] = lambda _: []


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
_OF_ERASURE = "subjects, rows, letters, staged, retracted, diffs"
KINDS: Mapping[str, Shown] = {
    "replay": Shown(replay_facts, (("partitions", _OF_REPLAY, ""),), replay_lines),
    "redrive": Shown(redrive_facts),
    "purge": Shown(
        lambda out, value: {"kind": _kind_of(value), **out.stated(_OF_A_PURGE, value)}, (("tables", _PURGED, ""),)
    ),
    "audit": Shown(audit_facts, AUDIT),
    "erasure": Shown(
        lambda out, value: {"kind": _kind_of(value), **out.stated(_OF_ERASURE, value)},
        (("tables", "table, rows#", "rows"),),
        lambda value: [str(one) for one in value["notes"]],
    ),
}
OTHER = Shown(plain_facts)
