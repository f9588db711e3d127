"""handlers/api.py: the table of routes names every operation once, and each row has its function and its level."""

import re
from importlib import import_module
from pkgutil import iter_modules

import msgspec

from core.api.operation import Operation
from core.api.route import LEVELS, linked
from examples.home_security import views
from examples.home_security.routes import LINK
from handlers import operations as package
from handlers.api import OPERATIONS, OWN, ROUTES
from tests.handlers.running import functions

ALL = (*LEVELS, linked(LINK))

# Each route by its level. A new route has to be added here: choose the level that shows the least and still works.
BY_LEVEL = {level: names.split() for level, names in {
    "open": "health_live health_ready home_page openapi ops ops_file",
    "counting": "health_ledger status status_history",
    "reading": "audit_ledger explain_number find_commits group_letters list_aggregations list_letters list_tasks "
    "preview_redrive show_aggregation show_letter show_task",
    "revealing": "find_homes reveal_groups reveal_letter reveal_letters reveal_number reveal_places reveal_stops "
    "show_activity show_replay_diff",
    "changing": "backfill_aggregation cancel_aggregation cancel_task discard_aggregation open_next_incarnation "
    "pause_aggregation pause_task put_task repair_aggregation resume_aggregation resume_task "
    "start_aggregation withdraw_aggregation",
    "linking": "make_home_link",
    "linked": "show_own_activity",
}.items()}  # fmt: skip


def test_every_operation_has_one_row_and_every_row_an_operation() -> None:
    declared = [
        f"{module.name}.{name}"
        for module in iter_modules(package.__path__)
        for name, value in vars(import_module(f"{package.__name__}.{module.name}")).items()
        if isinstance(value, Operation)
    ]
    of_the_room = [f"{views.__name__}.{name}" for name, value in vars(views).items() if isinstance(value, Operation)]
    assert sorted(declared) == sorted({route.operation for route in OWN})
    assert sorted(of_the_room) == sorted(route.operation for route in ROUTES if route not in OWN)


def test_a_row_has_the_function_and_the_path_of_its_operation() -> None:
    for route, operation in OPERATIONS.items():
        assert operation.name == route.operation.rpartition(".")[2]
        assert route.name == (route.function or operation.name)
        assert route.name in functions()
        in_path = {field.encode_name for field in msgspec.structs.fields(operation.path)}
        assert in_path == set(re.findall(r"\{(\w+)\}", route.template)), route


def test_every_route_has_the_level_that_is_listed_here() -> None:
    assert {level.name: sorted(one.name for one in ROUTES if one.level == level) for level in ALL} == BY_LEVEL


def test_only_open_and_linked_routes_need_no_key_and_no_route_needs_the_master_key() -> None:
    host = {level.name: "FUNCTION" if level.needs_key else "ANONYMOUS" for level in ALL}
    assert host == {**dict.fromkeys(BY_LEVEL, "FUNCTION"), "open": "ANONYMOUS", "linked": "ANONYMOUS"}


def test_each_level_that_shows_or_changes_more_than_counts_has_a_separate_app_role() -> None:
    assert {level.name: level.role for level in ALL if level.role} == {
        "reading": "Hubledger.Read",
        "revealing": "Hubledger.Reveal",
        "changing": "Hubledger.Operate",
    }


def test_only_changing_and_linking_routes_are_posted() -> None:
    assert {one.level.name for one in ROUTES if one.method == "POST"} == {"changing", "linking"}
    assert {one.level.name for one in ROUTES if one.method == "GET"} == set(BY_LEVEL) - {"changing", "linking"}
