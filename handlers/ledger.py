"""GET /api/ledger: the audit, and where one number went."""

import azure.functions as func

from handlers.http import reads, respond

bp = func.Blueprint()


@reads(bp, "ledger/audit")
def audit_ledger(req: func.HttpRequest) -> func.HttpResponse:
    """Every range, read anew."""
    return respond(req, "audit_ledger")


@reads(bp, "ledger/{partition_id}/{sequence_number}")
def explain_number(req: func.HttpRequest) -> func.HttpResponse:
    """Where did it go?"""
    return respond(req, "explain_number")
