"""infra/hooks/deployer/existing.py: an event hub and a database of somebody else are named whole or refused by name."""

import re
from typing import Any

import pytest

from infra.hooks import __main__ as hooks
from infra.hooks.deployer.existing import hub_values, refuse_halves, refuse_to_delete
from infra.hooks.errors import HookRefused
from infra.hooks.rest import Rest, Service
from tests.infra.evaluate import Evaluator, Failed
from tests.infra.test_policies import FILES
from tests.offenders import holds_for

GROUP = "/subscriptions/01234567-89ab-cdef-0123-456789abcdef/resourceGroups/rg-theirs/providers"
NAMESPACE, SERVER = f"{GROUP}/Microsoft.EventHub/namespaces/evhns-theirs", f"{GROUP}/Microsoft.Sql/servers/sql-theirs"
HUB = {"EVENTHUB_NAMESPACE_ID": NAMESPACE, "EVENTHUB_NAME": "orders"}
DATABASE = {"SQL_SERVER_ID": SERVER, "SQL_DATABASE": "shop"}
REFUSED: list[tuple[str, dict[str, str]]] = [
    ("EVENTHUB_NAMESPACE_ID is set without EVENTHUB_NAME", {"EVENTHUB_NAMESPACE_ID": NAMESPACE}),
    ("EVENTHUB_NAME is set without EVENTHUB_NAMESPACE_ID", {"EVENTHUB_NAME": "orders"}),
    ("SQL_SERVER_ID is set without SQL_DATABASE", {"SQL_SERVER_ID": SERVER}),
    ("SQL_DATABASE is set without SQL_SERVER_ID", {"SQL_DATABASE": "shop"}),
    ("TRIGGER_GROUP is set without EVENTHUB_NAMESPACE_ID", {"TRIGGER_GROUP": "mine"}),
    *(
        (f'EVENTHUB_NAMESPACE_ID: "{re.escape(wrong)}" is not ', {**HUB, "EVENTHUB_NAMESPACE_ID": wrong})
        for wrong in (
            SERVER,
            f"{NAMESPACE}/eventhubs/orders",
            f"{NAMESPACE}/",
            "evhns-theirs",
            "evhns-theirs.servicebus.chinacloudapi.cn",
            f"https://portal.azure.us/#resource{NAMESPACE}",
            NAMESPACE.replace("01234567-89ab-cdef-0123-456789abcdef", "mine"),
        )
    ),
    (f'SQL_SERVER_ID: "{NAMESPACE}" is not the resource id of a server', {**DATABASE, "SQL_SERVER_ID": NAMESPACE}),
    ("SQL_SERVER_ID: ", {**DATABASE, "SQL_SERVER_ID": f"{SERVER}/databases/shop"}),
    ("TRIGGER_GROUP, READER_GROUP: both would be ", {**HUB, "TRIGGER_GROUP": "mine", "READER_GROUP": "Mine"}),
    ("TRIGGER_GROUP, READER_GROUP: both would be ", {**HUB, "TRIGGER_GROUP": "hubledger-reader"}),
    ("TRIGGER_GROUP, READER_GROUP: both would be ", {**HUB, "READER_GROUP": "hubledger"}),
]
TAKEN: list[dict[str, str]] = [
    {},
    {"EVENTHUB_NAME": "telemetry"},  # the output of our own hub, which azd keeps
    HUB,
    DATABASE,
    {**HUB, **DATABASE, "TRIGGER_GROUP": "a", "READER_GROUP": "b"},
    {**HUB, "EVENTHUB_NAMESPACE_ID": NAMESPACE.replace("resourceGroups", "resourcegroups").replace("Mic", "mic")},
]


@holds_for(REFUSED)
def test_half_a_pair_and_a_wrong_id_are_refused_by_name(refused: tuple[str, dict[str, str]]) -> None:
    says, environment = refused
    with pytest.raises(HookRefused, match=f"^{says}"):
        refuse_halves(environment)


