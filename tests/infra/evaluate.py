"""The values of Bicep's expressions for given parameters, without its compiler: the part of the language that we use.

A name that is not given is read from the variables of the file, else from the defaults of its parameters, else from the
resources and modules that the caller knows. A value that only Azure knows is an `Unknown`.
"""

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from functools import cache, reduce
from pathlib import PurePosixPath
from typing import Any

from tree_sitter import Node

from tests.infra.bicep import PARSER, Expression, File, pieces
from tests.repo.product import ROOT


class Failed(Exception):
    """A call of `fail()`: the deployment ends with this text."""


class Unknown(str):
    """A text that only a deployment knows, under the name of its source; each member of it is unknown too."""

    def member(self, name: str) -> "Unknown":
        """Return a member, under its longer name."""
        return Unknown(f"{self}.{name}")


def _fail(text: str) -> None:
    raise Failed(text)


def _map(values: list[Any], of: Callable[..., Any]) -> list[Any]:
    return [of(value) for value in values]


def _merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    return reduce(lambda whole, part: {**whole, **part}, parts, {})


def _contains(whole: Any, part: Any) -> bool:
    """Compare signs and values exactly, and the keys of an object without their case, as Azure does."""
    return part.lower() in map(str.lower, whole) if isinstance(whole, Mapping) else part in whole


def _subnet(whole: str, size: int, number: int) -> str:
    return str(list(ipaddress.ip_network(whole).subnets(new_prefix=size))[number])


SUFFIXES = {
    "storage": "core.windows.net",
    "sqlServerHostname": ".database.windows.net",
    "acrLoginServer": ".azurecr.io",
}
CLOUD = {"suffixes": SUFFIXES, "authentication": {"loginEndpoint": "https://login.microsoftonline.com/"}}
SUBSCRIPTION = {"id": "/subscriptions/ours", "subscriptionId": "ours"}
DEPLOYER = "00000000-0000-0000-0000-00000000d000"
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cidrSubnet": _subnet,
    "concat": lambda *lists: [each for one in lists for each in one],
    "contains": _contains,
    "deployer": lambda: {"objectId": DEPLOYER},
    "empty": lambda value: not value,
    "endsWith": lambda text, end: text.lower().endswith(end.lower()),
    "environment": lambda: CLOUD,
    "fail": _fail,
    "filter": lambda values, of: [value for value in values if of(value)],
    "first": lambda value: value[0],
    "guid": lambda *parts: " ".join(parts[-2:]),
    "items": lambda value: [{"key": key, "value": each} for key, each in sorted(value.items())],
    "join": lambda parts, by: by.join(parts),
    "json": json.loads,
    "last": lambda value: value[-1],
    "length": len,
    "map": _map,
    "max": max,
    "min": min,
    "objectKeys": sorted,
    "parseCidr": lambda text: {"network": str(ipaddress.ip_network(text, strict=False).network_address)},
    "range": lambda start, count: list(range(start, start + count)),
    "replace": lambda text, old, new: text.replace(old, new),
    "resourceId": lambda kind, *names: f"{kind}/{'/'.join(names)}",
    "split": lambda text, by: text.split(by),
    "startsWith": lambda text, start: text.lower().startswith(start.lower()),
    "string": lambda value: json.dumps(value) if isinstance(value, dict) else str(value),
    "subscription": lambda: SUBSCRIPTION,
    "subscriptionResourceId": lambda kind, *names: f"{kind}/{'/'.join(names)}",
    "substring": lambda text, start, count: text[start : start + count],
    "take": lambda text, most: text[:most],
    "tenant": lambda: {"tenantId": "tenant"},
    "toLower": str.lower,
    "toUpper": str.upper,
    "trim": str.strip,
    "union": _merged,
    "uniqueString": lambda *parts: "token",
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
}
TOKEN = re.compile(r"\\.|'|\$\{|\{|\}")
CHAIN = re.compile(r"[A-Za-z_]\w*(?:\(\))?(?:!?\.\??\w+|\[\w+\])+(?![\w(])")
NAMES = ("identifier", "property_identifier", "variable_access")


