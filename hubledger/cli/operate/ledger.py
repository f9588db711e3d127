"""`ledger`: where one number went, and whether the ledger has faults."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hubledger.cli.console import UsageFault
from hubledger.cli.moments import WRITTEN, moment
from hubledger.cli.operate.command import GOOD, UNHEALTHY, At
from hubledger.cli.operate.kinds import audit_facts, audit_tables
from hubledger.cli.operate.letters import Number, PartitionId, Revealed, attempts_table, facts_of, segment
from hubledger.cli.operate.tasks import finished, shown
from hubledger.cli.remote.client import AppAnswer
from hubledger.cli.views.output import Column, Output, toned
from hubledger.cli.views.texts import brief, text_of

_Partition = Annotated[str | None, typer.Option("--partition", metavar="ID", help="One partition; default: all.")]
_Since = Annotated[str, typer.Option("--since", metavar="TIME", help=f"{WRITTEN}.")]
_Whole = Annotated[bool, typer.Option("--whole", help="Every range, also those that an audit verified before.")]
_Rows = Annotated[bool, typer.Option("--rows", help="Recount the rows too.")]
_Hub = Annotated[bool, typer.Option("--hub", help="Read the hub too.")]
_First = Annotated[str | None, typer.Option(metavar="NUMBER", help="The first number of a recount.")]
_Last = Annotated[str | None, typer.Option(metavar="NUMBER", help="The last number of a recount.")]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when the app has accepted the job.")]


def explain(at: At, partition: PartitionId, number: Number, revealed: Revealed = False) -> None:
    """Explain where one number went: outcome, commit, letter, replays.

    Example: python -m hubledger ledger explain 3 41
    """
    path = f"ledger/{segment(partition)}/{segment(number)}"
    found = at.app.get(f"revealed/{path}" if revealed else path)
    if at.out.as_json:
        return at.out.json(found.text)
    value, out = found.value, at.out
    out.say(value["sentence"])
    out.show(out.facts(_place(out, value)))
    if value["letter"]:
        out.show(out.facts(facts_of(out, value["letter"])), attempts_table(out, value["history"]))
    if value["rows"]:
        rows = [[one["table"], one["ordinal"], one["commit_number"], brief(one["columns"])] for one in value["rows"]]
        columns = (
            Column("table"),
            Column("ordinal", number=True),
            Column("commit", number=True),
            Column("columns"),
        )
        out.show(out.table(columns, rows, "rows"))
    if value["changes"]:
        out.show(out.table(_CHANGES, [_change(out, one) for one in value["changes"]], "changes since"))
    return None


def find(at: At, since: _Since, partition: _Partition = None) -> None:
    """Find the first commit of each partition since a time, with its sequence numbers.

    Example: python -m hubledger ledger find --since yesterday
    """
    given = {"at": moment(since)} | ({"partition_id": partition} if partition else {})
    found = at.app.get("ledger", given)
    if at.out.as_json:
        return at.out.json(found.text)
    at.out.show(at.out.table(_FOUND, [_found(at.out, one) for one in found.value["commits"]]))
    return None


_FOUND = (
    Column("partition"),
    Column("commit", number=True),
    Column("kind"),
    Column("first", number=True),
    Column("last", number=True),
    Column("committed"),
)


def _found(out: Output, one: Mapping[str, Any]) -> list[object]:
    commit = one["commit"]
    if commit is None:
        return [one["partition_id"], None, "none since", None, None, None]
    names = ("commit_number", "kind", "first", "last")
    return [one["partition_id"], *(commit[name] for name in names), out.when(commit["committed_at"])]


_CHANGES = (
    Column("commit", number=True),
    Column("kind"),
    Column("committed"),
    Column("transform"),
    Column("job", wide=True),
)


def _place(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    found, gap = value["range"], value["gap"]
    return {
        "number": f"{value['sequence_number']} of partition {value['partition_id']}",
        "outcome": toned(value["outcome"]),
        "checkpoint": value["checkpoint"],
        "range": found
        and f"{found['first']} to {found['last']}, commit {text_of(found['commit_number'])}, {found['kind']}",
        "committed": found and out.ago(found["committed_at"]),
        "transform": found and found["transform_version"],
        "invocation": found and found["invocation_id"],
        "gap": gap and f"{gap['first']} to {gap['last']}, {gap['status']}, found {out.ago(gap['found_at'])}",
    }


def _change(out: Output, one: Mapping[str, Any]) -> list[object]:
    return [
        one["commit_number"],
        one["kind"],
        out.when(one["committed_at"]),
        one["transform_version"],
        one["invocation_id"],
    ]


def audit(
    at: At,
    partition: _Partition = None,
    whole: _Whole = False,
    rows: _Rows = False,
    hub: _Hub = False,
    first: _First = None,
    last: _Last = None,
    no_wait: _NoWait = False,
) -> int:
    """Audit the ledger: the ranges since the last audit, at once; --whole, --rows and --hub run as a job.

    Ends with 1 when the audit has found a fault. It changes no data.

    Example: python -m hubledger ledger audit --whole --rows
    """
    is_job = whole or rows or hub
    if (first or last) and not (rows or hub):
        raise UsageFault("--first and --last are for a recount: give --rows or --hub")
    if not is_job:
        return _audited(at, at.app.get("ledger/audit", {"partition_id": partition}))
    order = {"partition_id": partition, "whole": whole, "rows": rows, "hub": hub, "first": first, "last": last}
    accepted = at.app.post("audits", order)
    return shown(at, accepted) if no_wait else finished(at, accepted, "audit")


def _audited(at: At, found: AppAnswer) -> int:
    value, out = found.value, at.out
    if out.as_json:
        out.json(found.text)
    else:
        out.show(out.facts(audit_facts(out, value)), *audit_tables(out, value))
        if not value["complete"]:
            out.say("It is not complete: run it again, and it goes on from there.")
    return GOOD if value["balanced"] and not value["faults"] else UNHEALTHY
