"""The resources that a deployment makes, for sets of parameters: `python -m tests.infra.plan` prints them side by side.

The templates are evaluated without Azure and without Bicep's compiler, so a value that only Azure knows has the name of
its source. Modules of the registry are a line each. The evaluator knows the part of the language that we use.
"""

import ipaddress
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, reduce
from pathlib import Path
from typing import Any

from tree_sitter import Node

from tests.infra.bicep import PARSER, Declaration, Expression, File, Files, pieces, read_folder, read_text, text_of
from tests.repo.product import ROOT

FOLDER = ROOT / "infra"
CHOSEN = ROOT / "tests" / "infra" / "sets"
LOOP = re.compile(r"\[\s*for (?:\((\w+), (\w+)\)|(\w+)) in (.*):", re.DOTALL)
NO_GROUP = "subscription"
DEPLOYER = "00000000-0000-0000-0000-00000000d000"


class Failed(Exception):
    """A call of `fail()`: the deployment ends with this text."""


class Unknown(str):
    """A text that only a deployment knows, under the name of its source. Each member of it is unknown too."""

    def member(self, name: str) -> "Unknown":
        return Unknown(f"{self}.{name}")


def _fail(text: str) -> None:
    raise Failed(text)


def _contains(whole: Any, part: Any) -> bool:
    """Compare signs and values exactly, and the keys of an object without their case, as Azure does."""
    return part.lower() in map(str.lower, whole) if isinstance(whole, Mapping) else part in whole


SUFFIXES = {
    "keyvaultDns": ".vault.azure.net",
    "storage": "core.windows.net",
    "sqlServerHostname": ".database.windows.net",
    "acrLoginServer": ".azurecr.io",
}
CLOUD = {"suffixes": SUFFIXES, "authentication": {"loginEndpoint": "https://login.microsoftonline.com/"}}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cidrSubnet": lambda whole, size, number: str(list(ipaddress.ip_network(whole).subnets(new_prefix=size))[number]),
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
    "map": lambda values, of: [of(value) for value in values],
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
    "subscription": lambda: {"id": "/subscriptions/ours", "subscriptionId": "ours"},
    "subscriptionResourceId": lambda kind, *names: f"{kind}/{'/'.join(names)}",
    "substring": lambda text, start, count: text[start : start + count],
    "take": lambda text, most: text[:most],
    "tenant": lambda: {"tenantId": "tenant"},
    "toLower": str.lower,
    "toUpper": str.upper,
    "trim": str.strip,
    "union": lambda *parts: reduce(lambda whole, part: {**whole, **part}, parts, {}),
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


