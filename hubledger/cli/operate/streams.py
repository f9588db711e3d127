"""`streams`: the incarnation of the stream, and the next one."""

from typing import Annotated

import typer

from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Why
from hubledger.cli.operate.letters import Revealed
from hubledger.cli.operate.status import stop_line
from hubledger.cli.output import WRITTEN, moment, text_of, yes_or_no
from hubledger.cli.remote.client import AppAnswer

_Anchor = Annotated[
    str, typer.Option(metavar="PLACE", help=f"Where each partition begins: first, latest, or a time: {WRITTEN}.")
]
_ForReal = Annotated[bool, typer.Option("--for-real", help="After the dry run, open it; it asks.")]
_Force = Annotated[bool, typer.Option("--force", help="Open it although the hub is still the one of the stream.")]


def show_stream(at: At, revealed: Revealed = False) -> int:
    """Show the stream: its hub, its incarnation and its stops.

    --revealed shows the errors that stopped a partition. Ends with 1 when a partition is stopped.

    Example: bin/hubledger streams show
    """
    found = at.app.get("status")
    value, out = found.value, at.out
    stops = [stop for one in value["partitions"] for stop in one["stops"]]
    shown = at.app.get("revealed/stops") if revealed else None
    if out.as_json:
        out.json((shown or found).text)
    else:
        out.show(
            out.facts(
                out.stated("hub=event_hub, consumer_group, incarnation, hub created=hub_created_at@, hub_fault", value)
                | {"stops": yes_or_no(not stops, "none", text_of(len(stops)))}
            ),
            *(stop_line(out, one) for one in (shown.value["stops"] if shown else stops)),
        )
    return UNHEALTHY if stops else GOOD


def next_incarnation(
    at: At, reason: Why, anchor: _Anchor = "first", for_real: _ForReal = False, force: _Force = False
) -> None:
    """Open the next incarnation of a stream whose hub was recreated: a dry run, which shows what would be read.

    Example: bin/hubledger streams next-incarnation --reason "the hub was recreated" --for-real
    """
    if for_real:
        at.refuse_without_person()
    anchor = anchor if anchor in ("first", "latest") else str(moment(anchor))
    incarnation = at.app.get("status").value["incarnation"]
    order = {"expected_incarnation": incarnation, "reason": reason, "anchor": anchor, "force": force}
    dry = at.app.post("streams/next-incarnation", {**order, "dry_run": True})
    _show(at, dry)
    if for_real:
        at.confirm(f"Open incarnation {dry.value['incarnation']}?")
        created = dry.value["hub_created_at"]
        _show(
            at, at.app.post("streams/next-incarnation", {**order, "dry_run": False, "expected_hub_created_at": created})
        )


def _show(at: At, found: AppAnswer) -> None:
    value, out = found.value, at.out
    if out.as_json:
        return out.json(found.text)
    is_dry = value["outcome"] == "dry_run"
    facts = {
        "outcome": "dry run: nothing was changed" if is_dry else "opened",
        "incarnation": value["incarnation"],
        "hub created": out.ago(value["hub_created_at"]),
        "evidence": value["evidence"] or "none: the hub is still the one of the stream",
        "events to read": value["numbers"],
    }
    shown = (
        "partition=partition_id, begins at=anchor#, hub from=hub_beginning#~, hub to=hub_end#~, to read=numbers#,"
        " evidence~?"
    )
    out.show(out.facts(facts), out.listing(shown, value["partitions"]))
    return None
