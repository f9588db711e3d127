import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import (
    AzureCliCredential,
    AzureDeveloperCliCredential,
    ChainedTokenCredential,
    DefaultAzureCredential,
)

from core.settings import read_settings
from infra.hooks import __main__ as hooks
from infra.hooks.deployer.address import ADDRESS, address_of, find_address, public_address
from infra.hooks.deployer.administrator import choose_administrator
from infra.hooks.deployer.choices import refuse_unreadable
from infra.hooks.deployer.environment import in_virtual_network, set_values
from infra.hooks.deployer.existing import hub_values, refuse_halves, refuse_to_delete
from infra.hooks.deployer.local_settings import FILE, MARK, settings_of, write_local_settings
from infra.hooks.deployer.provider import register_provider
from infra.hooks.deployer.sign_in import Account, Identity, account_of, in_pipeline, open_identity
from infra.hooks.errors import HookRefused
from infra.hooks.rest import ARM
from tests.fakes.leaping import Leaping
from tests.infra.doubles import PERSON, PIPELINE, Credential, Services, answering, plant, token_of
from tests.infra.plan import Evaluator, Failed
from tests.infra.test_hooks import outputs
from tests.infra.test_policies import FILES, FOLDER
from tests.offenders import holds_for
from tests.repo.product import ROOT

HERE, THERE = "8.8.8.8", "9.9.9.9"
ADA, ROBOT, NOBODY = account_of(token_of(PERSON)), account_of(token_of(PIPELINE)), account_of("")
GUEST = account_of(token_of({name: value for name, value in PERSON.items() if name != "upn"}))
AZD = """#!/bin/sh
here=$(dirname "$0")
for word in "$@"; do echo "$word"; done > "$here/asked"
if [ -e "$here/fails" ]; then echo "ERROR: no environment exists" >&2; exit 1; fi
[ "$1" = auth ] || exec cp "$here/asked" "$here/set"
echo '{"token": "@token@", "expiresOn": "2099-01-01T00:00:00Z"}'
"""


def azd(folder: Path, claims: dict[str, str] = PERSON) -> Path:
    return plant(folder / "azd", AZD.replace("@token@", token_of(claims))).parent


def never() -> str:
    raise AssertionError("a service was asked")


def test_an_address_is_found_unless_a_person_chose() -> None:
    for environment in ({}, {ADDRESS: ""}, {ADDRESS: THERE, "CI": "true"}):  # a pipeline admits its own machine
        assert address_of(environment, lambda: HERE) == HERE
    for chosen in ({ADDRESS: "none"}, {ADDRESS: "none", "CI": "true"}, {"VNET_ENABLED": "true", ADDRESS: THERE}):
        assert address_of(chosen, never) is None
    assert address_of({ADDRESS: THERE}, never) == THERE


@pytest.mark.parametrize("wrong", ["home", "10.0.0.4", "::1", "8.8.8", "8.8.8.8/32", "100.64.0.1", "0.0.0.0"])
def test_an_address_that_cannot_work_is_refused_with_the_way_to_set_it(wrong: str) -> None:
    with pytest.raises(HookRefused, match=r"DEPLOYER_ADDRESS: .*azd env set DEPLOYER_ADDRESS <address>"):
        address_of({ADDRESS: wrong}, never)


def test_the_second_service_answers_for_the_first_and_an_answer_that_is_no_public_address_is_none() -> None:
    assert public_address(f" {HERE}\n") == HERE
    with answering((500, "no")) as broken, answering((200, f"{HERE}\n")) as working:
        assert find_address([broken, working]) == HERE
    for answer in ("<html>sign in to this network</html>", "192.168.1.2", "2001:db8::1", ""):
        with answering((200, answer)) as address, pytest.raises(HookRefused) as refusal:
            find_address([address, "http://127.0.0.1:1"])
        assert "not found: set it by `azd env set DEPLOYER_ADDRESS <address>`" in str(refusal.value)
        assert len(str(refusal.value).splitlines()) == 1


