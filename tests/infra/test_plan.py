"""The plans of the templates: with an existing hub and database, little is made there and nothing in their place."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.infra.bicep import Files
from tests.infra.plan import SETS, plan, table
from tests.infra.test_policies import FILES

ROLE, GROUP = "Microsoft.Authorization/roleAssignments", "Microsoft.EventHub/namespaces/eventhubs/consumergroups"
THEIRS = "rg-theirs"


def faults(files: Files, given: Mapping[str, Any]) -> list[str]:
    """Return each resource that a plan for an existing hub and server must not make."""
    found = []
    for (group, kind, name), one in plan(files, given).items():
        theirs, ours = group == THEIRS, kind.startswith(("Microsoft.EventHub/", "Microsoft.Sql/"))
        if not one.exists and (ours or theirs) and not (theirs and kind in (ROLE, GROUP)):
            found.append(f"{group} {kind} {name}")
    return found


@pytest.mark.parametrize("vnet", [False, True])
def test_with_existing_ids_only_consumer_groups_and_roles_are_made_there(vnet: bool) -> None:
    existing = {**SETS["existing"], "vnetEnabled": vnet, "sparkEngine": "none", "deleteLocks": True}
    assert faults(FILES, existing) == []
    there = {
        (kind, name) for (group, kind, name), one in plan(FILES, existing).items() if group == THEIRS and not one.exists
    }
    assert {name for kind, name in there if kind == GROUP} == {
        "evhns-theirs/orders/hubledger",
        "evhns-theirs/orders/hubledger-reader",
    }
    roles = sorted(name for kind, name in there if kind == ROLE)
    assert all(name.startswith("evhns-theirs/orders/") for name in roles), "the scope is the hub"
    assert [name.rpartition("Hubs ")[2] for name in roles] == ["Data Sender", "Data Receiver"]


def test_a_network_has_no_names_for_the_hub_and_the_server_of_somebody_else() -> None:
    """A private zone without their record would hide the public address that the app has to find."""
    zones = {name for _, kind, name in plan(FILES, {**SETS["existing"], "vnetEnabled": True}) if "dns-zone" in kind}
    assert zones == {f"privatelink.{service}.core.windows.net" for service in ("blob", "queue", "table", "dfs")}


def test_the_connections_of_the_app_are_those_of_the_existing_ones() -> None:
    settings = plan(FILES, SETS["existing"])["rg-dev", "Microsoft.Web/sites/config", "func-token/appsettings"]
    given = settings.value["properties"]
    assert given["EVENTHUB__fullyQualifiedNamespace"] == "evhns-theirs.servicebus.windows.net"
    assert (given["EVENTHUB_NAME"], given["EVENTHUB_CONSUMER_GROUP"]) == ("orders", "hubledger")
    assert "Server=tcp:sql-theirs.database.windows.net,1433;Database=shop;" in given["STORE_CONNECTION"]


def test_the_table_shows_each_state_and_each_value_that_differs() -> None:
    lines = table(FILES, SETS).splitlines()
    assert len(lines) > 50
    own, theirs = (
        next(line for line in lines if line.endswith(f"namespaces  evhns-{name}")) for name in ("token", "theirs")
    )
    assert own.split()[:3] == ["made", "made", "-"]
    assert theirs.split()[:4] == ["-", "-", "left", "alone"]
    smaller = table(FILES, {"new": {}, "small": {"partitionCount": 4}})
    assert "properties.partitionCount: 16 | 4" in smaller
