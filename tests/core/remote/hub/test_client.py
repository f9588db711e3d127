"""The faults of a link to the hub, distinguished by the words of the service."""

from core.errors import HubRefused, HubUnreachable
from core.remote.hub.client import link_fault
from core.settings import read_settings

GIVEN = {"EVENTHUB": "Endpoint=sb://hub.example", "EVENTHUB_NAME": "telemetry", "EVENTHUB_CONSUMER_GROUP": "hubledger"}
SETTINGS = read_settings({**GIVEN, "STORE_CONNECTION": "sqlite:unused"})
TRACKED = "TrackingId:40404012-4014-404a-b401-404401404401_B7, SystemTracker:telemetry~32766, Timestamp:2026-11-21"
REFUSALS = (
    f"The messaging entity 'namespace:eventhub:telemetry~32766|nobody' could not be found. {TRACKED}\n"
    "Error condition: amqp:not-found",
    "Status code: 404",
    "CBS Token authentication failed.\nStatus code: 401",
    "Unauthorized access. 'Listen' claim(s) are required",
)


def test_a_refusal_names_its_setting_and_the_service_words_in_one_line() -> None:
    for words in REFUSALS:
        fault = link_fault(SETTINGS, "nobody", "EVENTHUB_CONSUMER_GROUP", Exception(words))
        assert isinstance(fault, HubRefused), words
        first = words.splitlines()[0]
        assert str(fault) == f"EVENTHUB_CONSUMER_GROUP: telemetry, consumer group nobody: {first}"


def test_the_digits_of_a_tracking_id_refuse_nothing() -> None:
    busy = Exception(f"The server is busy. {TRACKED}\nError condition: com.microsoft:server-busy")
    assert isinstance(link_fault(SETTINGS, "nobody", "EVENTHUB_NAME", busy), HubUnreachable)