GROUP_ID = "00000000-0000-0000-0000-0000000000ff"
APPLICATION = {"SQL_ADMINISTRATOR_ID": PIPELINE["appid"], "SQL_ADMINISTRATOR_TYPE": "ServicePrincipal"}
OF_A_PROGRAM = {"AZURE_PRINCIPAL_TYPE": "ServicePrincipal"}


def named(given: str, kind: str = "") -> dict[str, str]:
    return {"SQL_ADMINISTRATOR_ID": given, "SQL_ADMINISTRATOR_TYPE": kind}


@pytest.mark.parametrize(
    ("environment", "account", "chosen"),
    [
        pytest.param({}, ADA, {}, id="a person needs no setting"),
        pytest.param({}, GUEST, {}, id="a guest, whose token has no upn"),
        pytest.param({}, ROBOT, APPLICATION, id="a service principal, by its application id"),
        pytest.param(OF_A_PROGRAM, ROBOT, APPLICATION, id="said to be one"),
        pytest.param(
            {"CI": "true", **OF_A_PROGRAM, "AZURE_CLIENT_ID": PIPELINE["appid"]}, NOBODY, APPLICATION, id="a pipeline"
        ),
        (named(GROUP_ID), ADA, {}),
        (named(GROUP_ID, "Group"), ROBOT, {}),
        (named(PERSON["oid"].upper(), "User"), ADA, {}),
        (named(PIPELINE["appid"], "ServicePrincipal"), ROBOT, {}),
        (named(GROUP_ID, "ServicePrincipal"), NOBODY, {}),
    ],
)
def test_the_deployer_administers_the_database_unless_a_choice_fits(
    environment: dict[str, str], account: Account, chosen: dict[str, str]
) -> None:
    assert choose_administrator(environment, account) == chosen


UNKNOWN = "its application id is unknown: `azd env set SQL_ADMINISTRATOR_ID"


@pytest.mark.parametrize(
    ("environment", "account", "says"),
    [
        (OF_A_PROGRAM, ADA, UNKNOWN),
        ({**OF_A_PROGRAM, "AZURE_CLIENT_ID": PIPELINE["appid"]}, ADA, UNKNOWN),
        ({**OF_A_PROGRAM, "CI": "true"}, ADA, UNKNOWN),
        (named(PIPELINE["oid"], "ServicePrincipal"), ROBOT, f"takes its application id: .*{PIPELINE['appid']}"),
        (named(GROUP_ID, "ServicePrincipal"), ROBOT, "is not .*, who is signed in"),
        (named(PIPELINE["appid"], "ServicePrincipal"), ADA, "is not ada@contoso.com, who is signed in"),
        (named(GROUP_ID, "User"), ADA, "is not ada@contoso.com, who is signed in"),
        (named(PIPELINE["oid"], "User"), ROBOT, "is not .*, who is signed in"),
        (named(PERSON["oid"]), ADA, "is ada@contoso.com and not a group"),
        (named(PIPELINE["appid"], "Group"), ROBOT, "and not a group"),
        (named(GROUP_ID, "Team"), ADA, "must be Group, User or ServicePrincipal, not 'Team'"),
        (named("dba@contoso.com"), ADA, "must be an id of the form .*, not 'dba@contoso.com'"),
    ],
)
def test_a_choice_that_locks_the_hooks_out_is_refused(environment: dict[str, str], account: Account, says: str) -> None:
    with pytest.raises(HookRefused, match=says) as refusal:
        choose_administrator(environment, account)
    assert len(refusal.value.faults) == 1


UNREADABLE = [  # each is dropped by azd or read by azd alone
    *(("VNET_ENABLED", text) for text in ("yes", "on", "1", "t", "true ", " true", "tRue", "wahr", "\n")),
    *(("PARTITION_COUNT", text) for text in ("32 ", "0x20", "1_000", "1.0", "thirty", "--1", "٣٢", "9" * 40)),
]
GIVEN = json.loads((FOLDER / "main.parameters.json").read_text(encoding="utf-8"))["parameters"]


