"""How each kind of task is shown: its own facts, its tables, and the lines after them. Others show plain fields."""

from collections.abc import Callable, Mapping
from itertools import dropwhile
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from hubledger.cli.views.output import BAD, GOOD, WARNING, Column, Output, yes_or_no
from hubledger.cli.views.texts import brief, counted, text_of

_CHANGES = ("events_changed", "rows_added", "rows_removed", "rows_changed", "letters_added", "letters_resolved", "gone")
_REAL = ("events", "rows_written", "rows_retracted", "letters_added", "letters_resolved", "held", "gone")


def replay_facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return the facts of a replay that no other task has."""
    counts = value["counts"]
    return {
        "kind": "dry run: nothing was changed" if value["dry_run"] else "for real",
        **{name.replace("_", " "): counts[name] for name in (_CHANGES if value["dry_run"] else _REAL)},
        **({"keys": value["keys"], "other keys": value["other_keys"]} if "keys" in value else {}),
        "transform": value["transform_version"],
        **{
            f"transforms of partition {one['partition_id']}": ", ".join(one["transform_versions"])
            for one in value["partitions"]
            if len(one["transform_versions"]) > 1
        },
    }


def replay_lines(value: Mapping[str, Any]) -> list[str]:
    """Return what is said of the partitions in which nothing can be replayed, and of keys without an event."""
    lines = [f"left out: partition {one['partition_id']}, {one['why']}" for one in value["left_out"]]
    if "keys" in value and value["status"] == "done" and not value["counts"]["events"]:
        lines.append("no event of the range has one of these partition keys")
    return lines


def replay_tables(out: Output, value: Mapping[str, Any]) -> list[RenderableType]:
    """Return the table of the partitions of a replay."""
    columns = (
        Column("partition"), Column("first", number=True), Column("last", number=True), Column("next", number=True),
        Column("events", number=True), Column("closed", wide=True), Column("note", wide=True, optional=True),
    )  # fmt: skip
    rows = [
        [
            one["partition_id"], one["first"], one["last"], one["next"], one["counts"]["events"],
            one["closed_at"] and out.when(one["closed_at"]), one["note"],
        ]
        for one in value["partitions"]
    ]  # fmt: skip
    return [out.table(columns, rows)]


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


def purge_facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return the facts of a purge that no other task has."""
    return {
        "kind": "dry run: nothing was removed" if value["dry_run"] else "for real",
        "rows": value["rows"],
        "ages in days": brief(value["older_than_days"]),
    }


def purge_tables(out: Output, value: Mapping[str, Any]) -> list[RenderableType]:
    """Return the tables of a purge, with the rows of each."""
    columns = (
        Column("table"), Column("rows", number=True), Column("octets", number=True, wide=True),
        Column("oldest", wide=True), Column("newest", wide=True),
        Column("what stays", wide=True, optional=True),
    )  # fmt: skip
    return [out.table(columns, [_purged(out, one) for one in value["tables"]])]


def _purged(out: Output, one: Mapping[str, Any]) -> list[object]:
    return [
        one["table"],
        one["rows"],
        one["bytes"],
        out.when(one["oldest"]),
        out.when(one["newest"]),
        "; ".join(one["notes"]),
    ]


def audit_tables(out: Output, value: Mapping[str, Any]) -> list[RenderableType]:
    """Return the audited partitions, and the faults if there are some."""
    audited = out.table(_OF_AUDIT, [_audited(one) for one in value["partitions"]])
    faults = [out.table(_FAULTS, [_fault(one) for one in value["faults"]], "faults")] if value["faults"] else []
    return [audited, *faults]


def erasure_facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return the facts of an erasure that no other task has."""
    counts = ("rows", "letters", "staged", "retracted", "diffs")
    return {
        "kind": "dry run: nothing was erased" if value["dry_run"] else "for real",
        "subjects": value["subjects"],
        **{name: value[name] for name in counts},
    }


def erasure_tables(out: Output, value: Mapping[str, Any]) -> list[RenderableType]:
    """Return the rows of an erasure by table."""
    columns = (Column("table"), Column("rows", number=True))
    return [out.table(columns, [[name, rows] for name, rows in value["tables"].items()])] if value["tables"] else []


def erasure_lines(value: Mapping[str, Any]) -> list[str]:
    """Return what is left elsewhere, and until when."""
    return [str(one) for one in value["notes"]]


_OF_AUDIT = (
    Column("partition"), Column("first", number=True, wide=True), Column("last", number=True),
    Column("commits", number=True),
    Column("accounted", number=True), Column("letters", number=True, wide=True), Column("complete"), Column("state"),
)  # fmt: skip
_FAULTS = (
    Column("partition"),
    Column("kind"),
    Column("first", number=True),
    Column("last", number=True),
    Column("detail"),
)


def audit_facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return what an audit has found."""
    count = len(value["faults"])
    return {
        "ledger": yes_or_no(value["balanced"], "balanced", "NOT BALANCED"),
        "accounted": value["accounted"],
        "faults": Text(text_of(count), style=BAD if count else ""),
    }


def _audited(one: Mapping[str, Any]) -> list[object]:
    return [
        one["partition_id"], one["first"], one["last"], one["commits"], one["accounted"], one["letters"],
        one["complete"], yes_or_no(one["balanced"], "ok", "NOT BALANCED"),
    ]  # fmt: skip


def _fault(one: Mapping[str, Any]) -> list[object]:
    return [one["partition_id"], Text(text_of(one["kind"]), style=BAD), one["first"], one["last"], one["detail"]]


def plain_facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields that only this kind has, but no lists: they follow `history`, the last one of every kind."""
    own = [*dropwhile(lambda name: name != "history", value)][1:]
    return {name.replace("_", " "): brief(value[name]) for name in own if not isinstance(value[name], list)}


class Shown(NamedTuple):
    """How a kind of task is shown: its own facts, its tables, and the lines after them."""

    facts: Callable[[Output, Mapping[str, Any]], dict[str, object]]
    tables: Callable[[Output, Mapping[str, Any]], list[RenderableType]] = lambda _, __: []
    lines: Callable[[Mapping[str, Any]], list[str]] = lambda _: []


KINDS: Mapping[str, Shown] = {
    "replay": Shown(replay_facts, replay_tables, replay_lines),
    "redrive": Shown(redrive_facts),
    "purge": Shown(purge_facts, purge_tables),
    "audit": Shown(audit_facts, audit_tables),
    "erasure": Shown(erasure_facts, erasure_tables, erasure_lines),
}
OTHER = Shown(plain_facts)
