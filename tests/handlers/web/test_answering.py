"""handlers/web/answering.py: a fault of a service says if it may pass, and keeps its secrets."""

from core.api.problems import of_fault
from core.errors import StoreMisconfigured, StoreUnavailable
from handlers.web.answering import problem_response


def test_a_fault_that_may_pass_says_when_to_come_again_and_keeps_secrets() -> None:
    passing = problem_response(of_fault(StoreUnavailable("no answer")))
    lasting = problem_response(of_fault(StoreMisconfigured("STORE_CONNECTION: login failed, PWD=hunter2")))
    assert (passing.status_code, passing.headers["Retry-After"]) == (503, "5")
    assert "Retry-After" not in lasting.headers
    assert b"hunter2" not in lasting.get_body()