def test_a_choice_that_azd_cannot_read_is_refused_by_name_and_every_number_and_truth_is_checked() -> None:
    for name, text in UNREADABLE:
        with pytest.raises(HookRefused, match=f"^{name} must be "):
            refuse_unreadable(FOLDER, {name: text})
    refuse_unreadable(FOLDER, {"PARTITION_COUNT": "32", "RETENTION_HOURS": ""})
    for text in ("true", "TRUE", "True", "false", "False", ""):
        refuse_unreadable(FOLDER, {"VNET_ENABLED": text})
        assert in_virtual_network({"VNET_ENABLED": text}) is (text.lower() == "true")
    kinds = {one.name: one.of for one in FILES["main.bicep"].of_kind("parameter")}
    texts = [entry["value"] for name, entry in GIVEN.items() if kinds[name] in ("bool", "int")]
    names = {text[2:].partition("=")[0] for text in texts if isinstance(text, str)}
    with pytest.raises(HookRefused) as refused:
        refuse_unreadable(FOLDER, {**dict.fromkeys(names, "?"), "PROFILE": "dev"})
    assert {fault.split(" ")[0] for fault in refused.value.faults} == names


def test_the_deployer_is_the_one_of_the_deployment() -> None:
    """azd names the id of a guest in its home tenant. `deployer()` has the one of the tenant that is deployed to."""
    assert "principalId" not in GIVEN
    (parameter,) = [one for one in FILES["main.bicep"].of_kind("parameter") if one.name == "principalId"]
    assert parameter.value.text == "deployer().objectId"


def test_values_are_set_at_once_in_the_named_environment_or_refused_in_one_line(tmp_path: Path) -> None:
    path = str(azd(tmp_path))
    set_values({}, {"PATH": path})
    assert not (tmp_path / "set").exists(), "nothing to set starts nothing"
    set_values({"A": "1", "B": "two words"}, {"PATH": path, "AZURE_ENV_NAME": "hubledger-dev"})
    words = (tmp_path / "set").read_text().splitlines()
    assert words == ["env", "set", "A=1", "B=two words", "--environment", "hubledger-dev", "--no-prompt"]
    (tmp_path / "fails").touch()
    with pytest.raises(HookRefused, match=r"`azd env set A=1` failed: ERROR: no environment exists$"):
        set_values({"A": "1"}, {"PATH": path})
    with pytest.raises(HookRefused, match="azd is not on the PATH, so the hook cannot set A"):
        set_values({"A": "1"}, {"PATH": f"{path}/nowhere"})


