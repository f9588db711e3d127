import gzip
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest

from core.model import transforms
from core.model.transforms import body_decoder, counting_unknown_fields, plus_unknown_fields, unknown_fields_of
from core.settle.cause import Place, cause_of, fingerprint_of


class Order(msgspec.Struct):
    order_id: str
    total: int = msgspec.field(name="Total", default=0)


class Sold(msgspec.Struct, tag_field="type", tag="sold"):
    price: int


class Returned(msgspec.Struct, tag_field="type", tag="returned"):
    reason: str


decode = body_decoder(Order)


def test_an_unknown_field_is_ignored_and_counted_once_for_each_event_that_has_it() -> None:
    with counting_unknown_fields() as counts:
        for _ in range(3):
            assert decode(b'{"order_id": "1", "coupon": {"total": 1}, "Total": 2}') == Order("1", 2)
        decode(b'{"order_id": "1", "coupon": 1, "total": 2}')
        decode(b'{"order_id": "1"}')
    assert counts == {"coupon": 4, "total": 1}
    with counting_unknown_fields() as counts, pytest.raises(msgspec.ValidationError):
        decode(b'{"order_id": 1, "coupon": 1}')
    assert counts == {}


ONE = b'{"order_id": "1"}'
NOT_JSON = {  # bodies that their decoder refuses, and a part of the fault of each
    b"\xef\xbb\xbf" + ONE: "byte order mark",
    ONE.decode().encode("utf-16"): "UTF-16",
    gzip.compress(ONE, mtime=0): "gzip",
    b"Obj\x01\x04\x14avro.codec": "Avro container file",
    ONE + b"\0": "NUL byte",
    ONE + b"\r\n" + ONE + b"\r\n": "`new --each lines`",
    b"[" + ONE + b", " + ONE + b"]": "`new --each array`",
    b' {"records" : [ ' + ONE + b"]}": "`new --each FIELD`",
}
LIKE_THEM = {  # bodies whose fault is that of one above
    b"\xfe\xff" + ONE.decode().encode("utf-16-be"): "UTF-16",
    ONE.decode().encode("utf-16-be"): "UTF-16",
    ONE.decode().encode("utf-16-le"): "UTF-16",
    b"[\0{\0": "UTF-16",
    b'{"order_id": "\0"}': "NUL byte",
    b'{"order_id": 1}\0': "NUL byte",
    b"\0": "NUL byte",
    b"[1] \n\n\t{}": "`new --each lines`",
    b"[]": "`new --each array`",
}
PLAIN = (  # bodies that have the error of msgspec
    b'{"order_id": 1, "coupon": 1}', b'{"coupon": 1}', b'{"order_id": "1", "Total": ""}', b'{"Total": [1]}}', b"", b"{",
    b'{"order_id": [1]}', b'{"tags": [], "Total": 1}', b'{"records": {}}', b'{"a": 1}',
    b"\x78\x9c\x00\x01", b"\0\0\0\0\x2a\x02a",
    b'"\xff"', b"\xff", b'{"order_id": "1"},\n{}', b'{"records": [],', b"}" + b"\n" * 1_000_000, b"}\n" * 500_000,
)  # fmt: skip


def fault_of(body: bytes) -> str:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)) as of_msgspec:
        msgspec.json.Decoder(Order).decode(body)
    with pytest.raises(type(of_msgspec.value)) as refused:
        decode(body)
    assert str(refused.value) == transforms.fault_of_body(body, of_msgspec.value)
    return str(refused.value)


def test_a_body_in_a_different_encoding_or_of_several_events_has_a_cause_of_its_own() -> None:
    for body, part in (NOT_JSON | LIKE_THEM).items():
        assert part in fault_of(body), body
    assert len({cause_of(fingerprint_of("PoisonEvent", fault_of(body), Place())) for body in NOT_JSON}) == len(NOT_JSON)


def test_every_other_body_has_the_fault_of_its_decoder_however_long_it_is() -> None:
    for body in PLAIN:
        with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)) as refused:
            msgspec.json.Decoder(Order).decode(body)
        assert fault_of(body) == str(refused.value), body[:40]


class Timed(msgspec.Struct):
    at: datetime


def test_a_time_of_an_hour_24_or_a_second_60_has_the_reason_in_its_error() -> None:
    for text, is_named in (
        ("2016-12-31T23:59:60Z", True),
        ("2016-12-31T24:00:00Z", True),
        ("2016-12-32T23:00:00Z", False),
    ):
        with pytest.raises(msgspec.ValidationError) as refused:
            body_decoder(Timed)(f'{{"at": "{text}"}}'.encode())
        assert str(refused.value).startswith("Invalid RFC3339 encoded datetime - at `$.at`")
        assert ("neither an hour 24 nor a second 60" in str(refused.value)) is is_named


