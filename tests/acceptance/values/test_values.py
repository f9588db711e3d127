"""Events of every type over AMQP, through the trigger and through the worker: each letter has exactly its values."""

import json
import subprocess
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from azure.eventhub import EventHubProducerClient

from local.event_hubs.codec import decode, encode
from tests.acceptance.gaps.apps import App, working
from tests.acceptance.values.published import (
    BODIES,
    DEEP,
    DELIVERED,
    DELIVERED_BODIES,
    VALUES,
    Values,
    publish_deliverable,
    publish_every_type,
)
from tests.acceptance.worker.started import TIMES, start
from tests.fakes.kept import KeptLetter

AT_ONCE = {"AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1", "DEAD_LETTER_BASE_SECONDS": "3600"}


def letters_of(app: App, publish: Callable[[EventHubProducerClient], int] = publish_deliverable) -> list[KeptLetter]:
    """Publish events, then one that is written; return the letters once all are accounted for."""
    connection = app.emulator.connection_string
    with EventHubProducerClient.from_connection_string(connection, eventhub_name="telemetry") as producer:
        app.published["0"] += publish(producer)
    app.send("0", [b"reading home-1"])
    app.send("1", [b"reading home-1"])
    app.until_all_accounted()
    return app.engine.letters()


def assert_values(letters: Sequence[KeptLetter], values: Mapping[str, Values], way: int) -> None:
    """Check the properties of the events of values."""
    found = {name: letter.properties for name, letter in zip(values, letters, strict=False)}
    whole = {name: {name: each[way], "beside": 1} for name, each in values.items()}
    assert json.dumps(found, sort_keys=True) == json.dumps(whole, sort_keys=True)  # tells 1, 1.0 and true apart


def bodies(letters: Sequence[KeptLetter], first: int, count: int) -> list[bytes]:
    return [letter.body for letter in letters[first : first + count]]


def test_the_worker_has_every_value_whole_in_its_letters(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        settings = {**app.settings(), "DEAD_LETTER_BASE_SECONDS": "3600"}
        worker = start(settings, *TIMES, output=subprocess.DEVNULL)
        try:
            letters = letters_of(app, publish_every_type)
        finally:
            worker.kill()
            worker.communicate()
    assert len(letters) == len(VALUES) + len(BODIES) + 1 + 3
    assert_values(letters, VALUES, 1)
    assert bodies(letters, len(VALUES), len(BODIES)) == [body for _, body in BODIES.values()]
    deep = b64decode(str(letters[-4].properties["$amqp"]))
    assert deep == encode({"deep": DEEP}) and decode(deep)
    event, sequence, value = letters[-3:]
    assert event.properties == {
        "nan": {"$double": "NaN"},
        "raw": {"$binary": "AP8="},
        "text": "ß",
        "id": {"$uuid": "00000000-0000-0000-0000-000000000007"},
        "yes": True,
    }
    assert (sequence.body, value.body) == (b'[1,"a",null]', b'{"a":[{"$binary":"AA=="}]}')


def test_an_event_that_the_host_lost_has_the_same_values(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.start(**AT_ONCE, WATCH_SCHEDULE="* * * * * *", GAP_GRACE_SECONDS="1")
        app.skip(1_000)
        letters = letters_of(app)
        assert app.lines("ingest") == []
    assert_values(letters, DELIVERED, 2)
    assert_delivered(letters)


def test_the_trigger_has_the_values_of_the_host_whole_in_its_letters(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.start(**AT_ONCE)
        letters = letters_of(app)
        place = list(DELIVERED).index("NaN")
        shown = app.request(f"api/revealed/dead-letters/0/{place}")["properties"]
    assert_values(letters, DELIVERED, 2)
    assert_delivered(letters)
    assert shown == letters[place].properties == {"NaN": "NaN", "beside": 1}


def assert_delivered(letters: Sequence[KeptLetter]) -> None:
    """Check the bodies, and the event of the SDK, after the values that the trigger delivers."""
    assert bodies(letters, len(DELIVERED), len(DELIVERED_BODIES)) == [body for _, body in DELIVERED_BODIES.values()]
    nan = {"nan": "NaN", "raw": "AP8=", "text": "ß", "id": "00000000-0000-0000-0000-000000000007", "yes": True}
    assert letters[-1].properties == nan
    assert len(letters) == len(DELIVERED) + len(DELIVERED_BODIES) + 1