PROVIDERS = "/subscriptions/01234567-89ab-cdef-0123-456789abcdef/resourceGroups/rg-theirs/providers"
NAMESPACE = f"{PROVIDERS}/Microsoft.EventHub/namespaces/evhns-theirs"
SERVER = f"{PROVIDERS}/Microsoft.Sql/servers/sql-theirs"
HUB = {"EVENTHUB_NAMESPACE_ID": NAMESPACE, "EVENTHUB_NAME": "orders"}
DATABASE = {"SQL_SERVER_ID": SERVER, "SQL_DATABASE": "shop"}
IOT_HUB = f"{PROVIDERS}/Microsoft.Devices/IotHubs/iot-theirs"
VAULT = f"{PROVIDERS}/Microsoft.KeyVault/vaults/kv-theirs"
CONNECTION = f"{VAULT}/secrets/built-in"
BUILT_IN = {"IOT_HUB_ID": IOT_HUB, "EVENTHUB_CONNECTION_ID": CONNECTION}
NAMED = {**BUILT_IN, "EVENTHUB_NAME": "iot-theirs-1"}
NO_CONNECTIONS = (VAULT, f"{CONNECTION}/version", f"{VAULT}/keys/built-in", "https://kv.vault.azure.net/secrets/s")
NO_NAMESPACES = (
    SERVER,
    f"{PROVIDERS}/Microsoft.Devices/IotHubs/iot-theirs",
    f"{NAMESPACE}/eventhubs/orders",
    f"{NAMESPACE}/",
    "evhns-theirs",
    "evhns-theirs.servicebus.chinacloudapi.cn",
    f"https://portal.azure.us/#resource{NAMESPACE}",
    NAMESPACE.replace("01234567-89ab-cdef-0123-456789abcdef", "mine"),
)
HALVES: list[tuple[str, dict[str, str]]] = [
    ("EVENTHUB_NAMESPACE_ID is set without EVENTHUB_NAME", {"EVENTHUB_NAMESPACE_ID": NAMESPACE}),
    ("EVENTHUB_NAME is set without EVENTHUB_NAMESPACE_ID", {"EVENTHUB_NAME": "orders"}),
    ("SQL_SERVER_ID is set without SQL_DATABASE", {"SQL_SERVER_ID": SERVER}),
    ("SQL_DATABASE is set without SQL_SERVER_ID", {"SQL_DATABASE": "shop"}),
    ("TRIGGER_GROUP is set without EVENTHUB_NAMESPACE_ID or IOT_HUB_ID", {"TRIGGER_GROUP": "mine"}),
    ("IOT_HUB_ID is set without EVENTHUB_CONNECTION_ID", {"IOT_HUB_ID": IOT_HUB}),
    ("EVENTHUB_CONNECTION_ID is set without IOT_HUB_ID", {"EVENTHUB_CONNECTION_ID": CONNECTION}),
]
WRONG: list[tuple[str, dict[str, str]]] = [  # the template says the same: `az deployment` runs no hook
    *((f'EVENTHUB_NAMESPACE_ID: "{one}" is not ', {**HUB, "EVENTHUB_NAMESPACE_ID": one}) for one in NO_NAMESPACES),
    (f'SQL_SERVER_ID: "{NAMESPACE}" is not the resource id of a server', {**DATABASE, "SQL_SERVER_ID": NAMESPACE}),
    ("SQL_SERVER_ID: ", {**DATABASE, "SQL_SERVER_ID": f"{SERVER}/databases/shop"}),
    *((f'IOT_HUB_ID: "{one}" is not the', {**NAMED, "IOT_HUB_ID": one}) for one in (NAMESPACE, f"{IOT_HUB}/x")),
    *(("EVENTHUB_CONNECTION_ID: ", {**NAMED, "EVENTHUB_CONNECTION_ID": one}) for one in NO_CONNECTIONS),
    ("IOT_HUB_ID: EVENTHUB_NAMESPACE_ID names a hub too", {**NAMED, "EVENTHUB_NAMESPACE_ID": NAMESPACE}),
    ("TRIGGER_GROUP, READER_GROUP: both would be ", {**NAMED, "TRIGGER_GROUP": "mine", "READER_GROUP": "Mine"}),
    ("TRIGGER_GROUP, READER_GROUP: both would be ", {**HUB, "TRIGGER_GROUP": "mine", "READER_GROUP": "Mine"}),
    ("TRIGGER_GROUP, READER_GROUP: both would be ", {**HUB, "TRIGGER_GROUP": "hubledger-reader"}),
    ("TRIGGER_GROUP, READER_GROUP: both would be ", {**HUB, "READER_GROUP": "hubledger"}),
]


def refusals_of_halves(environment: dict[str, str]) -> list[str]:
    try:
        refuse_halves(environment)
    except HookRefused as refusal:
        return list(refusal.faults)
    return []


@holds_for([*HALVES, *WRONG])
def test_half_a_pair_and_a_wrong_id_are_refused_by_name(refused: tuple[str, dict[str, str]]) -> None:
    (fault,) = refusals_of_halves(refused[1])
    assert fault.startswith(refused[0])


@holds_for([environment for _, environment in WRONG])
def test_the_template_says_the_same_of_a_wrong_id_and_of_one_group_for_two(environment: dict[str, str]) -> None:
    given = {name: re.sub("_(.)", lambda found: found[1].upper(), name.lower()) for name in environment}
    parameters = {given[name].replace("eventhub", "eventHub"): value for name, value in environment.items()}
    with pytest.raises(Failed) as of_template:
        Evaluator(FILES["main.bicep"], {"environmentName": "dev", "location": "x", **parameters}).name("checked")
    assert refusals_of_halves(environment) == [str(of_template.value)]


