"""infra/hooks/patience.py, rest.py and lake.py: a refusal that may pass is tried again, and no other."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError

from core.aggregation.spark_engine import JobRequest
from core.remote.spark.http_engines import LivyJobs
from core.remote.spark.job_package import package_version
from infra.hooks import lake
from infra.hooks.errors import HookRefused
from infra.hooks.patience import PAUSE, RIGHTS, NotYet, patiently
from infra.hooks.rest import Rest, Service
from tests.fakes.builders import FakeClock
from tests.infra.doubles import answering

MINUTE = timedelta(minutes=1)


def failing(*refusals: Exception) -> Callable[[], str]:
    """Return an attempt that raises each refusal once, then answers."""
    left = list(refusals)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return attempt


def test_a_refusal_that_passes_costs_pauses_and_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    assert patiently(failing(*[NotYet("no right", MINUTE, "get it")] * 3), clock) == "done"
    assert clock.slept == [PAUSE] * 3
    assert capsys.readouterr().out.splitlines() == [
        f"no right; trying again, for 0:0{left} at most" for left in ("1:00", "0:45", "0:30")
    ]


def test_a_refusal_that_does_not_pass_ends_after_its_time_with_the_remedy() -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match=r"^no right. This did not pass in 0:01:00: get it$") as refusal:
        patiently(failing(*[NotYet("no right", MINUTE, "get it")] * 9), clock)
    assert not isinstance(refusal.value, NotYet)
    assert sum(clock.slept) == 60


def test_each_kind_of_refusal_has_a_time_of_its_own() -> None:
    clock = FakeClock()
    first, second = NotYet("a", MINUTE, ""), NotYet("b", 2 * MINUTE, "")
    assert patiently(failing(*[first] * 4, *[second] * 8), clock) == "done"
    assert sum(clock.slept) == 180


def test_any_other_refusal_passes_at_once() -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match="wrong"):
        patiently(failing(HookRefused("wrong")), clock)
    assert clock.slept == []


def test_a_right_that_is_not_in_force_yet_is_waited_for() -> None:
    clock = FakeClock()
    with answering((403, "AuthorizationFailed"), (403, "AuthorizationFailed"), (200, '{"a": 1}')) as address:
        rest = Rest(lambda scope: "token", clock)
        assert rest.call("PUT", Service(address, "scope"), "/x", {}) == {"a": 1}
        assert rest.call("GET", Service(address, "scope"), "/x") == {"a": 1}
    assert clock.slept == [PAUSE] * 2


def test_the_last_pause_ends_with_the_time() -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match="did not pass"):
        patiently(failing(*[NotYet("no right", timedelta(seconds=20), "get it")] * 3), clock)
    assert clock.slept == [PAUSE, 5]


def test_a_body_is_sent_as_json_and_an_answer_without_a_body_is_none() -> None:
    requests: list[tuple[str, str, bytes]] = []
    with answering((204, ""), requests=requests) as address:
        assert Rest(lambda scope: "token", FakeClock()).call("PUT", Service(address, "scope"), "/x", {"a": 1}) is None
    assert requests == [("application/json", "Bearer token", b'{"a": 1}')]


def test_a_right_that_never_comes_is_refused_after_ten_minutes_in_one_line() -> None:
    clock = FakeClock()
    with (
        answering((403, '{\n"code": "AuthorizationFailed"}')) as address,
        pytest.raises(HookRefused, match=r"status 403.*AuthorizationFailed.*did not pass in 0:10:00") as refusal,
    ):
        Rest(lambda scope: "token", clock).call("GET", Service(address, "scope"), "/x")
    assert sum(clock.slept) == RIGHTS.total_seconds()
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    "answer", [(401, "no"), (404, "no"), (409, "no"), (500, "no"), (403, "RequestDisallowedByPolicy")]
)
def test_every_other_status_is_refused_at_once(answer: tuple[int, str]) -> None:
    clock = FakeClock()
    with answering(answer) as address, pytest.raises(HookRefused, match=f"failed with status {answer[0]}"):
        Rest(lambda scope: "token", clock).call("GET", Service(address, "scope"), "/x")
    assert clock.slept == []


class Container:
    """A container that stores each upload, after it has refused some."""

    def __init__(self, *refusals: Exception) -> None:
        self.blobs: dict[str, bytes] = {}
        self._refusals = list(refusals)

    def upload_blob(self, name: str, content: Any, overwrite: bool) -> None:
        assert overwrite
        if self._refusals:
            raise self._refusals.pop(0)
        self.blobs[name] = content.read()


def refused(status: int) -> HttpResponseError:
    error = HttpResponseError("This request is not authorized\nto perform this operation")
    error.status_code = status
    return error


def test_the_files_that_a_batch_names_are_those_that_were_uploaded(tmp_path: Path) -> None:
    container = Container()
    assert lake.upload_jobs("synapse", lambda: container, FakeClock(), tmp_path) == sorted(container.blobs)
    batch = LivyJobs(f"jobs/{package_version()}").batch(JobRequest("n", "aggregate.py", ()))
    named = {batch["file"], *batch["pyFiles"], *(one.partition("#")[0] for one in batch["archives"])}
    assert named <= set(container.blobs)


def test_without_an_engine_neither_the_lake_is_opened_nor_a_wheel_downloaded(tmp_path: Path) -> None:
    def opened() -> Any:
        raise AssertionError("the lake was opened")

    assert lake.upload_jobs("none", opened, FakeClock(), tmp_path / "no such folder of wheels") == []


def test_the_right_on_the_lake_is_waited_for_and_every_blob_is_whole_after(tmp_path: Path) -> None:
    clock, container = FakeClock(), Container(refused(403), refused(403))
    lake.upload_jobs("databricks", lambda: container, clock, tmp_path)
    assert clock.slept == [PAUSE] * 2
    assert container.blobs
    assert all(container.blobs.values())


@pytest.mark.parametrize("error", [refused(404), ServiceRequestError("no such host")])
def test_any_other_fault_of_the_lake_is_refused_at_once_in_one_line(error: Exception, tmp_path: Path) -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match="the jobs were not uploaded to the lake: ") as refusal:
        lake.upload_jobs("synapse", lambda: Container(error), clock, tmp_path)
    assert clock.slept == []
    assert len(str(refusal.value).splitlines()) == 1