def test_a_body_of_several_kinds_knows_the_fields_of_its_own_kind_and_a_strict_class_refuses_all_others() -> None:
    class Strict(msgspec.Struct, forbid_unknown_fields=True):
        order_id: str

    either: Callable[[bytes], object] = body_decoder(Sold, Returned)
    with counting_unknown_fields() as counts:
        assert either(b'{"type": "sold", "price": 1, "reason": "x"}') == Sold(1)
        assert either(b'{"type": "returned", "reason": "x"}') == Returned("x")
    assert counts == {"reason": 1}
    with pytest.raises(msgspec.ValidationError, match="unknown field `coupon`"):
        body_decoder(Strict)(b'{"order_id": "1", "coupon": 1}')


def test_a_thread_counts_its_own_events_only() -> None:
    with counting_unknown_fields() as counts:
        other = threading.Thread(target=decode, args=(b'{"order_id": "1", "coupon": 1}',))
        other.start()
        other.join()
        assert counts == {}
        with counting_unknown_fields() as inner:
            decode(b'{"order_id": "1", "coupon": 1}')
        decode(b'{"order_id": "1", "gift": 1}')
    assert (inner, counts) == ({"coupon": 1}, {"gift": 1})
    decode(b'{"order_id": "1", "coupon": 1}')  # nobody counts


def test_the_stored_counts_grow_and_stay_small_whatever_the_names_are() -> None:
    stored = plus_unknown_fields("{}", {"coupon": 2})
    assert unknown_fields_of(plus_unknown_fields(stored, {"coupon": 1, "gift": 4})) == {"coupon": 3, "gift": 4}
    assert plus_unknown_fields(stored, {}) is stored
    for number in range(100):
        stored = plus_unknown_fields(stored, {f"{number:03}" + '\x00"' * 1_000: 1})
    counts = unknown_fields_of(stored)
    assert (len(counts), counts[""], sum(counts.values())) == (
        transforms.MOST_NAMES + 1,
        100 - transforms.MOST_NAMES + 1,
        102,
    )
    assert max(map(len, counts)) == transforms.NAME_LENGTH
    assert len(stored) <= 4_000
    assert json.loads(plus_unknown_fields(stored, {"coupon": 1}))["coupon"] == 3
    for unreadable in ("", "{", "[]", '{"coupon": "many"}'):
        assert unknown_fields_of(plus_unknown_fields(unreadable, {"coupon": 1})) == {"coupon": 1}


LAST, CUT = "2026-02-28T23:59:59.9999999Z", datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC)
Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class Visit(msgspec.Struct):
    at: Instant
    text: Annotated[str, msgspec.Meta(max_length=len(LAST))] = ""
    raw: msgspec.Raw = msgspec.Raw()
    within: "Visit | None" = None
    times: tuple[Instant, ...] = ()
    given: dict[str, Any] = msgspec.field(name="Given", default_factory=dict)
    degrees: float = 0.0


visit_of = body_decoder(Visit)
DAYS_END = {
    LAST: CUT,
    "2026-12-31T23:59:59.9999995Z": CUT.replace(month=12, day=31),
    "2026-12-31T23:59:59.9999994Z": CUT.replace(month=12, day=31),
    "9999-12-31T23:59:59.9999999Z": CUT.replace(9999, 12, 31),
    "0001-01-01T00:00:00Z": datetime(1, 1, 1, tzinfo=UTC),
    "2026-02-28T23:59:59.999999Z": CUT,
    "9999-12-31T23:59:59Z": CUT.replace(9999, 12, 31, microsecond=0),
    "2026-03-01T00:59:59.999999999+01:00": CUT,
    "2026-02-28t23:59:59.999999950001z": CUT,
    "2026-02-28 23:59:59.9999999Z": CUT,
}


def test_a_time_is_cut_to_microseconds_and_never_rounded() -> None:
    assert {text: visit_of(json.dumps({"at": text}).encode()).at for text in DAYS_END} == DAYS_END


def test_what_is_no_time_stays_whole_beside_a_time_that_is_cut() -> None:
    given = {"a": [LAST, {LAST: LAST}], LAST: 1.123456789}
    within = {"at": LAST, "text": LAST, "unknown": LAST}
    body = {"at": LAST, "text": LAST, "raw": {"x": LAST}, "within": within, "times": [LAST], "Given": given}
    found = visit_of(json.dumps({**body, "degrees": 48.123456789, "more": LAST}).encode())
    assert (found.at, found.times, found.text, found.degrees) == (CUT, (CUT,), LAST, 48.123456789)
    assert json.loads(bytes(found.raw)) == {"x": LAST}
    assert found.within == Visit(CUT, LAST)
    assert found.given == given


def test_a_text_of_a_long_time_alone_stays_whole_and_a_body_without_one_is_not_copied() -> None:
    assert visit_of(f'{{"at": "2026-01-01T00:00:00Z", "text": "{LAST}"}}'.encode()).text == LAST
    for body in (b'{"at": "2026-02-28T23:59:59.999999Z"}', b'{"degrees":12.3456789, "at": 1}', b""):
        assert transforms.cut_times(body) is body
