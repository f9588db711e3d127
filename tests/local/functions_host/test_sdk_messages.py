from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_payload
from hypothesis import given
from hypothesis import strategies as st

from core.remote.hub.sdk_patches import Whole, reader_over
from local.event_hubs.codec import Raw, Symbol, Timestamp, encode
from local.functions_host.sdk_messages import Delivery, annotated, delivery_of, mark_of
from tests.fakes import trigger_events
from tests.fakes.trigger_events import handed_out

BODY = b"\x00\x53\x75\xa0\x01x"
NAMES = {
    "delivered": Delivery.DELIVERED,
    "binding fails": Delivery.BINDING_FAILS,
    "reader stops": Delivery.READER_STOPS,
    "dropped in silence": Delivery.DROPPED,
}


def of_properties(value: object) -> bytes:
    return b"\x00\x53\x74" + encode({"v": value}) + BODY


def of_fields(**at: object) -> bytes:
    fields = [at.get(f"f{place}") for place in range(13)]
    return b"\x00\x53\x73" + encode(fields) + BODY


def test_each_message_ends_as_it_did_in_the_real_trigger() -> None:
    published = trigger_events.published()
    found = {one.name: delivery_of(one.message) for one in published}
    assert found == {one.name: NAMES[one.fate] for one in published}
    assert set(found.values()) == set(Delivery)


def test_a_short_decimal_is_dropped_wherever_it_is() -> None:
    for short in (Raw(b"\x74\x32\x80\x00\x01"), Raw(b"\x84\x31\xc0" + bytes(5) + b"\x01")):
        for value in (short, [short], [{"k": [short]}], Raw(b"\xe0\x06\x01" + short)):
            assert delivery_of(of_properties(value)) is Delivery.DROPPED, value


def test_a_char_stops_the_reader_where_dotnet_has_none() -> None:
    ends = {number: delivery_of(of_properties(Raw(b"\x73" + number.to_bytes(4)))) for number in (65, 0xFFFF, 0x10000)}
    assert ends == {65: Delivery.DELIVERED, 0xFFFF: Delivery.DELIVERED, 0x10000: Delivery.READER_STOPS}
    assert delivery_of(of_properties(Raw(b"\x73\x00\x00\xd8\x00"))) is Delivery.READER_STOPS  # half of a pair


def test_the_worst_of_a_message_counts_and_bytes_that_are_no_message_are_dropped() -> None:
    bad = of_properties({})
    assert delivery_of(bad) is Delivery.READER_STOPS
    assert delivery_of(bad.replace(BODY, b"\x00\x53\x77" + encode("x"))) is Delivery.READER_STOPS
    assert delivery_of(of_fields(f0=[]) + bad) is Delivery.DROPPED
    assert delivery_of(b"\x00\x53") is Delivery.DROPPED


@given(st.sampled_from(trigger_events.published()), st.data())
def test_any_bytes_have_an_end(one: trigger_events.Published, data: st.DataObject) -> None:
    """An error would end the readers of this process."""
    message = bytearray(one.message[:400])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(message)))
        message[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    assert delivery_of(bytes(message)) in set(Delivery)


read_plain = reader_over(decode_payload)
read = annotated(read_plain)


def mark(payload: bytes) -> Delivery:
    return mark_of(EventData._from_message(read(memoryview(payload))))


def test_an_event_of_the_sdk_tells_the_end_of_its_message() -> None:
    for one in trigger_events.published():
        assert mark(one.message) == delivery_of(one.message), one.name
    for name, value, end in (
        ("x-mine", Raw(b"\x84" + bytes(8)), Delivery.DROPPED),
        ("x-mine", Raw(b"\x73\x00\x01\xf6\x00"), Delivery.READER_STOPS),
        ("x-opt-partition-key", b"k", Delivery.BINDING_FAILS),  # the SDK reads it like a string
        ("x-opt-partition-key", Symbol("k"), Delivery.BINDING_FAILS),
    ):
        message = b"\x00\x53\x72" + encode({Symbol(name): value}) + BODY
        assert mark(handed_out(message)) is end, value


def test_annotations_keep_their_bytes_beside_the_stamps_and_a_plain_event_is_read_as_without_marks() -> None:
    mine = encode({Symbol("x-mine"): Timestamp(5)})
    given = memoryview(handed_out(b"\x00\x53\x72" + mine + BODY))
    found = read(given).message_annotations
    assert isinstance(found, Whole)
    assert mine[3:] in found.raw
    assert found[b"x-opt-sequence-number"] == 7
    assert dict(read_plain(given).message_annotations) == dict(found)
    for key in ("", "k", "k" * 300):
        annotations = {Symbol("x-opt-partition-key"): key} if key else {}
        plain = memoryview(handed_out(b"\x00\x53\x72" + encode(annotations) + BODY))
        assert read(plain) == read_plain(plain), key
        assert read(plain).delivery_annotations is None