def test_whole_pairs_pass_together_and_alone_and_each_fault_is_said_at_once() -> None:
    other_case = NAMESPACE.replace("resourceGroups", "resourcegroups").replace("Mic", "mic")
    for taken in (
        {},
        {"EVENTHUB_NAME": "telemetry"},  # the output of our own hub, which azd keeps
        HUB,
        DATABASE,
        {**HUB, **DATABASE, "TRIGGER_GROUP": "a", "READER_GROUP": "b"},
        {**HUB, "EVENTHUB_NAMESPACE_ID": other_case},
        BUILT_IN,  # the hook sets the name of its hub
        {**NAMED, "TRIGGER_GROUP": "a", "EVENTHUB_CONNECTION_ID": CONNECTION.lower()},
    ):
        assert refusals_of_halves(taken) == []
    assert len(refusals_of_halves({"EVENTHUB_NAMESPACE_ID": "x", "SQL_DATABASE": "shop"})) == 3


def theirs(sku: str = "Standard", **properties: Any) -> Services:
    """Return the resources of somebody else over ARM, by the end of their paths. A path that is not there is a 404."""
    said = {"partitionCount": 4, "messageRetentionInDays": 1, **properties}
    there: dict[str, Any] = {"evhns-theirs": {"sku": {"name": sku}}, "orders": {"properties": said}, "mine": {}}

    def answer(method: str, path: str, body: Any) -> Any:
        name = path.partition("?")[0].rpartition("/")[2]
        if method != "GET" or name not in there:
            raise HookRefused(f"{method} {path} failed with status 404")
        return there[name]

    return Services(answer)


def test_partitions_and_retention_are_those_of_the_hub_of_somebody_else() -> None:
    assert hub_values(HUB, theirs()) == {"PARTITION_COUNT": "4", "RETENTION_HOURS": "24"}
    newer = theirs(retentionDescription={"cleanupPolicy": "Delete", "retentionTimeInHours": 72})
    assert hub_values({**HUB, "PARTITION_COUNT": "4"}, newer) == {"RETENTION_HOURS": "72"}
    assert hub_values({**HUB, "TRIGGER_GROUP": "mine", "PARTITION_COUNT": "4", "RETENTION_HOURS": "24"}, theirs()) == {}
    nobody = theirs()
    assert (hub_values({"EVENTHUB_NAME": "telemetry"}, nobody), nobody.calls) == ({}, [])


def test_a_hub_that_cannot_serve_is_refused_before_anything_is_made() -> None:
    compacted = theirs(retentionDescription={"cleanupPolicy": "Compact"})
    for says, environment, there in (
        ("EVENTHUB_NAME: .*404", {**HUB, "EVENTHUB_NAME": "other"}, theirs()),
        ("READER_GROUP: .*consumergroups/none.*404", {**HUB, "READER_GROUP": "none"}, theirs()),
        ("EVENTHUB_NAMESPACE_ID: a Basic namespace", HUB, theirs("Basic")),
        ("EVENTHUB_NAME: a compacted hub", HUB, compacted),
    ):
        with pytest.raises(HookRefused, match=f"^{says}"):
            hub_values(environment, there)


def at_devices(routing: Mapping[str, Any] | None = None, by_role: bool = True) -> Services:
    """Return an IoT Hub of somebody else, its groups, and the vault with the connection string of its endpoint."""
    endpoint = {"path": "iot-theirs-1", "partitionCount": 4, "retentionTimeInDays": 2}
    hub = {"eventHubEndpoints": {"events": endpoint}, "routing": routing}
    there: dict[str, Any] = {
        IOT_HUB: {"properties": hub},
        f"{IOT_HUB}/eventHubEndpoints/events/ConsumerGroups/mine": {},
        VAULT: {"properties": {"enableRbacAuthorization": by_role}},
        CONNECTION: {"properties": {}},
    }

    def answer(method: str, path: str, body: Any) -> Any:
        if method != "GET" or path.partition("?")[0] not in there:
            raise HookRefused(f"{method} {path} failed with status 404")
        return there[path.partition("?")[0]]

    return Services(answer)


