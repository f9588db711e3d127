import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

from core.transforms.loading import Room
from tests.acceptance.api.served import Served
from tests.checkout import ROOT, copy_checkout
from tests.patience import allowed

PAGE = (ROOT / "docs" / "your-own-events.md").read_text(encoding="utf-8")
FILES: dict[str, str] = dict(re.findall(r"^```\w+ (apps/orders/\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
(EVENTS,) = re.findall(r"^```json orders\.jsonl\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_checkout(tmp_path_factory.mktemp("own") / "app", without=("bench/results.json", "docs/adr/"))
    (root / "orders.jsonl").write_text(EVENTS, encoding="utf-8")
    new = [sys.executable, "-m", "hubledger", "new", "orders", "--from", "orders.jsonl", "--key", "order_id"]
    subprocess.run(new, cwd=root, check=True, capture_output=True, timeout=allowed(60))
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def served(app: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    rooms = (Room("apps.orders", app / "apps" / "orders"),)
    made = Served(tmp_path_factory.mktemp("served"), (app, rooms), TRANSFORM="apps.orders")
    columns = "order_id, customer, item, quantity, cents, placed_at"
    lineage, place = "stream_id, partition_id, sequence_number, commit_number", "1, '0', 0, 1"
    for order in (("A-1", "Ada"), ("A-2", "Ada"), ("B-1", "B\u00e9la")):
        values = f"?, ?, 'lamp', 2, 7980, '2026-03-01T09:12:04.000000Z', {place}"
        made.sqlite.sql(f"INSERT INTO order_state ({columns}, {lineage}) VALUES ({values})", *order)
    yield made
    made.close()


def test_the_room_has_its_route_page_files_and_tables_with_their_levels_and_none_of_an_example(served: Served) -> None:
    kinds = sorted(Path(name).name for name in FILES)
    assert kinds == ["customer.html", "customer.js", "orders.sql", "routes.py", "views.py"]
    found = served.get("customers/Ada/orders").json
    assert found == {"orders": [{"order_id": one, "item": "lamp", "quantity": 2} for one in ("A-1", "A-2")]}
    assert served.get("customers/nobody/orders").json == {"orders": []}
    refused = served.get(f"customers/{'x' * 41}/orders")
    assert (refused.status, refused.fields) == (400, ["customer"])
    page = served.get("customers/Ada")
    assert (page.status, page.headers["content-type"].split(";")[0]) == (200, "text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert served.get("ops/customer.js").body.decode() == FILES["apps/orders/pages/customer.js"]
    paths = served.get("openapi.json").json["paths"]
    assert list(paths["/customers/{customer}/orders"]["get"]["security"][0]) == ["reading"]
    assert paths["/customers/{customer}"]["get"]["security"] == []
    assert not any("homes" in path for path in paths)
    tables = set(served.contents())
    assert "order_state" in tables
    assert not {"home", "home_alert", "sensor_reading", "flight_status", "home_activity"} & tables
    for path in ("ops", "status/history", "ledger/audit", "dead-letters", "tasks", "health/ledger", "aggregations"):
        assert served.get(path).status == 200, path
    for path in ("homes", "homes/h1", "homes/h1/activity", "ops/homes.js"):
        answer = served.get(path)
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json"), path
    assert served.post("homes/h1/links", {}).status == 404


def test_views_that_fail_to_import_end_no_other_route(app: Path, tmp_path: Path) -> None:
    broken = app.parent / "broken"
    copytree(app, broken)
    (broken / "apps" / "orders" / "views.py").write_text("import no_such_module\n", encoding="utf-8")
    rooms = (Room("apps.orders", broken / "apps" / "orders"),)
    other = Served(tmp_path, (broken, rooms), TRANSFORM="apps.orders")
    try:
        own = other.get("customers/Ada")
        assert (own.status, own.headers["content-type"]) == (500, "application/problem+json")
        assert [other.get(path).status for path in ("health/live", "ops", "dead-letters")] == [200, 200, 200]
    finally:
        other.close()
