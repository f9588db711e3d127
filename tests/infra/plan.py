"""The resources that a deployment makes, for sets of parameters: `python -m tests.infra.plan` prints them side by side.

The templates are evaluated without Azure and without Bicep's compiler, so a value that only Azure knows has the name of
its source. Modules of the registry are a line each.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.infra.bicep import Declaration, Expression, File, Files, read_folder, read_text
from tests.infra.evaluate import DEPLOYER, Evaluator, Unknown
from tests.repo.product import ROOT

FOLDER = ROOT / "infra"
CHOSEN = ROOT / "tests" / "infra" / "sets"
LOOP = re.compile(r"\[\s*for (?:\((\w+), (\w+)\)|(\w+)) in (.*):", re.DOTALL)
NO_GROUP = "subscription"


def given_by(path: Path) -> dict[str, Any]:
    """Return the parameters of a file, which are plain values."""
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
        """Return a property: its id, its name, one that the template gives, or one that only Azure knows."""
        if name == "id":
            return f"{self.group}/{self.type}/{self.name}"
        if name == "name":
            return self.name.rpartition("/")[2]
        return Unknown(f"{self.name}.{name}")


class Deployment:
    """One file, deployed into a group with parameters."""

    def __init__(self, files: Files, file: File, given: Mapping[str, Any], group: str, name: str) -> None:
        self._files, self._file, self._group = files, file, group
        self._declared = {one.name: one for kind in ("resource", "module") for one in file.of_kind(kind)}
        place: dict[str, Callable[..., Any]] = {
            "resourceGroup": lambda *names: Resource("group", names[-1] if names else group, "", True, {}),
            "deployment": lambda: {"name": name},
        }
        self.value = Evaluator(file, given, self._symbol, place)
        self._known: dict[str, Any] = {}

    def resources(self) -> Iterator[Resource]:
        """Yield each resource of the file and of its modules; one whose condition is false is not there."""
        for each in self._made_here():
            yield from each.resources() if isinstance(each, Call) else [each]

    def deployments(self) -> Iterator[tuple[str, str]]:
        """Yield the group and the name of the deployment of each module, and of the modules in it."""
        for each in self._made_here():
            if isinstance(each, Call):
                yield from each.deployments()

    def _made_here(self) -> Iterator[Any]:
        for one in self._declared.values():
            if self._holds(one):
                found = self._symbol(one.name)
                yield from found if isinstance(found, list) else [found]

    def _holds(self, one: Declaration) -> bool:
        condition = re.fullmatch(r"if \((.*)\)", one.head, re.DOTALL)
        return condition is None or bool(self.value(Expression(condition[1])))

    def _symbol(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._made(self._declared[name])
        return self._known[name]

    def _made(self, one: Declaration) -> Any:
        loop = LOOP.match(one.head)
        if loop is None:
            return self._one(one, {})
        each, index = loop[1] or loop[3], loop[2] or "_"
        values = self.value(Expression(loop[4]))
        return [self._one(one, {each: value, index: number}) for number, value in enumerate(values)]

    def _one(self, one: Declaration, local: Mapping[str, Any]) -> Any:
        if one.kind == "module":
            return Call(self._files, self._file, one, self, local)
        value = {key: each for key, each in one.value.items() if key not in ("parent", "scope", "dependsOn")}
        name = str(self.value(one.value["name"], **local))
        around = one.value.get("parent") or one.value.get("scope")
        if around is not None:
            name = f"{self.value(around, **local).name}/{name}"
        type_ = one.of.partition("@")[0]
        group = NO_GROUP if type_ == "Microsoft.Resources/resourceGroups" else self._group
        return Resource(type_, name, group, one.existing, {} if one.existing else self.value(value, **local))

    def group_of(self, one: Declaration, local: Mapping[str, Any]) -> str:
        """Return the group into which a module is deployed."""
        scope = one.value.get("scope")
        return self._group if scope is None else str(self.value(scope, **local).name)


class Call:
    """A module with its parameters; `outputs` are evaluated when they are asked for."""

    def __init__(
        self, files: Files, file: File, one: Declaration, caller: Deployment, local: Mapping[str, Any]
    ) -> None:
        self._files, self._file, self._one, self._caller, self._local = files, file, one, caller, local

    def member(self, name: str) -> Any:
        """Return the outputs, or the name of the deployment."""
        return self.outputs if name == "outputs" else str(self._caller.value(self._one.value[name], **self._local))

    def deployments(self) -> Iterator[tuple[str, str]]:
        """Yield the group and the name of the deployment of this module, and of those in it."""
        yield self._caller.group_of(self._one, self._local), self.member("name")
        if self._inner is not None:
            yield from self._inner.deployments()

    @property
    def outputs(self) -> Any:
        """The outputs of our module; those of a module of the registry are unknown."""
        return Unknown(f"{self._one.name}.outputs") if self._inner is None else Outputs(self._inner, self._module)

    def resources(self) -> Iterator[Resource]:
        """Yield the resources of our module, or one for a module of the registry."""
        if self._inner is not None:
            yield from self._inner.resources()
        else:
            given = self._given
            name = str(given.get("name") or given["resourceId"])
            kind = self._one.of.removeprefix("br/public:")
            yield Resource(kind, name, self._caller.group_of(self._one, self._local), False, given)

    @cached_property
    def _given(self) -> dict[str, Any]:
        given: dict[str, Any] = self._caller.value(self._one.value["params"], **self._local)
        return given

    @cached_property
    def _inner(self) -> Deployment | None:
        if self._one.of.startswith("br/"):
            return None
        group = self._caller.group_of(self._one, self._local)
        return Deployment(self._files, self._module, self._given, group, self.member("name"))

    @property
    def _module(self) -> File:
        folder = self._file.name.rpartition("/")[0]
        return self._files[f"{folder}/{self._one.of}".lstrip("/")]


@dataclass(frozen=True)
class Outputs:
    """The outputs of a module."""

    inner: Deployment
    file: File

    def member(self, name: str) -> Any:
        """Return one output."""
        return self.inner.value(next(one.value for one in self.file.of_kind("output") if one.name == name))


def main(files: Files, given: Mapping[str, Any]) -> Deployment:
    """Return the deployment of main.bicep with parameters."""
    fixed = {"environmentName": "dev", "location": "westeurope", "principalId": DEPLOYER}
    return Deployment(files, files["main.bicep"], {**fixed, **given}, NO_GROUP, "main")


def plan(files: Files, given: Mapping[str, Any]) -> dict[tuple[str, str, str], Resource]:
    """Return the resources of a deployment by their keys: those that it makes, and those that it only reads."""
    found = list(main(files, given).resources())
    made = {one.key: one for one in found if not one.exists}
    return {**{one.key: one for one in found if one.exists}, **made}


def table(files: Files, sets: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one line for each resource of any set, with its state in each, and under it each value that differs."""
    plans = {name: plan(files, given) for name, given in sets.items()}
    keys = sorted({key for one in plans.values() for key in one})
    width = max(len(name) for name in (*sets, "left alone"))
    lines = ["  ".join(name.ljust(width) for name in sets) + "  group, type and name"]
    for key in keys:
        found = [one.get(key) for one in plans.values()]
        states = ["-" if one is None else "left alone" if one.exists else "made" for one in found]
        lines.append("  ".join(state.ljust(width) for state in states) + f"  {key[0]}  {key[1]}  {key[2]}")
        lines += [f"{'':{(width + 2) * len(sets)}}    {line}" for line in _differing([one for one in found if one])]
    return "\n".join(lines)


def _differing(found: list[Resource]) -> Iterator[str]:
    flat = [dict(_flat(one.value)) for one in found]
    for path in sorted({path for one in flat for path in one}):
        values = [one.get(path) for one in flat]
        if any(value != values[0] for value in values):
            yield f"{path}: {' | '.join(map(str, values))}"


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(each, f"{path}.{key}".lstrip("."))
    else:
        yield path, value


if __name__ == "__main__":
    sys.stdout.write(f"{table(read_folder(FOLDER), SETS)}\n")
