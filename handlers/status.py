"""GET /api/status: per partition the hub's end, our checkpoint, lag and outcomes; and whether the books balance."""

import json
from collections.abc import Mapping
from typing import Any

import azure.functions as func

from core.errors import HubledgerError, HubUnreachable
from core.events import PartitionId
from core.settings import Settings
from core.status import PartitionLedger, PartitionStatus, balanced, partition_statuses
from handlers.services import Services, services

bp = func.Blueprint()


@bp.function_name("status")
@bp.route(route="status", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
def status(req: func.HttpRequest) -> func.HttpResponse:
    """200 and the books, or 503 and a problem (RFC 9457) that says what is wrong with settings or store.

    Numbers of events are numbers; sequence numbers are strings, for they have 64 bits.
    """
    try:
        body = _status(services())
    except HubledgerError as error:
        problem = {"title": type(error).__name__, "status": 503, "detail": str(error)}
        return func.HttpResponse(json.dumps(problem), status_code=503, mimetype="application/problem+json")
    return func.HttpResponse(json.dumps(body), mimetype="application/json", headers={"Cache-Control": "no-store"})


def _status(own: Services) -> dict[str, Any]:
    ledgers = [ledger for ledger in own.store.read_ledgers() if _belongs(ledger, own.settings)]
    ends, fault = _hub_ends(own)
    return {
        "event_hub": own.settings.event_hub,
        "consumer_group": own.settings.consumer_group,
        "hub_fault": fault,
        "ledger_balanced": balanced(ledgers),
        **_totals(ledgers),
        "partitions": [_partition(one) for one in partition_statuses(ledgers, ends)],
    }


def _belongs(ledger: PartitionLedger, settings: Settings) -> bool:
    partition = ledger.partition
    hub = f"{settings.namespace}/{settings.event_hub}"
    return partition.event_hub == hub and partition.consumer_group == settings.consumer_group


def _hub_ends(own: Services) -> tuple[Mapping[PartitionId, int] | None, str | None]:
    try:
        return own.hub_ends.read(), None
    except HubUnreachable as error:
        return None, str(error)


def _totals(ledgers: list[PartitionLedger]) -> dict[str, int]:
    names = ("accounted", "written", "filtered", "dead_lettered", "held", "absent")
    return {name: sum(getattr(ledger, name) for ledger in ledgers) for name in names}


def _partition(one: PartitionStatus) -> dict[str, Any]:
    ledger = one.ledger
    return {
        "partition_id": one.partition_id,
        "hub_end": None if one.hub_end is None else str(one.hub_end),
        "checkpoint": None if ledger is None else str(ledger.checkpoint),
        "lag": one.lag,
        "balanced": ledger is None or ledger.balanced,
        **_totals([] if ledger is None else [ledger]),
    }
