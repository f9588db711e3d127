"""infra/hooks/patience.py, rest.py and lake.py: a refusal that may pass is tried again, and no other."""

from collections.abc import Callable, Sequence
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
NO_RIGHT = NotYet("no right", MINUTE, "get it")


def failing(refusals: Sequence[Exception]) -> Callable[[], str]:
    """Return an attempt that raises each refusal once, then answers."""
    left = list(refusals)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return attempt


def test_a_refusal_that_passes_costs_pauses_and_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    assert patiently(failing([NO_RIGHT] * 3), clock) == "done"
    assert clock.slept == [PAUSE] * 3
    assert capsys.readouterr().out.splitlines() == [
        f"no right; trying again, for 0:0{left} at most" for left in ("1:00", "0:45", "0:30")
    ]


def test_each_kind_of_refusal_has_a_time_of_its_own() -> None:
    clock = FakeClock()
    assert patiently(failing([NotYet("a", MINUTE, "")] * 4 + [NotYet("b", 2 * MINUTE, "")] * 8), clock) == "done"
    assert sum(clock.slept) == 180


@pytest.mark.parametrize(
    ("refusal", "says", "slept"),
    [
        pytest.param(NO_RIGHT, "^no right. This did not pass in 0:01:00: get it$", [PAUSE] * 4, id="its time"),
        pytest.param(NotYet("x", timedelta(seconds=20), ""), "did not pass", [PAUSE, 5], id="a last pause"),
        pytest.param(HookRefused("wrong"), "^wrong$", [], id="any other refusal"),
    ],
)
def test_a_refusal_that_does_not_pass_ends_after_its_time_with_the_remedy(
    refusal: HookRefused, says: str, slept: list[float]
) -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match=says) as ended:
        patiently(failing([refusal] * 9), clock)
    assert not isinstance(ended.value, NotYet)
    assert clock.slept == slept


def call(address: str, clock: FakeClock, method: str = "GET", body: dict[str, Any] | None = None) -> Any:
    return Rest(lambda scope: "token", clock).call(method, Service(address, "scope"), "/x", body)


def test_a_right_that_is_not_in_force_yet_is_waited_for() -> None:
    clock = FakeClock()
    with answering((403, "AuthorizationFailed"), (403, "AuthorizationFailed"), (200, '{"a": 1}')) as address:
        assert call(address, clock, "PUT", {}) == call(address, clock) == {"a": 1}
    assert clock.slept == [PAUSE] * 2


def test_a_body_is_sent_as_json_and_an_answer_without_a_body_is_none() -> None:
    requests: list[tuple[str, str, bytes]] = []
    with answering((204, ""), requests=requests) as address:
        assert call(address, FakeClock(), "PUT", {"a": 1}) is None
    assert requests == [("application/json", "Bearer token", b'{"a": 1}')]


@pytest.mark.parametrize(
    ("status", "text", "says", "slept"),
    [
        (
            403,
            '{\n"code": "AuthorizationFailed"}',
            "AuthorizationFailed.*did not pass in 0:10:00",
            RIGHTS.total_seconds(),
        ),
        *((status, "no", "", 0) for status in (401, 404, 409, 500)),
        (403, "RequestDisallowedByPolicy", "", 0),
    ],
)
def test_a_right_that_never_comes_is_refused_after_ten_minutes_and_any_other_status_at_once(
    status: int, text: str, says: str, slept: float
) -> None:
    clock = FakeClock()
    with (
        answering((status, text)) as address,
        pytest.raises(HookRefused, match=f"failed with status {status}.*{says}") as refusal,
    ):
        call(address, clock)
    assert sum(clock.slept) == slept
    assert len(str(refusal.value).splitlines()) == 1


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


def test_the_files_that_a_batch_names_are_uploaded_when_the_right_on_the_lake_is_there(tmp_path: Path) -> None:
    clock, container = FakeClock(), Container(refused(403), refused(403))
    assert lake.upload_jobs("synapse", lambda: container, clock, tmp_path) == sorted(container.blobs)
    assert clock.slept == [PAUSE] * 2
    assert all(container.blobs.values()), "each blob is whole after a refusal"
    batch = LivyJobs(f"jobs/{package_version()}").batch(JobRequest("n", "aggregate.py", ()))
    named = {batch["file"], *batch["pyFiles"], *(one.partition("#")[0] for one in batch["archives"])}
    assert named <= set(container.blobs)


def test_without_an_engine_neither_the_lake_is_opened_nor_a_wheel_downloaded(tmp_path: Path) -> None:
    def opened() -> Any:
        raise AssertionError("the lake was opened")

    assert lake.upload_jobs("none", opened, FakeClock(), tmp_path / "no such folder of wheels") == []


@pytest.mark.parametrize("error", [refused(404), ServiceRequestError("no such host")])
def test_any_other_fault_of_the_lake_is_refused_at_once_in_one_line(error: Exception, tmp_path: Path) -> None:
    clock = FakeClock()
    with pytest.raises(HookRefused, match="the jobs were not uploaded to the lake: ") as refusal:
        lake.upload_jobs("synapse", lambda: Container(error), clock, tmp_path)
    assert clock.slept == []
    assert len(str(refusal.value).splitlines()) == 1
