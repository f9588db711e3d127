"""handlers/api.py: the table of routes names every operation once, and each row has its function."""

import re
from importlib import import_module
from pkgutil import iter_modules

import msgspec

from handlers import operations as package
from handlers.api import ROUTES, operations
from handlers.web.operation import Operation
from handlers.web.route import CHANGING
from tests.unit.handlers.running import functions


def test_every_operation_has_one_row_and_every_row_an_operation() -> None:
    declared = [
        f"{module.name}.{name}"
        for module in iter_modules(package.__path__)
        for name, value in vars(import_module(f"{package.__name__}.{module.name}")).items()
        if isinstance(value, Operation)
    ]
    assert sorted(declared) == sorted(route.operation for route in ROUTES)


def test_a_row_has_the_function_and_the_path_of_its_operation() -> None:
    for route, operation in operations().items():
        assert operation.name == route.name
        assert route.name in functions()
        in_path = {field.encode_name for field in msgspec.structs.fields(operation.path)}
        assert in_path == set(re.findall(r"\{(\w+)\}", route.template)), route


def test_a_request_that_changes_something_needs_the_master_key() -> None:
    assert {route.level is CHANGING for route in ROUTES if route.method == "POST"} == {True}
    assert {route.level is CHANGING for route in ROUTES if route.method == "GET"} == {False}
