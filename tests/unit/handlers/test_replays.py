"""handlers/replays.py: the orchestration, driven by hand. It only drives, and only ids travel through it."""

import json
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from handlers.driving import DRIVEN, drive
from handlers.orchestrations import PAUSE, SECOND
from handlers.replays import FAN_OUT, drive_replay

JOB = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Context:
    """The context of an orchestration; it notes the requests."""

    again: list[str] = field(default_factory=list)
    current_utc_datetime: datetime = NOW

    def get_input(self) -> str:
        return JOB

    def call_activity(self, name: str, given: object) -> tuple[str, object]:
        return (name, given)

    def task_all(self, tasks: list[object]) -> tuple[str, list[object]]:
        return ("all", tasks)

    def create_timer(self, at: datetime) -> tuple[str, datetime]:
        return ("timer", at)

    def continue_as_new(self, given: str) -> None:
        self.again.append(given)


def begun() -> tuple[Context, Generator[Any, Any, Any]]:
    context = Context()
    work = drive_replay(context)
    assert next(work) == ("open_replay_job", JOB)
    return context, work


def test_each_partition_with_work_left_gets_an_activity_and_then_it_looks_again() -> None:
    context, work = begun()
    kind, tasks = work.send({"partitions": ["0", "7"]})
    assert (kind, tasks) == (
        "all",
        [("replay_pieces", {"job_id": JOB, "partition_id": id}) for id in ("0", "7")],
    )
    with pytest.raises(StopIteration):
        work.send([{"ok": {}}, {"ok": {}}])
    assert context.again == [JOB]


def test_it_ends_when_nothing_is_left_or_the_job_does_not_run() -> None:
    context, work = begun()
    with pytest.raises(StopIteration):
        work.send({"partitions": []})
    assert context.again == []


def test_only_so_many_partitions_are_in_work_at_once() -> None:
    _, work = begun()
    _, tasks = work.send({"partitions": [str(id) for id in range(100)]})
    assert len(tasks) == FAN_OUT


@pytest.mark.parametrize("done", [[{"error": "HubUnreachable"}], [{"ok": {}}, {"error": "StoreUnavailable"}]])
def test_a_fault_of_a_slice_is_waited_for_and_ends_nothing(done: list[object]) -> None:
    context, work = begun()
    work.send({"partitions": ["0", "1"][: len(done)]})
    assert work.send(done) == ("timer", NOW + PAUSE + SECOND)
    with pytest.raises(StopIteration):
        work.send(None)
    assert context.again == [JOB]


def test_a_store_that_cannot_be_reached_is_waited_for() -> None:
    context, work = begun()
    assert work.send({"error": "StoreUnavailable"}) == ("timer", NOW + PAUSE + SECOND)
    with pytest.raises(StopIteration):
        work.send(None)
    assert context.again == [JOB]


def test_what_travels_is_ids_that_json_holds() -> None:
    _, work = begun()
    _, tasks = work.send({"partitions": ["0"]})
    assert json.loads(json.dumps(tasks)) == [["replay_pieces", {"job_id": JOB, "partition_id": "0"}]]


class Client:
    """A Durable client over one instance."""

    def __init__(self, status: object = None, fault: Exception | None = None) -> None:
        self.status, self.fault = status, fault
        self.started: list[tuple[str, str, str]] = []

    async def get_status(self, instance: str) -> Any:
        if self.fault is not None:
            raise self.fault
        return SimpleNamespace(runtime_status=self.status)

    async def start_new(self, name: str, instance: str, given: str) -> None:
        self.started.append((name, instance, given))


@pytest.mark.asyncio
@pytest.mark.parametrize("status", [None, "Completed", "Failed", "Terminated"])
async def test_a_job_whose_orchestration_does_not_run_gets_one_under_its_own_name(status: object) -> None:
    client = Client(status)
    await drive(client, "drive_replay", JOB)
    assert client.started == [("drive_replay", f"replay-{JOB}", JOB)]


@pytest.mark.asyncio
@pytest.mark.parametrize("status", DRIVEN)
async def test_a_job_that_is_driven_is_left_alone(status: object) -> None:
    client = Client(status)
    await drive(client, "drive_replay", JOB)
    assert client.started == []


@pytest.mark.asyncio
async def test_a_client_that_fails_fails_nothing_for_the_timer_drives_the_job() -> None:
    await drive(Client(fault=OSError("no extension")), "drive_replay", JOB)