class Evaluator:
    """The values of one file. `given` are the parameters that differ from their defaults, and names of other files.

    A name that is neither given nor declared is a resource or a module, which `symbol` returns. `own` are functions of
    this deployment.
    """

    def __init__(
        self,
        file: File,
        given: Mapping[str, Any],
        symbol: Callable[[str], Any] | None = None,
        own: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._given, self._symbol = given, symbol
        self._declared = {one.name: one.value for kind in ("parameter", "variable") for one in file.of_kind(kind)}
        self._values: dict[str, Any] = {}
        folder = (FOLDER / file.name).parent
        loads = {
            "loadTextContent": lambda name: (folder / name).read_text(encoding="utf-8"),
            "loadJsonContent": lambda name: json.loads((folder / name).read_text(encoding="utf-8")),
        }
        self._functions = {**FUNCTIONS, **loads, **(own or {})}

    def __call__(self, value: Any, **local: Any) -> Any:
        """Return the value of an expression of `bicep.py`, with all that is inside it. `local` are names of a loop."""
        if isinstance(value, Expression):
            return self._node(_parsed(value.text), local)
        if isinstance(value, list):
            return [self(each, **local) for each in value]
        return {key: self(each, **local) for key, each in value.items()} if isinstance(value, dict) else value

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

    def _node(self, node: Node, local: Mapping[str, Any]) -> Any:
        text, parts = text_of(node), [one for one in node.named_children if one.type != "comment"]
        match node.type:
            case "identifier" | "property_identifier" | "variable_access":
                return self.name(text, local)
            case "number":
                return int(text)
            case "boolean" | "null":
                return {"true": True, "false": False, "null": None}[text]
            case "string":
                given = (
                    one if isinstance(one, str) else self._node(one.named_children[0], local) for one in pieces(node)
                )
                return "".join(map(str, given))
            case "array":
                return [self._node(each, local) for each in parts]
            case "object":
                pairs = (one.named_children for one in parts)
                named = (
                    (text_of(key) if key.type == "identifier" else self._node(key, local), of) for key, of in pairs
                )
                return {str(key): self._node(each, local) for key, each in named}
            case "parenthesized_expression":
                return self._node(parts[0], local)
            case "unary_expression":
                value = self._node(parts[0], local)
                return -value if node.children[0].type == "-" else not value
            case "ternary_expression":
                return self._node(parts[1] if self._node(parts[0], local) else parts[2], local)
            case "binary_expression":
                return self._binary(node.children[1].type, parts, local)
            case "member_expression":
                of, name = self._node(parts[0], local), text_of(parts[1])
                return of.get(name) if isinstance(of, Mapping) else of.member(name)
            case "subscript_expression":
                return self._node(parts[0], local)[self._node(parts[1], local)]
            case "lambda_expression":
                names = [text_of(one).strip("()") for one in parts[:-1]]
                return lambda *values: self._node(parts[-1], {**local, **dict(zip(names, values, strict=True))})
            case "for_statement":
                heads = parts[0].named_children if parts[0].type == "for_loop_parameters" else [parts[0]]
                rows = ((each, index) for index, each in enumerate(self._node(parts[1], local)))
                turns = (dict(zip(map(text_of, heads), row, strict=False)) for row in rows)
                return [self._node(parts[2], {**local, **turn}) for turn in turns]
            case "call_expression":
                called: Callable[..., Any] = self._functions[text_of(parts[0])]
                return called(*(self._node(one, local) for one in parts[1].named_children if one.type != "comment"))
        raise NotImplementedError(f"{node.type}: {text}")

    def _binary(self, operator: str, parts: list[Node], local: Mapping[str, Any]) -> Any:
        left = self._node(parts[0], local)
        if operator in ("&&", "||"):
            return left if bool(left) is (operator == "||") else self._node(parts[1], local)
        if operator == "??":
            return self._node(parts[1], local) if left is None else left
        return OPERATORS[operator](left, self._node(parts[1], local))


@cache
def _parsed(text: str) -> Node:
    """Parse an expression with brackets around each chain of members, which the grammar would take for members of all
    that stands before."""
    pieces, inside, began = [""], [False], 0  # inside: a text, or code, by depth
    for sign in TOKEN.finditer(text):
        if inside[-1] and sign[0] not in ("'", "${"):
            continue
        piece = text[began : sign.start()]
        pieces += [piece if inside[-1] else CHAIN.sub(r"(\g<0>)", piece), sign[0]]
        began = sign.end()
        if sign[0] == "'":
            inside = inside[:-1] if inside[-1] else [*inside, True]
        else:
            inside = [*inside, False] if sign[0] in ("${", "{") else inside[:-1]
    whole = "".join([*pieces, CHAIN.sub(r"(\g<0>)", text[began:])])
    return PARSER.parse(f"var x = {whole}\n".encode()).root_node.named_children[0].named_children[-1]


def given_by(path: Path) -> dict[str, Any]:
    lines = re.sub(r"^using .*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    file = read_text(path.name, re.sub(r"^param ", "var ", lines, flags=re.MULTILINE))
    if file.errors:
        raise ValueError(f"{path.name}: lines {file.errors} are no parameters")
    return {one.name: one.value for one in file.of_kind("variable")}


SETS = {name: given_by(CHOSEN / f"{name}.bicepparam") for name in ("new", "dev", "existing")}


@dataclass(frozen=True)
class Resource:
    """A resource of a deployment: its type, its full name, its group, and the values that the template gives it."""

    type: str
    name: str
    group: str
    exists: bool
    value: Mapping[str, Any] = field(compare=False, hash=False)

    @property
    def key(self) -> tuple[str, str, str]:
        """Resource group, type and name: no two resources share all three."""
        return self.group, self.type, self.name

    def member(self, name: str) -> Any:
        """Return a property: its id, its name, or one that only Azure knows."""
        if name == "id":
            return f"{self.group}/{self.type}/{self.name}"
        return self.name.rpartition("/")[2] if name == "name" else Unknown(f"{self.name}.{name}")


class Deployment:
    """One file, deployed into a group with parameters."""

    def __init__(self, files: Files, file: File, given: Mapping[str, Any], group: str, name: str) -> None:
        self.files, self.file, self.group = files, file, group
        self._declared = {one.name: one for kind in ("resource", "module") for one in file.of_kind(kind)}
        place: dict[str, Callable[..., Any]] = {
            "resourceGroup": lambda *names: Resource("group", names[-1] if names else group, "", True, {}),
            "deployment": lambda: {"name": name},
        }
        self.value = Evaluator(file, given, self._symbol, place)
        self._known: dict[str, Any] = {}

    def parts(self) -> Iterator[Any]:
        """Yield each resource and each module of the file. One whose condition is false is not there."""
        for one in self._declared.values():
            condition = re.fullmatch(r"if \((.*)\)", one.head, re.DOTALL)
            if condition is None or self.value(Expression(condition[1])):
                found = self._symbol(one.name)
                yield from found if isinstance(found, list) else [found]

    def resources(self) -> Iterator[Resource]:
        """Yield each resource of the file and of its modules."""
        for each in self.parts():
            yield from each.resources() if isinstance(each, Call) else [each]

    def deployments(self) -> Iterator[tuple[str, str]]:
        for each in self.parts():
            if isinstance(each, Call):
                yield each.group, each.member("name")
                yield from each.inner.deployments() if each.inner else ()

    def member(self, name: str) -> Any:
        return self.value(next(one.value for one in self.file.of_kind("output") if one.name == name))

    def _symbol(self, name: str) -> Any:
        if name not in self._known:
            one = self._declared[name]
            loop = LOOP.match(one.head)
            each, index = (loop[1] or loop[3], loop[2] or "_") if loop else ("", "")
            turns = enumerate(self.value(Expression(loop[4]))) if loop else ()
            made = [self._one(one, {each: value, index: number}) for number, value in turns]
            self._known[name] = made if loop else self._one(one, {})
        return self._known[name]

    def _one(self, one: Declaration, local: Mapping[str, Any]) -> Any:
        if one.kind == "module":
            return Call(self, one, local)
        value = {key: each for key, each in one.value.items() if key not in ("parent", "scope", "dependsOn")}
        name = str(self.value(one.value["name"], **local))
        around = one.value.get("parent") or one.value.get("scope")
        if around is not None:
            name = f"{self.value(around, **local).name}/{name}"
        type_ = one.of.partition("@")[0]
        group = NO_GROUP if type_ == "Microsoft.Resources/resourceGroups" else self.group
        return Resource(type_, name, group, one.existing, {} if one.existing else self.value(value, **local))


@dataclass(frozen=True)
class Call:
    """A module with its parameters. Its outputs are evaluated when they are asked for."""

    caller: Deployment
    one: Declaration
    local: Mapping[str, Any]

    def member(self, name: str) -> Any:
        if name == "outputs":
            return self.inner or Unknown(f"{self.one.name}.outputs")
        return str(self.caller.value(self.one.value[name], **self.local))

    def resources(self) -> Iterator[Resource]:
        """Yield the resources of our module, or one for a module of the registry."""
        if self.inner is not None:
            yield from self.inner.resources()
        else:
            kind, name = self.one.of.removeprefix("br/public:"), self._given.get("name") or self._given["resourceId"]
            yield Resource(kind, str(name), self.group, False, self._given)

    @cached_property
    def group(self) -> str:
        scope = self.one.value.get("scope")
        return self.caller.group if scope is None else str(self.caller.value(scope, **self.local).name)

    @cached_property
    def _given(self) -> dict[str, Any]:
        given: dict[str, Any] = self.caller.value(self.one.value["params"], **self.local)
        return given

    @cached_property
    def inner(self) -> Deployment | None:
        """The deployment of our file. A module of the registry has none here."""
        if self.one.of.startswith("br/"):
            return None
        file = self.caller.files[f"{self.caller.file.name.rpartition('/')[0]}/{self.one.of}".lstrip("/")]
        return Deployment(self.caller.files, file, self._given, self.group, self.member("name"))


def main(files: Files, given: Mapping[str, Any]) -> Deployment:
    fixed = {"environmentName": "dev", "location": "westeurope", "principalId": DEPLOYER}
    return Deployment(files, files["main.bicep"], {**fixed, **given}, NO_GROUP, "main")


def plan(files: Files, given: Mapping[str, Any]) -> dict[tuple[str, str, str], Resource]:
    """Return the resources of a deployment by their keys: those that it makes, and those that it only reads."""
    found = list(main(files, given).resources())
    return {one.key: one for one in sorted(found, key=lambda one: not one.exists)}


def table(files: Files, sets: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one line for each resource of any set, with its state in each."""
    plans = [plan(files, given) for given in sets.values()]
    width = max(len(name) for name in (*sets, "left alone"))
    lines = ["  ".join(name.ljust(width) for name in (*sets, "group, type and name"))]
    for key in sorted({key for one in plans for key in one}):
        found = [one.get(key) for one in plans]
        states = ["-" if one is None else "left alone" if one.exists else "made" for one in found]
        lines.append("  ".join(state.ljust(width) for state in (*states, "  ".join(key))))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table(read_folder(FOLDER), SETS)}\n")