class Evaluator:
    """The values of one file; `given` are the parameters that differ from their defaults, and names of other files.

    `symbol` returns a resource or a module by its name, and `own` are functions of this deployment.
    """

    def __init__(
        self,
        file: File,
        given: Mapping[str, Any],
        symbol: Callable[[str], Any] | None = None,
        own: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._given = given
        self._declared = {one.name: one.value for kind in ("parameter", "variable") for one in file.of_kind(kind)}
        self._values: dict[str, Any] = {}
        self._symbol = symbol
        files = {"loadTextContent": self._text_of, "loadJsonContent": lambda name: json.loads(self._text_of(name))}
        self._functions = {**FUNCTIONS, **files, **(own or {})}
        self._folder = ROOT / "infra" / PurePosixPath(file.name).parent

    def __call__(self, value: Any, **local: Any) -> Any:
        """Return the value of an expression of `bicep.py`, with all that is inside it; `local` are names of a loop."""
        if isinstance(value, Expression):
            return self._node(_parsed(value.text), local)
        if isinstance(value, list):
            return [self(each, **local) for each in value]
        if isinstance(value, dict):
            return {key: self(each, **local) for key, each in value.items()}
        return value

    def name(self, name: str, local: Mapping[str, Any] | None = None) -> Any:
        """Return the value of a parameter or variable, or a resource or module."""
        for known in (local or {}, self._given):
            if name in known:
                return known[name]
        if name not in self._declared and self._symbol is not None:
            return self._symbol(name)
        if name not in self._values:
            self._values[name] = self(self._declared[name])
        return self._values[name]

    def _text_of(self, name: str) -> str:
        return (self._folder / name).read_text(encoding="utf-8")

    def _node(self, node: Node, local: Mapping[str, Any]) -> Any:
        text, parts = (node.text or b"").decode(), [one for one in node.named_children if one.type != "comment"]
        if node.type in NAMES:
            return self.name(text, local)
        match node.type:
            case "number":
                return int(text)
            case "boolean":
                return text == "true"
            case "null":
                return None
            case "string":
                return "".join(each if isinstance(each, str) else self._piece(each, local) for each in pieces(node))
            case "array":
                return [self._node(each, local) for each in parts]
            case "object":
                pairs = (one.named_children for one in parts)
                return {self._key(key, local): self._node(each, local) for key, each in pairs}
            case "parenthesized_expression":
                return self._node(parts[0], local)
            case "unary_expression":
                value = self._node(parts[0], local)
                return -value if node.children[0].type == "-" else not value
            case "ternary_expression":
                return self._node(parts[1] if self._node(parts[0], local) else parts[2], local)
        return self._compound(node, parts, local)

    def _compound(self, node: Node, parts: list[Node], local: Mapping[str, Any]) -> Any:
        match node.type:
            case "binary_expression":
                return self._binary(node, parts, local)
            case "member_expression":
                return _member(self._node(parts[0], local), (parts[1].text or b"").decode())
            case "subscript_expression":
                return self._node(parts[0], local)[self._node(parts[1], local)]
            case "lambda_expression":
                names = [(one.text or b"").decode().strip("()") for one in parts[:-1]]
                return lambda *values: self._node(parts[-1], {**local, **dict(zip(names, values, strict=True))})
            case "for_statement":
                named = parts[0].named_children if parts[0].type == "for_loop_parameters" else [parts[0]]
                names = [(one.text or b"").decode() for one in named]
                rows = ((each, index) for index, each in enumerate(self._node(parts[1], local)))
                return [self._node(parts[2], {**local, **dict(zip(names, row, strict=False))}) for row in rows]
            case "call_expression":
                called: Callable[..., Any] = self._functions[(parts[0].text or b"").decode()]
                return called(*(self._node(one, local) for one in parts[1].named_children if one.type != "comment"))
        raise NotImplementedError(f"{node.type}: {(node.text or b'').decode()}")

    def _binary(self, node: Node, parts: list[Node], local: Mapping[str, Any]) -> Any:
        operator = node.children[1].type
        left = self._node(parts[0], local)
        if operator in ("&&", "||"):
            return left if bool(left) is (operator == "||") else self._node(parts[1], local)
        if operator == "??":
            return self._node(parts[1], local) if left is None else left
        return OPERATORS[operator](left, self._node(parts[1], local))

    def _piece(self, node: Node, local: Mapping[str, Any]) -> str:
        return str(self._node(node.named_children[0], local))

    def _key(self, node: Node, local: Mapping[str, Any]) -> str:
        return (node.text or b"").decode() if node.type == "identifier" else str(self._node(node, local))


def _member(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return value.member(name)


@cache
def _parsed(text: str) -> Node:
    return PARSER.parse(f"var x = {_bracketed(text)}\n".encode()).root_node.named_children[0].named_children[-1]


def _bracketed(text: str) -> str:
    """Put brackets around each chain of members, which the grammar would take for members of all that stands before."""
    pieces, inside, began = [""], [False], 0  # inside: a text, or code, by depth
    for sign in TOKEN.finditer(text):
        if inside[-1] and sign[0] not in ("'", "${"):
            continue
        piece = text[began : sign.start()]
        pieces += [piece if inside[-1] else CHAIN.sub(r"(\g<0>)", piece), sign[0]]
        began = sign.end()
        if sign[0] == "'":
            inside = inside[:-1] if inside[-1] else [*inside, True]
        elif sign[0] in ("${", "{"):
            inside = [*inside, False]
        else:
            inside = inside[:-1]
    return "".join([*pieces, CHAIN.sub(r"(\g<0>)", text[began:])])
