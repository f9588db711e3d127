"""GET /api/status and /api/health: the state of the books, and whether the app is well."""

import azure.functions as func

from handlers.http import OPEN, reads, respond

bp = func.Blueprint()


@reads(bp, "status")
def status(req: func.HttpRequest) -> func.HttpResponse:
    """200 and the books, or 503 and a problem that says what is wrong with settings or store."""
    return respond(req, "status")


@reads(bp, "health/live", OPEN)
def health_live(req: func.HttpRequest) -> func.HttpResponse:
    """The process lives."""
    return respond(req, "health_live")


@reads(bp, "health/ready", OPEN)
def health_ready(req: func.HttpRequest) -> func.HttpResponse:
    """The store can be used; 503 when not."""
    return respond(req, "health_ready")


@reads(bp, "health/ledger")
def health_ledger(req: func.HttpRequest) -> func.HttpResponse:
    """The books balance; 503 when not."""
    return respond(req, "health_ledger")
