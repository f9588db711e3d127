"""Events of every type over AMQP, through the trigger and through the worker: each letter has exactly its values."""

import json
import subprocess
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventHubProducerClient

from local.event_hubs.codec import decode, encode
from tests.acceptance.gaps.apps import App, working
from tests.acceptance.values.published import BODIES, DEEP, NO_DOTNET, VALUES, publish_every_type, publish_with_the_sdk
from tests.acceptance.worker.started import TIMES, start
from tests.fakes.kept import KeptLetter

pytestmark = pytest.mark.slow
AT_ONCE = {"AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1", "DEAD_LETTER_BASE_SECONDS": "3600"}


def letters_of(app: App) -> list[KeptLetter]:
    """Publish every event, then one that is written; return the letters once all are accounted for."""
    connection = app.emulator.connection_string
    with EventHubProducerClient.from_connection_string(connection, eventhub_name="telemetry") as producer:
        app.published["0"] += publish_every_type(producer) + publish_with_the_sdk(producer)
    app.send("0", [b"reading home-1"])
    app.send("1", [b"reading home-1"])
    app.until_all_accounted()
    return app.engine.letters()


def assert_values(letters: Sequence[KeptLetter], way: int) -> None:
    """Check the properties of the events of VALUES; of a trigger whose .NET has no value, that they say so."""
    found = {name: letter.properties for name, letter in zip(VALUES, letters, strict=False)}
    expected = {name: {name: each[way], "beside": 1} for name, each in VALUES.items()}
    whole = {name: {"$json": "null"} if each[name] is NO_DOTNET else each for name, each in expected.items()}
    assert json.dumps(found, sort_keys=True) == json.dumps(whole, sort_keys=True)  # tells 1, 1.0 and true apart


def assert_bodies(letters: Sequence[KeptLetter]) -> None:
    found = [letter.body for letter in letters[len(VALUES) : len(VALUES) + len(BODIES)]]
    assert found == [body for _, body in BODIES.values()]


def assert_published_by_the_sdk(letters: Sequence[KeptLetter], properties: dict[str, Any]) -> None:
    event, sequence, value = letters[-3:]
    assert event.properties == properties
    assert (sequence.body, value.body) == (b'[1,"a",null]', b'{"a":[{"$binary":"AA=="}]}')


def test_the_worker_has_every_value_whole_in_its_letters(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        settings = {**app.settings(), "DEAD_LETTER_BASE_SECONDS": "3600"}
        worker = start(settings, *TIMES, output=subprocess.DEVNULL)
        try:
            letters = letters_of(app)
        finally:
            worker.kill()
            worker.communicate()
    assert len(letters) == len(VALUES) + len(BODIES) + 1 + 3
    assert_values(letters, 1)
    assert_bodies(letters)
    deep = b64decode(str(letters[-4].properties["$amqp"]))
    assert deep == encode({"deep": DEEP}) and decode(deep)
    assert_published_by_the_sdk(
        letters,
        {
            "nan": {"$double": "NaN"},
            "raw": {"$binary": "AP8="},
            "text": "ß",
            "id": {"$uuid": "00000000-0000-0000-0000-000000000007"},
            "yes": True,
        },
    )


def test_an_event_that_the_host_lost_has_the_same_values(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.start(**AT_ONCE, GAP_CHECK_SCHEDULE="* * * * * *", GAP_GRACE_SECONDS="1")
        app.skip(1_000)
        letters = letters_of(app)
        assert app.lines("ingest") == []
    kept = {name: each[1 if each[2] is NO_DOTNET else 2] for name, each in VALUES.items()}
    found = {name: letter.properties for name, letter in zip(VALUES, letters, strict=False)}
    assert found == {name: {name: value, "beside": 1} for name, value in kept.items()}
    assert_bodies(letters)


def test_the_trigger_has_the_values_of_the_host_whole_in_its_letters(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.start(**AT_ONCE)
        letters = letters_of(app)
        shown = app.request("api/revealed/dead-letters/0/12")["properties"]
    assert len(letters) == len(VALUES) + len(BODIES) + 1 + 3
    assert_values(letters, 2)
    assert_bodies(letters)
    assert shown == letters[12].properties == {"NaN": "NaN", "beside": 1}
    assert_published_by_the_sdk(
        letters,
        {"nan": "NaN", "raw": "AP8=", "text": "ß", "id": "00000000-0000-0000-0000-000000000007", "yes": True},
    )
