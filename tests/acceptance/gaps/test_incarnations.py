"""A hub that is recreated under the app, over AMQP: its partitions stop until a person acts, and nothing is mixed."""

import json
import subprocess
import sys
from collections import defaultdict
from typing import Any
from urllib.error import HTTPError

import pytest

from examples.home_security.transform import SensorReading
from local.programs import APP
from tests.acceptance.gaps.apps import BATCH, OFTEN, App
from tests.patience import allowed

BEFORE = 300


def stops(app: App) -> set[tuple[str, str]]:
    """Return partition and reason of every stop that the status shows."""
    return {
        (one["partition_id"], stop["reason"])
        for one in app.request("api/status")["partitions"]
        for stop in one["stops"]
    }


def health(app: App) -> int:
    try:
        app.request("api/health/ledger")
    except HTTPError as refused:
        return refused.code
    return 200


def post(app: App, **body: Any) -> Any:
    return app.request("api/streams/next-incarnation", {"reason": "the hub was recreated", **body})


def rows(app: App) -> dict[tuple[int, str, str], list[int]]:
    """Return the numbers of the rows of each stream, partition and home."""
    found = defaultdict(list)
    for row in app.engine.rows(SensorReading):
        found[row.stream_id, row.partition_id, row.row.home_id].append(row.sequence_number)  # type: ignore[attr-defined]
    return {place: sorted(numbers) for place, numbers in found.items()}


def command(app: App, **body: Any) -> Any:
    """Run the command of the next incarnation over the app's hub and store, without its API."""
    words = [sys.executable, "-m", "handlers.commands", "next-incarnation", json.dumps(body)]
    own = app.settings(PATH="/usr/bin:/bin", HOME=str(app.folder), USER="ada")
    return json.loads(subprocess.check_output(words, cwd=APP, env=own, timeout=allowed(60)))


def assert_nothing_mixed(app: App, renewed: int) -> None:
    old, new = sorted({stream for stream, _, _ in rows(app)})
    assert rows(app) == {
        **{(old, id, "old"): list(range(BEFORE)) for id in app.published},
        **{(new, id, "new"): list(range(renewed)) for id in app.published},
    }
    assert app.request("api/status")["ledger_balanced"] is True


@pytest.mark.parametrize(
    ("renewed", "is_up"), [(500, False), (100, True)], ids=["more events-the host down", "fewer events-the host up"]
)
def test_a_recreated_hub_stops_its_partitions_until_the_next_incarnation_is_opened(
    app: App, renewed: int, is_up: bool
) -> None:
    app.start(**OFTEN)
    app.publish(BEFORE, b"reading old")
    app.until_all_accounted()
    if not is_up:
        app.end()
    app.recreate_hub()
    app.publish(renewed, b"reading new")
    if not is_up:
        app.start_host(**OFTEN)
    app.until(lambda: stops(app) == {("0", "incarnation"), ("1", "incarnation")})
    assert health(app) == 503
    assert {home for _, _, home in rows(app)} == {"old"}
    said = command(app, expected_incarnation=1, reason="recreated")
    assert (said["outcome"], said["incarnation"], said["numbers"]) == ("dry_run", 2, 2 * renewed)
    done = post(app, expected_incarnation=1, expected_hub_created_at=said["hub_created_at"], dry_run=False)
    assert done["outcome"] == "opened"
    app.until_all_accounted()
    app.until(lambda: stops(app) == set())
    assert_nothing_mixed(app, renewed)
    app.publish(BATCH, b"reading new")
    app.until_all_accounted()
    assert_nothing_mixed(app, renewed + BATCH)