def test_name_partitions_and_retention_are_those_of_the_built_in_endpoint(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"EVENTHUB_NAME": "iot-theirs-1", "PARTITION_COUNT": "4", "RETENTION_HOURS": "48"}
    assert hub_values({**BUILT_IN, "EVENTHUB_NAME": "telemetry", "TRIGGER_GROUP": "mine"}, at_devices()) == found
    assert hub_values({**BUILT_IN, **found}, at_devices()) == {}
    here = {"fallbackRoute": {"endpointNames": ["events"], "isEnabled": True}}
    assert hub_values(BUILT_IN, at_devices(here)) == found
    assert "no route" not in capsys.readouterr().out
    elsewhere = {"routes": [{"endpointNames": ["lake"], "isEnabled": True}], "fallbackRoute": {"isEnabled": False}}
    assert hub_values(BUILT_IN, at_devices(elsewhere)) == found
    assert "no route of it leads to its built-in endpoint" in capsys.readouterr().out
    for says, changed, there in (
        ("READER_GROUP: .*ConsumerGroups/none.*404", {"READER_GROUP": "none"}, at_devices()),
        ("IOT_HUB_ID: .*404", {"IOT_HUB_ID": f"{IOT_HUB}2"}, at_devices()),
        ("EVENTHUB_CONNECTION_ID: .*404", {"EVENTHUB_CONNECTION_ID": f"{CONNECTION}2"}, at_devices()),
        ("EVENTHUB_CONNECTION_ID: .* role-based access control", {}, at_devices(by_role=False)),
    ):
        with pytest.raises(HookRefused, match=f"^{says}"):
            hub_values({**BUILT_IN, **changed}, there)


def test_azd_down_is_refused_where_it_would_delete_the_groups_of_others() -> None:
    own = {"AZURE_RESOURCE_GROUP": "rg-dev"}
    refuse_to_delete(own)
    refuse_to_delete({**own, **DATABASE})  # nothing of a deployment is in the group of the server
    for environment in ({**own, "GROUPS_OF_OTHERS": "rg-theirs"}, {**own, **HUB}, {**own, **BUILT_IN}):
        with pytest.raises(HookRefused, match=r"rg-theirs.*`az group delete --name rg-dev`"):
            refuse_to_delete(environment)


ROOM = "apps.orders"
EXAMPLE: dict[str, str] = json.loads((ROOT / "local.settings.example.json").read_text("utf-8"))["Values"]
OF_THE_HOST = ("FUNCTIONS_WORKER_RUNTIME", "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT", "PYTHON_THREADPOOL_THREAD_COUNT")


def written(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / FILE).read_text("utf-8"))
    return content


def test_a_developers_app_reads_through_a_group_and_a_store_of_its_own(tmp_path: Path) -> None:
    write_local_settings(tmp_path, outputs(), {})
    values = written(tmp_path)["Values"]
    settings = read_settings(values)
    assert (settings.namespace, settings.event_hub) == ("n.servicebus.windows.net", "telemetry")
    assert settings.consumer_group == "$Default" != outputs().settings["EVENTHUB_CONSUMER_GROUP"]
    assert settings.store_connection.startswith("sqlite:") and settings.spark.engine == "none"
    assert values["AzureWebJobsStorage"] == "UseDevelopmentStorage=true" == EXAMPLE["AzureWebJobsStorage"]
    assert {name: values[name] for name in OF_THE_HOST} == {name: EXAMPLE[name] for name in OF_THE_HOST}
    said = json.dumps(settings_of(outputs(), ROOM))
    assert not re.search(r"key|password|pwd|secret|sig=", said, re.IGNORECASE), "no value is a secret"


