"""Make a link for the resident of one home, and show that home to the holder of the link."""

from datetime import datetime
from urllib.parse import quote

from handlers.app import app
from handlers.operations.home_shapes import ActivityAnswer, ActivityQuery, HomePath
from handlers.operations.homes import activity_of, homes_of
from handlers.web.links import end_of_link, sign_link
from handlers.web.operation import Answered, Call, Nothing, operation
from handlers.web.problems import CONFLICT, NOT_FOUND, Problem, not_found


class LinkAnswer(Answered):
    """A link for one home, which works until `expires_at`. `page` is the address of the page with the link after its
    `#`, which browsers send to no server."""

    home_id: str
    link: str
    page: str
    expires_at: datetime


@operation("A link for the resident of one home", "homes", problems=(NOT_FOUND, CONFLICT))
def make_home_link(call: Call[HomePath, Nothing, Nothing]) -> LinkAnswer:
    """Sign a link; nothing is stored."""
    own, home_id = app(), call.path.home_id
    registered = homes_of(own)
    access = own.settings.access
    if not access.link_secrets:
        raise Problem(CONFLICT, "RESIDENT_LINK_SECRET is not set, so this app makes no links")
    if registered.find_home(home_id) is None:
        raise not_found("home_id", f"no home is registered as {home_id}")
    expires_at = end_of_link(call.at, access.link_life)
    link = sign_link(home_id, expires_at, access.link_secrets[0])
    page = f"/api/homes/{quote(home_id, safe='')}#link={link}"
    return LinkAnswer(home_id=home_id, link=link, page=page, expires_at=expires_at)


@operation("The home of a resident's link: its last day and week, and its alerts", "homes", problems=(NOT_FOUND,))
def show_own_activity(call: Call[HomePath, ActivityQuery, Nothing]) -> ActivityAnswer:
    """Show the home of the link."""
    return activity_of(call)
