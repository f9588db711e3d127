"""/api/dead-letters: the letters by filter, by cause and one by one."""

import azure.functions as func

from handlers.http import changes, reads, respond

bp = func.Blueprint()


@reads(bp, "dead-letters")
def list_letters(req: func.HttpRequest) -> func.HttpResponse:
    """A page."""
    return respond(req, "list_letters")


@reads(bp, "dead-letters/groups")
def group_letters(req: func.HttpRequest) -> func.HttpResponse:
    """By cause."""
    return respond(req, "group_letters")


@reads(bp, "dead-letters/{partition_id}/{sequence_number}")
def show_letter(req: func.HttpRequest) -> func.HttpResponse:
    """One of them."""
    return respond(req, "show_letter")


@changes(bp, "dead-letters/retry")
def retry_letters_now(req: func.HttpRequest) -> func.HttpResponse:
    """A person asks: their attempts begin anew, and they are due now."""
    return respond(req, "retry_letters_now")


@changes(bp, "dead-letters/discard")
def discard_letters(req: func.HttpRequest) -> func.HttpResponse:
    """A person gives them up."""
    return respond(req, "discard_letters")