def test_a_hub_of_others_a_rival_and_a_pipeline_get_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rival = outputs(WIRED_SETTINGS='{"EVENTHUB_CONSUMER_GROUP": "$default"}')
    write_local_settings(tmp_path, outputs(), {"GITHUB_ACTIONS": "true"})
    for name in ("EVENTHUB_NAMESPACE_ID", "IOT_HUB_ID"):
        write_local_settings(tmp_path, outputs(), {name: "/subscriptions/s"})
        assert "a hub of others may have a reader" in capsys.readouterr().out
    write_local_settings(tmp_path, rival, {})
    assert "was not written" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_of_the_hook_follows_the_environment_though_an_editor_saved_it(tmp_path: Path, encoding: str) -> None:
    write_local_settings(tmp_path, outputs(), {})
    (tmp_path / FILE).write_text((tmp_path / FILE).read_text(), encoding=encoding)
    write_local_settings(tmp_path, outputs(EVENTHUB_NAME="other"), {"CI": "false"})
    assert written(tmp_path)["Values"]["EVENTHUB_NAME"] == "other"


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda content: {**content, "Values": {**content["Values"], "ANCHOR": "latest"}},
    lambda content: {**content, "Values": {key: value for key, value in content["Values"].items() if key != MARK}},
    *(lambda _, text=text: text for text in ("{}", "[]", "// mine", "")),
]


@pytest.mark.parametrize("mine", CHANGES)
def test_a_file_of_a_person_stays_and_says_so(mine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_local_settings(tmp_path, outputs(), {})
    made = mine(written(tmp_path))
    text = made if isinstance(made, str) else json.dumps(made)
    (tmp_path / FILE).write_text(text)
    capsys.readouterr()
    write_local_settings(tmp_path, outputs(EVENTHUB_NAME="other"), {})
    assert (tmp_path / FILE).read_text() == text
    assert "local.settings.json is yours and was not changed" in capsys.readouterr().out


def test_the_provider_of_the_subnets_is_registered_once_and_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    def registering(*states: str, environment: dict[str, str], leap: float = 300.0) -> list[str]:
        left = list(states)
        there = Services(lambda *_: {"registrationState": left.pop(0) if len(left) > 1 else left[0]})
        register_provider(environment, there, Leaping(leap))
        return [path for method, path, _ in there.calls if method == "POST"]

    own = {"AZURE_SUBSCRIPTION_ID": "s"}
    assert registering("Registered", environment=own) == []
    assert registering("NotRegistered", "Registering", "Registering", "Registered", environment=own) == [
        "https://management.azure.com/subscriptions/s/providers/Microsoft.App/register?api-version=2021-04-01"
    ]
    with pytest.raises(HookRefused, match=r"registration of Microsoft\.App: it is Registering"):
        registering("NotRegistered", "Registering", environment=own, leap=60.0)
    registering("NotRegistered", environment={})
    assert "az provider register --namespace Microsoft.App --wait" in capsys.readouterr().out


def test_an_account_is_what_its_token_tells_printed_once_the_token_never(capsys: pytest.CaptureFixture[str]) -> None:
    credential = Credential(token_of(PERSON))
    identity = Identity(credential)
    assert identity.token("a") == identity.token("b") == token_of(PERSON)
    assert credential.scopes == ["a", "b"]
    assert capsys.readouterr().out == f"signed in as ada@contoso.com (object id {PERSON['oid']}, tenant t)\n"
    assert Account("ada@contoso.com", PERSON["oid"], "", "t") == ADA
    application = Account(PIPELINE["appid"], PIPELINE["oid"], PIPELINE["appid"], "t")
    assert Identity(Credential(token_of(PIPELINE))).account() == application
    for token in ("", "opaque", "a.b.c", "a.bnVsbA.c", "a.W10.c", "a.ÿ.c", "a.gICA.c"):
        assert account_of(token) == Account("an account that its token does not name", "", "", ""), token


def test_a_sign_in_that_fails_is_one_line() -> None:
    chain = "Chain failed.\nAttempted:\n\tACredential: run a\n\tBCredential: no b\nHelp: x"
    for text, said in (
        ("ERROR: AADSTS50076: use MFA\nTrace ID: 1", "ERROR: AADSTS50076: use MFA"),
        (chain, "ACredential: run a; BCredential: no b"),
        ("x" * 1000, "x" * 400),
    ):
        with pytest.raises(HookRefused, match=rf"no token for .*azd auth login.*; {said}$") as refusal:
            Identity(Credential(ClientAuthenticationError(text))).account()
        assert len(str(refusal.value).splitlines()) == 1


def credentials(environment: dict[str, str]) -> list[type]:
    opened = open_identity(environment)._credential
    return [type(one) for one in opened.credentials] if type(opened) is ChainedTokenCredential else [type(opened)]


def test_azd_signs_in_at_a_desk_in_the_tenant_of_the_environment_and_not_in_a_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(in_pipeline({name: "true"}) for name in ("CI", "GITHUB_ACTIONS", "TF_BUILD"))
    assert not any(in_pipeline({"CI": value}) for value in ("", "0", "false", "False"))
    assert credentials({}) == [AzureDeveloperCliCredential, AzureCliCredential]
    assert credentials({"CI": "true"}) == [DefaultAzureCredential]
    monkeypatch.setenv("PATH", f"{azd(tmp_path)}:{os.environ['PATH']}")
    assert open_identity({"AZURE_TENANT_ID": "contoso"}).account().name == "ada@contoso.com"
    words = " ".join((tmp_path / "asked").read_text().split())
    assert words.startswith("auth token ") and f"--scope {ARM.scope}" in words and "--tenant-id contoso" in words


READ = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "AZURE_TENANT_ID", "AZURE_PRINCIPAL_TYPE", "AZURE_ENV_NAME", "VNET_ENABLED")


