"""Find homes by the beginning of their ids, and show the last day and week of one, with its alerts.

Homes belong to the example home_security, so its modules are imported only for an app whose transform registers homes.
"""

import re
from typing import TYPE_CHECKING

from handlers.app import HOME, App, app
from handlers.operations.home_shapes import (
    ADDRESSABLE,
    ActivityAnswer,
    ActivityQuery,
    HomeAnswer,
    HomePath,
    HomesAnswer,
    HomesQuery,
    Prefix,
)
from handlers.web.cursors import key_of, page_of, query_of
from handlers.web.operation import Call, Nothing, operation
from handlers.web.problems import NOT_FOUND, Problem

if TYPE_CHECKING:
    from examples.home_security.homes import Homes


def homes_of(own: App) -> "Homes":
    """Return the homes of the app; raise a problem when its transform registers none."""
    if own.homes is None:
        raise Problem(
            NOT_FOUND, f"TRANSFORM={own.settings.transform} has no row class {HOME}, so this app has no homes"
        )
    return own.homes


@operation("Registered homes by the beginning of their ids", "homes", problems=(NOT_FOUND,))
def find_homes(call: Call[Nothing, HomesQuery, Nothing]) -> HomesAnswer:
    """List a page of homes; one home more is read, to see if there is a next page."""
    registered = homes_of(app())
    query, bound_to = call.query, query_of(call.query)
    after = "" if query.cursor is None else key_of(bound_to, query.cursor, tuple[Prefix])[0]
    found = registered.find_homes(query.prefix, after, query.limit + 1)
    page, following = page_of(found, query.limit, bound_to, lambda home_id: (home_id,))
    homes = [HomeAnswer(home_id=one, has_page=re.match(ADDRESSABLE, one) is not None) for one in page]
    return HomesAnswer(homes=homes, next=following)


@operation("The last day and week of a home, and its alerts", "homes", problems=(NOT_FOUND,))
def show_activity(call: Call[HomePath, ActivityQuery, Nothing]) -> ActivityAnswer:
    """Show any home."""
    return activity_of(call)


def activity_of(call: Call[HomePath, ActivityQuery, Nothing]) -> ActivityAnswer:
    """Return the activity of a home."""
    own = app()
    registered = homes_of(own)
    from handlers.operations.home_activity import read_activity  # it imports the example

    return read_activity(call, own, registered)
