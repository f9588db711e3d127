"""`ledger`: where one number went, and whether the ledger has faults."""

from collections.abc import Mapping
from shlex import quote
from typing import Annotated, Any

import typer

from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Everything
from hubledger.cli.operate.letters import (
    Position,
    Revealed,
    attempts_table,
    facts_of,
    number_of,
    numbers_in,
    position_of,
)
from hubledger.cli.operate.tasks import AUDIT, audit_facts, finished, shown, tables_of
from hubledger.cli.output import WRITTEN, Refused, UsageFault, moment, place_of, program, text_of

_Partition = Annotated[str | None, typer.Option("--partition", metavar="ID", help="One partition; default: all.")]
_Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help=f"{WRITTEN}.")]
_Key = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="A partition key or subject. The app logs who asked.")
]
_Limit = Annotated[int, typer.Option(min=1, max=500, help="Places of a page.")]
_Rows = Annotated[bool, typer.Option("--rows", help="Recount the rows too.")]
_First = Annotated[str | None, typer.Option(metavar="NUMBER", help="The first number of a recount.")]
_Last = Annotated[str | None, typer.Option(metavar="NUMBER", help="The last number of a recount.")]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when the app has accepted the job.")]


def explain(at: At, position: Position, revealed: Revealed = False) -> None:
    """Explain where one number went: outcome, commit, letter, replays.

    Example: bin/hubledger ledger explain 3 41
    """
    path = f"ledger/{position_of(position)}"
    found = at.app.get(f"revealed/{path}" if revealed else path)
    if at.out.as_json:
        return at.out.json(found.text)
    value, out = found.value, at.out
    out.say(value["sentence"])
    span, gap = value["range"], value["gap"]
    made = {
        "number": place_of(value),
        "commit": span
        and f"{span['first']} to {span['last']}, commit {text_of(span['commit_number'])}, {span['kind']}",
        "gap": gap and f"{gap['first']} to {gap['last']}, {gap['status']}, found {out.ago(gap['found_at'])}",
    }
    shown = (
        "number, outcome*, checkpoint, range=commit, committed=range.committed_at@, transform=range.transform_version,"
        " invocation=range.invocation_id, gap"
    )
    out.show(out.facts(out.stated(shown, {**value, **made})))
    if value["letter"]:
        out.show(out.facts(facts_of(out, value["letter"])), attempts_table(out, value["history"]))
    if value["rows"]:
        out.show(out.listing("table, ordinal#, commit=commit_number#, columns%", value["rows"], "rows"))
    if value["changes"]:
        shown = "commit=commit_number#, kind, committed=committed_at@, transform=transform_version, job=invocation_id~"
        out.show(out.listing(shown, value["changes"], "changes since"))
    return None


def find(
    at: At,
    since: _Since = None,
    partition: _Partition = None,
    key: _Key = None,
    limit: _Limit = 50,
    everything: Everything = False,
) -> None:
    """Find the first commit of each partition since a time, or the places of a key: its letters and rows.

    Give --since or --key. The places of a key end with words about events that such a search cannot find.

    Example: bin/hubledger ledger find --since yesterday
    """
    if (since is None) == (key is None):
        raise UsageFault("give --since TIME for the commits of a time, or --key KEY for the places of a key")
    if key is not None:
        places, following = list[Mapping[str, Any]](), None
        for page in at.app.pages(
            "revealed/ledger", {"key": key, "partition_id": partition, "limit": limit}, everything
        ):
            if at.out.as_json:
                at.out.json(page.text)
            places += page.value["places"]
            sentence, following = page.value["sentence"], page.value["next"]
        rows = [{**one, "in": ", ".join(one["tables"])} for one in places]
        at.out.show(at.out.listing("partition=partition_id, number=sequence_number#, letter, rows in=in", rows))
        at.out.say(sentence, *(["Older numbers were not searched yet: give --all."] if following else []))
        if places:
            at.out.say(
                f"Next: {program()} ledger explain {quote(places[0]['partition_id'])} {places[0]['sequence_number']}"
            )
        return None
    found = at.app.get("ledger", {"at": moment(since), "partition_id": partition})
    if at.out.as_json:
        return at.out.json(found.text)
    if partition and not found.value["commits"]:
        raise Refused(f"partition {partition} has no commit")
    none = {"commit_number": None, "kind": "none since", "first": None, "last": None, "committed_at": None}
    rows = [{**one, "commit": one["commit"] or none} for one in found.value["commits"]]
    rows.sort(key=lambda one: (len(one["partition_id"]), one["partition_id"]))
    shown = (
        "partition=partition_id, commit=commit.commit_number#, commit.kind, commit.first#, commit.last#,"
        " committed=commit.committed_at@"
    )
    at.out.show(at.out.listing(shown, rows))
    return None


def audit(
    at: At,
    partition: _Partition = None,
    rows: _Rows = False,
    first: _First = None,
    last: _Last = None,
    no_wait: _NoWait = False,
) -> int:
    """Audit the ledger. With --rows it runs as a task.

    Ends with 1 when the audit has found a fault. It changes no data.

    Example: bin/hubledger ledger audit --rows
    """
    if (first or last or no_wait) and not rows:
        raise UsageFault("--first, --last and --no-wait are for a recount, which is a task: give --rows")
    if not rows:
        found = at.app.get("ledger/audit", {"partition_id": partition})
        value, out = found.value, at.out
        if out.as_json:
            out.json(found.text)
        else:
            out.show(out.facts(audit_facts(out, value)), *tables_of(out, value, AUDIT))
            if not value["complete"]:
                out.say("It is not complete, because its time was over: run it with --rows, as a task.")
        return GOOD if value["balanced"] and not value["faults"] else UNHEALTHY
    named, ends = numbers_in([partition] if partition else [], first, last)
    numbers = dict(zip(("first", "last"), (text and (number_of(text) or text) for text in ends), strict=True))
    order = {"partition_id": next(iter(named), None), "rows": rows, **numbers}
    accepted = at.app.open_task("audit", order)
    return shown(at, accepted) if no_wait else finished(at, accepted, "audit")[0]
