"""Modules and their calls agree: our files by their declarations, those of the registry by a recorded list."""

import json
import re
from typing import Any

from tests.infra.bicep import Declaration, File
from tests.infra.test_policies import FILES, FOLDER
from tests.offenders import holds_for
from tests.repo.product import ROOT

NOTED = json.loads((ROOT / "tests" / "fixtures" / "avm_modules.json").read_text(encoding="utf-8"))
REGISTRY = "br/public:"
CALLS = {f"{file.name} {one.name}": (file, one) for file in FILES.values() for one in file.of_kind("module")}


def interface(file: File, call: Declaration) -> tuple[set[str], set[str], set[str]]:
    """Return the required parameters of a module, all its parameters, and its outputs."""
    if call.of.startswith(REGISTRY):
        noted = NOTED[call.of.removeprefix(REGISTRY)]
        return set(noted["required"]), {*noted["required"], *noted["optional"]}, set(noted["outputs"])
    folder = file.name.rpartition("/")[0]
    module = FILES[f"{folder}/{call.of}".lstrip("/")]
    parameters = module.of_kind("parameter")
    required = {one.name for one in parameters if one.value is None}
    return required, {one.name for one in parameters}, {one.name for one in module.of_kind("output")}


@holds_for(CALLS)
def test_a_module_gets_what_it_needs_and_nothing_that_it_does_not_know(name: str) -> None:
    file, call = CALLS[name]
    required, known, _ = interface(file, call)
    assert required <= set(call.value["params"]) <= known


@holds_for(CALLS)
def test_a_module_has_the_outputs_that_are_asked_of_it(name: str) -> None:
    file, call = CALLS[name]
    asked = set(re.findall(rf"\b{call.name}!?\.outputs\.(\w+)", file.text))
    assert asked <= interface(file, call)[2]


def test_modules_of_the_registry_send_no_telemetry_of_their_own() -> None:
    registry = [call for _, call in CALLS.values() if call.of.startswith(REGISTRY)]
    assert len(registry) == 9
    assert [call.name for call in registry if call.value["params"]["enableTelemetry"] is not False] == []


KINDS = {"bool": bool, "int": int, "string": str}


def parameter_faults(given: dict[str, Any]) -> list[str]:
    """Return the parameters that main.bicep does not have, whose default is a different one, or whose literal value has
    a different type."""
    declared = {one.name: one for one in FILES["main.bicep"].of_kind("parameter")}
    return [name for name, entry in given.items() if name not in declared or not _fits(entry["value"], declared[name])]


def _fits(value: Any, one: Declaration) -> bool:
    chosen = re.fullmatch(r"\$\{[A-Z_]+(?:=(.*))?\}", value) if isinstance(value, str) else None
    if chosen is None:
        return type(value) is KINDS.get(one.of, dict)
    return not chosen[1] or chosen[1] == str(one.value).replace("True", "true").replace("False", "false")


def test_parameters_of_main_come_from_the_environment_of_azd_or_are_values_of_their_type() -> None:
    given = json.loads((FOLDER / "main.parameters.json").read_text(encoding="utf-8"))["parameters"]
    assert parameter_faults(given) == []
    assert parameter_faults({"partitionCount": {"value": 32}, "vnetEnabled": {"value": True}}) == []
    assert {one.name for one in FILES["main.bicep"].of_kind("parameter") if one.value is None} <= set(given)


def test_the_page_on_scaling_out_has_every_choice_of_the_worker_with_its_default() -> None:
    page = (ROOT / "docs" / "scale-out.md").read_text(encoding="utf-8")
    given = (FOLDER / "main.parameters.json").read_text(encoding="utf-8")
    choices = dict(re.findall(r"\$\{(WORKER_\w+)=(\w*)\}", given))
    parameters = {one.name: one.value for one in FILES["main.bicep"].of_kind("parameter")}
    choices |= {name: str(parameters[name]) for name in ("workerReplicas", "workerMaximumReplicas")}
    assert len(choices) == 4
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    found = {name: next((row for row in rows if f"`{name}`" in row), "") for name in choices}
    assert [name for name, default in choices.items() if not found[name] or default not in found[name]] == []
