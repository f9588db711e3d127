"""Promises of every store about idempotency keys: one request claims a key, and its answer stays for a day."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

from core.api.idempotency import KEPT_FOR, WORK_AT_MOST, KeptKey, KeyClaim, Keys, standing
from tests.contract.operator.conftest import Office
from tests.fakes.builders import EPOCH

CLAIM = KeyClaim("key-1", "0" * 64, EPOCH)


def later(claim: KeyClaim, by: timedelta) -> KeyClaim:
    return replace(claim, claimed_at=claim.claimed_at + by)


def test_an_unused_key_is_free_and_then_in_work(office: Office) -> None:
    keys = Keys(office.store.database)
    assert keys.read_key("key-1") is None
    assert keys.claim_key(CLAIM)
    assert keys.read_key("key-1") == KeptKey("0" * 64, EPOCH, EPOCH + KEPT_FOR, None)
    assert not keys.claim_key(later(CLAIM, timedelta(minutes=1)))


def test_an_answer_is_kept_as_it_is(office: Office) -> None:
    keys, text = Keys(office.store.database), '{"a":"ß 👩‍👩‍👧 \\u0000"}' * 1_000
    keys.claim_key(CLAIM)
    keys.keep_answer(CLAIM, text)
    kept = keys.read_key("key-1")
    assert kept is not None
    assert (kept.answer, standing(later(CLAIM, timedelta(hours=23)), kept)) == (text, "answered")


def test_an_answered_key_cannot_be_claimed_before_its_time_and_then_it_can(office: Office) -> None:
    keys = Keys(office.store.database)
    keys.claim_key(CLAIM)
    keys.keep_answer(CLAIM, "{}")
    assert not keys.claim_key(later(CLAIM, KEPT_FOR - timedelta(seconds=1)))
    anew = replace(later(CLAIM, KEPT_FOR), request_hash="1" * 64)
    assert keys.claim_key(anew)
    assert keys.read_key("key-1") == KeptKey("1" * 64, anew.claimed_at, anew.expires_at, None)


def test_the_claim_of_a_request_that_died_is_taken_over_by_the_same_request_only(office: Office) -> None:
    keys, then = Keys(office.store.database), WORK_AT_MOST + timedelta(seconds=1)
    keys.claim_key(CLAIM)
    assert not keys.claim_key(replace(later(CLAIM, then), request_hash="1" * 64))
    assert keys.claim_key(later(CLAIM, then))


def test_who_lost_its_claim_keeps_no_answer(office: Office) -> None:
    keys, heir = Keys(office.store.database), later(CLAIM, WORK_AT_MOST + timedelta(seconds=1))
    keys.claim_key(CLAIM)
    keys.claim_key(heir)
    keys.keep_answer(CLAIM, '"late"')
    keys.release_key(CLAIM)
    assert keys.read_key("key-1") == KeptKey("0" * 64, heir.claimed_at, heir.expires_at, None)


def test_a_released_key_is_free_at_once_for_the_same_request(office: Office) -> None:
    keys = Keys(office.store.database)
    keys.claim_key(CLAIM)
    keys.release_key(CLAIM)
    assert standing(CLAIM, keys.read_key("key-1")) == "free"
    assert keys.claim_key(CLAIM)


def test_what_has_expired_is_forgotten_when_another_key_comes(office: Office) -> None:
    keys = Keys(office.store.database)
    for number in range(3):
        keys.claim_key(replace(CLAIM, key=f"old-{number}"))
    keys.claim_key(later(replace(CLAIM, key="new"), KEPT_FOR))
    assert [keys.read_key(f"old-{number}") for number in range(3)] == [None, None, None]
    assert keys.read_key("new") is not None


def test_keys_that_differ_in_case_are_different(office: Office) -> None:
    assert Keys(office.store.database).claim_key(replace(CLAIM, key="Key"))
    assert Keys(office.store.database).claim_key(replace(CLAIM, key="key"))


def test_of_requests_at_the_same_time_one_gets_the_key(make_office: Callable[[], Office]) -> None:
    offices = [make_office() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for turn in range(10):
            claim = replace(CLAIM, key=f"key-{turn}")
            claims = [later(claim, timedelta(microseconds=number)) for number in range(4)]
            won = list(pool.map(lambda one, asked: Keys(one.store.database).claim_key(asked), offices, claims))
            assert won.count(True) == 1
