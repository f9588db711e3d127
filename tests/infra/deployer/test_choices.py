"""infra/hooks/deployer/choices.py: a choice that azd would drop in silence ends the hook, by its name."""

import json

import pytest

from infra.hooks.deployer.choices import refuse_unreadable
from infra.hooks.deployer.environment import in_virtual_network
from infra.hooks.errors import HookRefused
from tests.infra.test_policies import FILES, FOLDER
from tests.offenders import holds_for

UNREADABLE = [  # each is dropped by azd or read by azd alone
    *(("VNET_ENABLED", text) for text in ("yes", "on", "1", "t", "true ", " true", "tRue", "wahr", "\n")),
    *(("PARTITION_COUNT", text) for text in ("32 ", "0x20", "1_000", "1.0", "thirty", "--1", "٣٢", "9" * 40)),
]
GIVEN = json.loads((FOLDER / "main.parameters.json").read_text(encoding="utf-8"))["parameters"]


@holds_for(UNREADABLE)
def test_a_choice_that_azd_cannot_read_is_refused_by_name(choice: tuple[str, str]) -> None:
    name, text = choice
    with pytest.raises(HookRefused, match=f"^{name} must be "):
        refuse_unreadable(FOLDER, {name: text})


@holds_for([("VNET_ENABLED", "true"), ("VNET_ENABLED", "False"), ("PARTITION_COUNT", "32"), ("PARTITION_COUNT", "")])
def test_a_choice_that_azd_reads_passes(choice: tuple[str, str]) -> None:
    refuse_unreadable(FOLDER, dict([choice]))


def test_each_faulty_choice_is_named_at_once() -> None:
    with pytest.raises(HookRefused) as refused:
        refuse_unreadable(
            FOLDER, {"VNET_ENABLED": "no", "RETENTION_HOURS": "two", "PROFILE": "dev", "APP_DEPLOYED": ""}
        )
    assert [fault.split(" must ")[0] for fault in refused.value.faults] == ["RETENTION_HOURS", "VNET_ENABLED"]


def test_the_hooks_read_a_network_as_azd_does() -> None:
    for text, value in (("true", True), ("TRUE", True), ("True", True), ("false", False), ("", False)):
        refuse_unreadable(FOLDER, {"VNET_ENABLED": text})
        assert in_virtual_network({"VNET_ENABLED": text}) is value


def test_every_number_and_every_truth_of_the_parameters_is_checked() -> None:
    kinds = {one.name: one.of for one in FILES["main.bicep"].of_kind("parameter")}
    texts = [entry["value"] for name, entry in GIVEN.items() if kinds[name] in ("bool", "int")]
    names = {text[2:].partition("=")[0] for text in texts if isinstance(text, str)}
    with pytest.raises(HookRefused) as refused:
        refuse_unreadable(FOLDER, dict.fromkeys(names, "?"))
    assert {fault.split(" ")[0] for fault in refused.value.faults} == names


def test_the_deployer_is_the_one_of_the_deployment() -> None:
    """azd names the id of a guest in its home tenant; `deployer()` has the one of the tenant that is deployed to."""
    assert "principalId" not in GIVEN
    (parameter,) = [one for one in FILES["main.bicep"].of_kind("parameter") if one.name == "principalId"]
    assert parameter.value.text == "deployer().objectId"
