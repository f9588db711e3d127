"""docs/your-hub.md: its settings exist and are enough, its commands parse, and two apps share one database."""

import re
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

from core.model.events import Stream
from core.model.rows import Row
from core.settings import read_settings
from core.store.connect import open_database
from examples.flight_info.transform import FlightChange
from tests.fakes.builders import commit, home, partition, settled
from tests.fakes.store import Store
from tests.infra.test_policies import FILES
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "your-hub.md").read_text(encoding="utf-8")
MIGRATE = re.findall(r"^\$ (python -m core\.store\.migrate .*)$", PAGE, re.MULTILINE)
TRANSFORMS = {"apps.orders": "examples.home_security", "apps.returns": "examples.flight_info"}


def settings() -> dict[str, str]:
    """Return the settings of the page's table, with their values as a person would write them."""
    table = PAGE.partition("| setting | value |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", table, re.MULTILINE)
    found: dict[str, str] = {}
    for names, values in rows:
        each = re.findall(r"`([^`]+)`", names)
        given = [values.strip("`")] * len(each) if len(each) == 1 else [one.strip(" `") for one in values.split(",")]
        found |= dict(zip(each, given, strict=False))
        found |= {name: "?" for name in each if name not in found}
    return found


def test_the_settings_of_the_page_are_those_of_the_template_and_enough_for_the_app() -> None:
    wired, of_host = FILES["main.bicep"].var("wiredSettings"), FILES["app/function.bicep"].var("hostSettings")
    assert sorted(set(settings()) - set(wired) - set(of_host)) == []
    given = {**settings(), "EVENTHUB_NAME": "orders", "HUB_RETENTION_HOURS": "168"}
    given |= {"EVENTHUB_CONSUMER_GROUP": "hubledger", "HUB_READER_CONSUMER_GROUP": "hubledger-reader"}
    read = read_settings(given)
    assert (read.namespace, read.transform) == ("NAMESPACE.servicebus.windows.net", "apps.orders")
    assert read.store_connection.startswith("Driver={ODBC Driver 18 for SQL Server};Server=tcp:")


def test_the_roles_of_the_page_are_those_of_the_template() -> None:
    (shell,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert subprocess.run(["bash", "-n", "-c", shell], check=False).returncode == 0
    roles = {role.removeprefix("Azure ") for role in re.findall(r'--role "([^"]+)"', shell)}
    roles = roles - {"Storage $kind Data Contributor"} | {
        f"Storage {kind} Data Contributor" for kind in ("Queue", "Table")
    }
    known = FILES["app/roles.bicep"].var("roleIds")
    assert roles == {
        "Event Hubs Data Receiver",
        *(role for role in known if "Owner" in role or re.search("Queue|Table", role)),
    }


def flight(number: int) -> FlightChange:
    """Return a row of the other example."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return FlightChange("ZZ", number, date(2026, 1, 1), "scheduled", None, None, None, moment)


def test_two_apps_keep_their_books_apart_in_one_database(tmp_path: Path) -> None:
    """The page's own command makes the tables of both; each app commits the same numbers of its own partition 0."""
    command = MIGRATE[-1].replace("python", sys.executable, 1)
    for name, example in TRANSFORMS.items():
        command = command.replace(name, example)
    connection = f"sqlite:{tmp_path / 'shared.db'}"
    done = subprocess.run(
        command.split(), cwd=ROOT, env={"STORE_CONNECTION": connection}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows: dict[str, Row] = {"namespace/orders": home("home-1"), "namespace/returns": flight(1)}
    for hub, row in rows.items():
        store = Store(open_database(connection, (type(row),)))
        state = store.read_partition(partition("0", hub=hub))
        assert state.checkpoint is None, "the checkpoint of the other app is not ours"
        store.commit_batch(commit(state, 0, 9, settled({0: [row]}, filtered=9)))
        store.close()
    for hub in rows:
        store = Store(open_database(connection))
        (books,) = store.read_books(Stream(hub, "hubledger"))
        assert (books.checkpoint, books.written, books.filtered) == (9, 1, 9)
        store.close()
