"""Every route of the app, as its functions have them: what a test of all of them goes through."""

import re

from tests.handlers.test_function_app import index

CATCH_ALL = "zz_no_such_route"
JOB = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"  # of a replay that does not exist
VALUES = {
    "partition_id": "0",
    "sequence_number": "1",
    "task_id": JOB,
    "run_id": "0123456789abcdef",
    "file": "ops.js",
    "home_id": "H000001",
}


def served_by_the_app() -> dict[tuple[str, str], tuple[str, str]]:
    """Route and method of each HTTP function, with its name and its level; HEAD goes with GET."""
    found = {}
    for name, function in index().items():
        for binding in function["bindings"]:
            if binding["type"] == "httpTrigger" and name not in ("entrance", CATCH_ALL):
                for method in set(binding["methods"]) - {"HEAD"}:
                    found[binding["route"].removeprefix("api/"), method] = (name, binding["authLevel"])
    return found


def filled(template: str) -> str:
    """A path of a route."""
    return re.sub(r"\{(\w+)\}", lambda part: VALUES[part[1]], template)


def methods_by_path() -> dict[str, set[str]]:
    """The methods of each path."""
    found: dict[str, set[str]] = {}
    for template, method in served_by_the_app():
        found.setdefault(filled(template), set()).add(method)
    return found


def paths(method: str) -> list[str]:
    """The paths that answer to a method."""
    return sorted(path for path, methods in methods_by_path().items() if method in methods)
