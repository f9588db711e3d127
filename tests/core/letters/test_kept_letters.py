"""Promises of every store about dead letters: the event is kept whole, with the reason."""

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from core.model.commits import DeadLetter
from core.model.events import Event
from tests.fakes.builders import EPOCH, commit, event, letter, partition, settled
from tests.fakes.kept import Engine, KeptLetter
from tests.fakes.store import Store

P = partition()
BODIES = {
    "empty": b"",
    "every byte": bytes(range(256)),
    "NUL first": b"\x00\x00text\x00",
    "emoji": "👩‍👩‍👧".encode(),
    "not UTF-8": b"\xff\xfe\xed\xa0\x80",
    "one that is as long as a text may be": b"\xe2" * 2_001,
    "1 MB": bytes(range(256)) * 4096,
}


def keep(store: Store, engine: Engine, given: DeadLetter) -> KeptLetter:
    number = given.event.sequence_number
    store.commit_batch(commit(store.read_partition(P), number, number, settled({}, letters=[given])))
    return engine.letters()[-1]


@pytest.mark.parametrize("case", BODIES)
def test_a_body_is_kept_byte_for_byte(store: Store, engine: Engine, case: str) -> None:
    assert keep(store, engine, letter(event(0, BODIES[case]))).body == BODIES[case]


def test_a_letter_keeps_all_of_its_event_and_its_reason(store: Store, engine: Engine) -> None:
    properties = {"tenant": "a", "retries": 3, "ratio": 0.5, "late": True, "none": None, "deep": {"list": [1, "ß"]}}
    given = Event(event(3).sequence_number, "192", EPOCH, "key-1", properties, b"body")
    why = DeadLetter(given, "poison", "core.errors.PoisonEvent", "no such kind", "fedcba9876543210", "exhausted")
    kept = keep(store, engine, why)
    assert kept == KeptLetter(
        stream_id=store.read_partition(P).stream_id,
        partition_id="0",
        sequence_number=3,
        offset="192",
        enqueued_at=EPOCH,
        partition_key="key-1",
        properties=properties,
        body=b"body",
        error_class="poison",
        error_type="core.errors.PoisonEvent",
        error="no such kind",
        fingerprint="fedcba9876543210",
        transform_version="test/1",
        status="exhausted",
        attempts=1,
        due_at=None,
        failed_at=EPOCH + timedelta(days=1),
    )


@pytest.mark.parametrize("length", [0, 10, 5_000, 300_000])
def test_properties_of_any_length_are_kept(store: Store, engine: Engine, length: int) -> None:
    properties = {"text": 'a"\\ß👩\n' * (length // 7), "deep": [{"x": "\x00"}]}
    assert keep(store, engine, letter(structs.replace(event(0), properties=properties))).properties == properties


def test_a_waiting_letter_is_due_at_once(store: Store, engine: Engine) -> None:
    kept = keep(store, engine, letter(event(0)))
    assert (kept.status, kept.due_at) == ("waiting", kept.failed_at)


@pytest.mark.parametrize("status", ["exhausted", "held", "discarded", "resolved"])
def test_a_letter_that_does_not_wait_is_never_due(store: Store, engine: Engine, status: str) -> None:
    assert keep(store, engine, replace(letter(event(0)), status=status)).due_at is None  # type: ignore[arg-type]


KEYS = [None, "", "home-1", "👩‍👩‍👧", "'; --", '"\\a\n\t\x1f', "k" * 4_000, "👩" * 2_000]


@pytest.mark.parametrize("key", KEYS, ids=ascii)
def test_a_partition_key_is_kept_as_it_is(store: Store, engine: Engine, key: str | None) -> None:
    assert keep(store, engine, letter(event(0, key=key))).partition_key == key


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\ufdd0", "a\uffff", "k" * 10_000], ids=ascii)
def test_a_text_of_any_character_and_length_is_kept_as_it_is(store: Store, engine: Engine, text: str) -> None:
    kept = keep(store, engine, letter(event(0, b"body", key=text), error=text[:2_000]))
    assert (kept.partition_key, kept.error, kept.body) == (text, text[:2_000], b"body")


def test_lone_surrogates_do_not_lose_a_letter(store: Store, engine: Engine) -> None:
    kept = keep(store, engine, letter(event(0, b"body", key="k\ud800y"), error="no \udfff such"))
    assert (kept.partition_key, kept.error, kept.body) == ("k?y", "no ? such", b"body")


def test_lone_surrogates_in_properties_do_not_lose_a_letter(store: Store, engine: Engine) -> None:
    given = letter(structs.replace(event(0), properties={"tenant\ud800": "a\udfff"}))
    assert len(keep(store, engine, given).properties) == 1


@pytest.mark.parametrize("error", ["", "💥" * 2_000, "line\nline", 'no "such" \\kind\x01'], ids=ascii)
def test_an_error_is_kept_as_it_is(store: Store, engine: Engine, error: str) -> None:
    assert keep(store, engine, letter(event(0), error=error)).error == error


def test_many_letters_of_one_commit_are_all_kept(store: Store, engine: Engine) -> None:
    letters = [letter(event(number, str(number))) for number in range(1_000)]
    store.commit_batch(commit(store.read_partition(P), 0, 999, settled({}, letters=letters)))
    assert [kept.body for kept in engine.letters()] == [str(number).encode() for number in range(1_000)]
    (ledger,) = store.read_ledgers()
    assert (ledger.letters, ledger.dead_lettered, ledger.balanced) == (1_000, 1_000, True)
