"""The routes and pages of the room: homes, links for their residents, and the resident's page."""

from hubledger.web import LINKING, OPEN, REVEALING, Link, OperatorPage, Route, linked

LINK = Link("x-home-link", "hubledger: show the activity of one home, v1", "home_id", "home")
_VIEWS = "examples.home_security.views"

ROUTES = (
    Route("GET", "homes", REVEALING, f"{_VIEWS}.find_homes"),
    Route("GET", "homes/{home_id}/activity", REVEALING, f"{_VIEWS}.show_activity"),
    Route("POST", "homes/{home_id}/links", LINKING, f"{_VIEWS}.make_home_link"),
    Route("GET", "homes/{home_id}/own-activity", linked(LINK), f"{_VIEWS}.show_own_activity"),
    Route("GET", "homes/{home_id}", OPEN, f"{_VIEWS}.home_page"),
)
OPERATOR_PAGES = (OperatorPage("homes", "Homes", "homes.js"),)
