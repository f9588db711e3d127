"""handlers/web/answering.py: a request under a key runs once, and a failed one may be sent again."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.api.idempotency import KEPT_FOR, KeyClaim, Keys
from core.api.operation import Answer
from core.api.problems import Problem, invalid, of_fault
from core.errors import StoreUnavailable
from handlers.web.answering import once
from handlers.web.problems import problem_response
from tests.fakes.builders import EPOCH
from tests.fakes.memory_store import MemoryStore

CLAIM = KeyClaim("key", "a" * 64, EPOCH)


@pytest.fixture
def keys() -> Keys:
    return Keys(MemoryStore().database)


def done() -> Answer:
    return Answer(b'{"job":"1"}', 202, {"Location": "/api/replays/1"})


def not_done() -> Answer:
    raise AssertionError("this must not run")


def test_the_first_request_runs_and_the_second_is_answered_the_same(keys: Keys) -> None:
    first = once(CLAIM, keys, done)
    again = once(replace(CLAIM, claimed_at=EPOCH + timedelta(hours=1)), keys, not_done)
    assert first == again == done()


@pytest.mark.parametrize("trouble", [invalid("field", "why"), StoreUnavailable("no answer"), KeyboardInterrupt()])
def test_a_request_that_failed_may_come_again(keys: Keys, trouble: BaseException) -> None:

    def fail() -> Answer:
        raise trouble

    with pytest.raises(type(trouble)):
        once(CLAIM, keys, fail)
    assert once(CLAIM, keys, done) == done()


def test_a_different_request_under_the_key_is_refused(keys: Keys) -> None:
    once(CLAIM, keys, done)
    with pytest.raises(Problem) as caught:
        once(replace(CLAIM, request_hash="b" * 64), keys, not_done)
    assert caught.value.kind.status == 422


def test_a_request_that_is_in_work_is_not_run_beside_itself(keys: Keys) -> None:
    keys.claim_key(CLAIM)
    with pytest.raises(Problem) as caught:
        once(CLAIM, keys, not_done)
    assert (caught.value.kind.status, caught.value.headers["Retry-After"]) == (409, "2")


def test_a_key_is_free_again_after_its_time(keys: Keys) -> None:
    once(CLAIM, keys, done)
    late = replace(CLAIM, claimed_at=EPOCH + KEPT_FOR, request_hash="b" * 64)
    assert once(late, keys, done) == done()


def test_a_fault_that_may_pass_says_when_to_come_again_and_keeps_secrets(keys: Keys) -> None:
    from core.errors import StoreMisconfigured

    passing = problem_response(of_fault(StoreUnavailable("no answer")))
    lasting = problem_response(of_fault(StoreMisconfigured("STORE_CONNECTION: login failed, PWD=hunter2")))
    assert (passing.status_code, passing.headers["Retry-After"]) == (503, "5")
    assert "Retry-After" not in lasting.headers
    assert b"hunter2" not in lasting.get_body()
