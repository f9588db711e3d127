"""Homes: a search of them, the activity of one, and the page that shows it to a resident."""

import azure.functions as func

from handlers.http import OPEN, reads, respond

bp = func.Blueprint()


@reads(bp, "homes")
def find_homes(req: func.HttpRequest) -> func.HttpResponse:
    """Homes by how their ids begin."""
    return respond(req, "find_homes")


@reads(bp, "homes/{home_id}", OPEN)
def home_page(req: func.HttpRequest) -> func.HttpResponse:
    """The page: the same for every id, so it tells nobody which homes there are."""
    return respond(req, "home_page")


@reads(bp, "homes/{home_id}/activity")
def show_activity(req: func.HttpRequest) -> func.HttpResponse:
    """The last day and week of a home, and its alerts."""
    return respond(req, "show_activity")