OF_ROBOT = f"SQL_ADMINISTRATOR_ID={PIPELINE['appid']} SQL_ADMINISTRATOR_TYPE=ServicePrincipal"


@pytest.mark.parametrize(
    ("claims", "given", "asked", "err"),
    [
        pytest.param(PERSON, {}, None, "", id="a person who chose"),
        pytest.param(PIPELINE, {}, OF_ROBOT, "", id="an application"),
        pytest.param(PIPELINE, {ADDRESS: "10.0.0.4"}, None, "preprovision: DEPLOYER_ADDRESS: ", id="a refusal"),
        pytest.param(PERSON, {"SQL_DATABASE": "shop"}, None, "preprovision: SQL_DATABASE is set without ", id="half"),
    ],
)
def test_the_hook_before_provisioning_sets_what_is_missing_and_after_a_refusal_nothing(
    claims: dict[str, str],
    given: dict[str, str],
    asked: str | None,
    err: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in (*READ, "SQL_ADMINISTRATOR_ID", "SQL_ADMINISTRATOR_TYPE", "TRANSFORM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {ADDRESS: "none", "PATH": f"{azd(tmp_path, claims)}:{os.environ['PATH']}", **given}.items():
        monkeypatch.setenv(name, value)
    assert hooks.main(["preprovision"]) == int(bool(err))
    said = capsys.readouterr()
    assert err or said.out.startswith("signed in as ")
    assert said.err.startswith(err) and len(said.err.splitlines()) == int(bool(err))
    words = (tmp_path / "set").read_text().split() if (tmp_path / "set").exists() else None
    assert words == (asked and ["env", "set", *asked.split(), "--no-prompt"])


def test_a_deployer_who_is_signed_in_nowhere_gets_one_line(tmp_path: Path) -> None:
    said = "ERROR: not logged in, run `azd auth login` to login"
    plant(tmp_path / "azd", f"#!/bin/sh\necho '{said}' >&2; exit 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "infra.hooks", "preprovision"],
        cwd=ROOT,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "DEPLOYER_ADDRESS": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    refused = "preprovision: no token for https://management.azure.com/.default: sign in with `azd auth login`"
    assert line.startswith(refused)