@holds_for([environment for says, environment in REFUSED if "_ID: " in says or "both" in says])
def test_the_template_says_the_same_of_a_wrong_id_and_of_one_group_for_two(environment: dict[str, str]) -> None:
    """`az deployment` runs no hook."""
    given = {name: re.sub("_(.)", lambda found: found[1].upper(), name.lower()) for name in environment}
    parameters = {given[name].replace("eventhub", "eventHub"): value for name, value in environment.items()}
    with pytest.raises(HookRefused) as of_hook:
        refuse_halves(environment)
    with pytest.raises(Failed) as of_template:
        Evaluator(FILES["main.bicep"], {"environmentName": "dev", "location": "x", **parameters}).name("checked")
    assert list(of_hook.value.faults) == [str(of_template.value)]


@holds_for(TAKEN)
def test_whole_pairs_pass_together_and_alone(environment: dict[str, str]) -> None:
    refuse_halves(environment)


def test_each_fault_is_said_at_once() -> None:
    with pytest.raises(HookRefused) as refused:
        refuse_halves({"EVENTHUB_NAMESPACE_ID": "x", "SQL_DATABASE": "shop"})
    assert len(refused.value.faults) == 3


class Theirs(Rest):
    """The resources of somebody else over ARM, by the end of their paths; a path that is not there is a 404."""

    def __init__(self, sku: str = "Standard", **properties: Any) -> None:
        said = {"partitionCount": 4, "messageRetentionInDays": 1, **properties}
        self.there = {"evhns-theirs": {"sku": {"name": sku}}, "orders": {"properties": said}, "mine": {}}

    def call(self, method: str, service: Service, path: str, body: Any = None) -> Any:
        assert method == "GET"
        name = path.partition("?")[0].rpartition("/")[2]
        if name not in self.there:
            raise HookRefused(f"GET {path} failed with status 404")
        return self.there[name]


def test_partitions_and_retention_are_those_of_the_hub() -> None:
    assert hub_values(HUB, Theirs()) == {"PARTITION_COUNT": "4", "RETENTION_HOURS": "24"}
    newer = Theirs(retentionDescription={"cleanupPolicy": "Delete", "retentionTimeInHours": 72})
    assert hub_values({**HUB, "PARTITION_COUNT": "4"}, newer) == {"RETENTION_HOURS": "72"}
    assert hub_values({**HUB, "TRIGGER_GROUP": "mine", "PARTITION_COUNT": "4", "RETENTION_HOURS": "24"}, Theirs()) == {}


def test_without_a_hub_of_somebody_else_nobody_is_asked() -> None:
    assert hub_values({"EVENTHUB_NAME": "telemetry"}, Theirs()) == {}


@pytest.mark.parametrize(
    ("says", "environment", "theirs"),
    [
        ("EVENTHUB_NAME: .*404", {**HUB, "EVENTHUB_NAME": "other"}, Theirs()),
        ("READER_GROUP: .*consumergroups/none.*404", {**HUB, "READER_GROUP": "none"}, Theirs()),
        ("EVENTHUB_NAMESPACE_ID: a Basic namespace", HUB, Theirs("Basic")),
        ("EVENTHUB_NAME: a compacted hub", HUB, Theirs(retentionDescription={"cleanupPolicy": "Compact"})),
    ],
)
def test_a_hub_that_cannot_serve_is_refused_before_anything_is_made(
    says: str, environment: dict[str, str], theirs: Theirs
) -> None:
    with pytest.raises(HookRefused, match=f"^{says}"):
        hub_values(environment, theirs)


def test_azd_down_is_refused_where_it_would_delete_the_groups_of_others() -> None:
    own = {"AZURE_RESOURCE_GROUP": "rg-dev"}
    refuse_to_delete(own)
    refuse_to_delete({**own, **DATABASE})  # nothing of a deployment is in the group of the server
    for environment in ({**own, "GROUPS_OF_OTHERS": "rg-theirs"}, {**own, **HUB}):
        with pytest.raises(HookRefused, match=r"rg-theirs.*`az group delete --name rg-dev`"):
            refuse_to_delete(environment)


def test_the_hook_before_provisioning_refuses_half_a_pair(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SQL_DATABASE", "shop")
    assert hooks.main(["preprovision"]) == 1
    assert capsys.readouterr().err.startswith("preprovision: SQL_DATABASE is set without SQL_SERVER_ID")
