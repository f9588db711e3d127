import os
import re
import subprocess
from pathlib import Path
from typing import get_args
from urllib.parse import parse_qsl

import msgspec

from core.api.operation import Operation
from core.api.problems import PREFIX, TYPES
from core.api.route import LEVELS, Route, linked
from core.audit.audit import MOST_NUMBERS
from core.audit.faults import FaultKind
from core.letters.redrive import MOST_OPEN as MOST_REDRIVES
from core.model.shapes import Nothing
from core.replay.pieces import MOST_OPEN
from examples.home_security.routes import LINK
from handlers.api import OPERATIONS, ROUTES
from handlers.operations.letters import LARGEST_SHOWN
from handlers.web.openapi import describe
from handlers.web.requests import LARGEST_BODY, LARGEST_QUERY
from tests.handlers.test_function_app import index
from tests.repo.product import ROOT

ALL = (*LEVELS, linked(LINK))

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
ACCESS = (ROOT / "docs" / "access.md").read_text(encoding="utf-8")
BESIDE_THE_API = ("entrance", "zz_no_such_route")
LIMITS = {
    "octets of a request's body": LARGEST_BODY,
    "characters of all parameters": LARGEST_QUERY,
    "redrives that are open": MOST_REDRIVES,
    "octets of a letter's body that are shown": LARGEST_SHOWN,
    "replays that are open, dry runs included": MOST_OPEN,
    "numbers of a partition whose rows an audit recounts at once": MOST_NUMBERS,
}


def operation_of(word: str, address: str) -> Operation:
    """Return the one operation that the request of an example is for. A template without values goes before others."""

    def fits(route: Route) -> bool:
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(route.template))
        return {"curl": "GET"}.get(word, word.upper()) in route.methods and bool(re.fullmatch(pattern, address))

    return OPERATIONS[min(filter(fits, ROUTES), key=lambda route: route.template.count("{"))]


def listed(head: str) -> list[tuple[str, str]]:
    table = PAGE.partition(head)[2].partition("\n\n")[0]
    return re.findall(r"^\| (.+?) \| (.+?) \|", table, flags=re.MULTILINE)


def test_every_route_is_listed_with_its_level_and_no_other() -> None:
    routes = {
        (method, f"/{binding['route']}")
        for name, function in index().items()
        for binding in function["bindings"]
        if binding["type"] == "httpTrigger" and name not in BESIDE_THE_API
        for method in set(binding["methods"]) - {"HEAD"}
    }
    assert set(re.findall(r"`(GET|POST|PUT) (/api/[^`]*)`", PAGE)) == routes
    levels = listed("| level | needs | routes |")
    assert [level for level, _ in levels] == [level.name for level in ALL]
    assert {level: role for level, needs in levels for role in re.findall(r"`(.+?)`", needs)} == {
        level.name: level.role for level in ALL if level.role
    }


def test_each_example_has_the_query_and_the_body_that_its_route_takes() -> None:
    shown = re.findall(r'^\$ (curl|post|put) "\$APP/api/([^"?]+)\??([^"]*)"(?: -d \'(.+)\')?', PAGE, flags=re.MULTILINE)
    assert len(shown) == len(re.findall(r"^\$ (?:curl|post|put) ", PAGE, flags=re.MULTILINE)) > 15
    for word, address, query, body in shown:
        operation = operation_of(word, address)
        msgspec.convert(dict(parse_qsl(query, strict_parsing=bool(query))), operation.query, strict=False)
        if operation.body is not Nothing:
            msgspec.json.decode(body, type=operation.body)


def test_every_problem_fault_and_limit_is_listed_with_its_value() -> None:
    problems = re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \| (.+) \|$", PAGE, flags=re.MULTILINE)
    assert sorted(problems) == sorted((kind.name, str(kind.status), kind.title) for kind in TYPES)
    assert f"`{PREFIX}`" in PAGE
    faults = {name for first, _ in listed("| kind | what is wrong |") for name in re.findall(r"`(\w+)`", first)}
    assert faults == set(get_args(FaultKind))
    assert [limit for limit, value in LIMITS.items() if f"| {limit} | {value:,} |" not in PAGE] == []


def test_each_key_is_set_on_exactly_the_functions_that_its_holder_needs(tmp_path: Path) -> None:
    (block,) = (one for one in re.findall(r"^```sh\n(.*?)^```", ACCESS, re.M | re.S) if one.startswith("functions()"))
    holders = re.findall(r"^(\w+)=", block, re.M)
    (tmp_path / "openapi.json").write_bytes(msgspec.json.encode(describe(OPERATIONS)))
    lists = "".join(f"echo {holder} ${holder}\n" for holder in holders)
    script = f"curl() {{ cat openapi.json; }}\n{block}{lists}"
    done = subprocess.run(["bash", "-euc", script], cwd=tmp_path, env={**os.environ, "APP": ""}, capture_output=True)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    named = {holder: sorted(functions) for holder, *functions in lines}
    of = {level.name: [one.name for one in ROUTES if one.level == level] for level in ALL}
    assert named == {
        "monitor": sorted(of["counting"]),
        "site": sorted(of["linking"]),
        "readers": sorted(of["counting"] + of["reading"]),
        "revealers": sorted(of["revealing"]),
        "operators": sorted(of["changing"]),
    }
