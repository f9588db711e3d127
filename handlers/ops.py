"""GET /api/ops, the operator's page, and /api/openapi.json: they hold nothing secret, so nobody needs a key."""

import azure.functions as func

from handlers.http import OPEN, ROUTES, reads, respond

bp = func.Blueprint()


@reads(bp, "ops", OPEN)
def ops(req: func.HttpRequest) -> func.HttpResponse:
    """The page."""
    return respond(req, "ops")


@reads(bp, "ops/{file}", OPEN)
def ops_file(req: func.HttpRequest) -> func.HttpResponse:
    """Its style and its scripts."""
    return respond(req, "ops_file")


@reads(bp, "openapi.json", OPEN)
def openapi(req: func.HttpRequest) -> func.HttpResponse:
    """The description of the API."""
    return respond(req, "openapi")


# The host tries routes that overlap in the order of their functions' names (Azure/azure-functions-host#9876): this one
# has to be the last. It has no methods: every one of them comes here.
@bp.function_name("zz_no_such_route")
@bp.route(route="{*path}", auth_level=OPEN)
def zz_no_such_route(req: func.HttpRequest) -> func.HttpResponse:
    """A problem for what no route answers: 405 with the methods of a route that is there, else 404."""
    from handlers.unrouted import answer_unrouted

    return answer_unrouted(req, ROUTES.values())
