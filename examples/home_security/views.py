"""Find homes by the beginning of their ids, show one with its alerts, and make links for its resident."""

import re
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from examples.home_security.homes import Homes
from examples.home_security.routes import LINK
from examples.home_security.shapes import (
    ADDRESSABLE,
    ActivityAnswer,
    ActivityQuery,
    HomeAnswer,
    HomePath,
    HomesAnswer,
    HomesQuery,
    Prefix,
)
from examples.home_security.shown_activity import read_activity
from hubledger.web import (
    CONFLICT,
    NOT_FOUND,
    Answer,
    Answered,
    Call,
    Nothing,
    key_of,
    not_found,
    operation,
    page,
    page_of,
    query_of,
)

PAGE = Path(__file__).with_name("pages") / "home.html"


class LinkAnswer(Answered):
    """A link for one home, which works until `expires_at`. `page` is the address of the page with the link after its
    `#`, which browsers send to no server."""

    home_id: str
    link: str
    page: str
    expires_at: datetime


@operation("Registered homes by the beginning of their ids", "homes", problems=(NOT_FOUND,))
def find_homes(call: Call[Nothing, HomesQuery, Nothing]) -> HomesAnswer:
    """List a page of homes. One home more is read, to see if there is a next page."""
    query, bound_to = call.query, query_of(call.query)
    after = "" if query.cursor is None else key_of(bound_to, query.cursor, tuple[Prefix])[0]
    found = Homes(call.room().store).find_homes(query.prefix, after, query.limit + 1)
    shown, following = page_of(found, query.limit, bound_to, lambda home_id: (home_id,))
    homes = [HomeAnswer(home_id=one, has_page=re.match(ADDRESSABLE, one) is not None) for one in shown]
    return HomesAnswer(homes=homes, next=following)


@operation("The last day and week of a home, and its alerts", "homes", problems=(NOT_FOUND,))
def show_activity(call: Call[HomePath, ActivityQuery, Nothing]) -> ActivityAnswer:
    """Show any home."""
    return read_activity(call)


@operation("A link for the resident of one home", "homes", problems=(NOT_FOUND, CONFLICT))
def make_home_link(call: Call[HomePath, Nothing, Nothing]) -> LinkAnswer:
    """Sign a link. Nothing is stored."""
    own, home_id = call.room(), call.path.home_id
    link, expires_at = own.signer.sign(LINK, home_id, call.at)
    if Homes(own.store).find_home(home_id) is None:
        raise not_found("home_id", f"no home is registered as {home_id}")
    address = f"/api/homes/{quote(home_id, safe='')}#link={link}"
    return LinkAnswer(home_id=home_id, link=link, page=address, expires_at=expires_at)


@operation("The home of a resident's link: its last day and week, and its alerts", "homes", problems=(NOT_FOUND,))
def show_own_activity(call: Call[HomePath, ActivityQuery, Nothing]) -> ActivityAnswer:
    """Show the home of the link."""
    return read_activity(call)


@operation("The resident's page", "page", {200: "text/html"}, (NOT_FOUND,))
def home_page(call: Call[HomePath, Nothing, Nothing]) -> Answer:
    """Return the resident's page, the same for every id. It requests the home of its own address."""
    return page(PAGE)
