from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from local.functions_host.durable.instances import (
    ActivityOrder,
    EpisodeCommit,
    EventType,
    Instance,
    NewInstance,
    Outgoing,
    Status,
    event,
)
from local.functions_host.durable.store import DurableStore
from tests.local.functions_host.doubles import NOON
from tests.local.functions_host.durable.doubles import completed, raised

NEW = NewInstance("one", "execution", "caller", "1")
TURN = [event(EventType.ORCHESTRATOR_STARTED), event(EventType.EXECUTION_STARTED, Name="caller")]
LATER = NOON + timedelta(seconds=1)
ORDER = ActivityOrder("one", "execution", 0, "work", "1")


@pytest.fixture
def store() -> Iterator[DurableStore]:
    store = DurableStore(None)
    yield store
    store.close()


def commit(**changes: object) -> EpisodeCommit:
    plain = EpisodeCommit("one", "execution", NOON, Status.RUNNING, (), events=TURN)
    return replace(plain, **changes)  # type: ignore[arg-type]


def found(store: DurableStore, instance_id: str = "one") -> Instance:
    instance = store.find(instance_id)
    assert instance is not None
    return instance


def started(store: DurableStore, **changes: object) -> EpisodeCommit:
    """An instance after its first turn."""
    store.create(NEW, NOON)
    first = commit(consumed=[each.number for each in store.read_episode("one", NOON).entries], **changes)
    assert store.commit_episode(first)
    return first


def test_a_turn_that_cannot_be_written_whole_leaves_nothing(store: DurableStore) -> None:
    store.create(NEW, NOON)
    with pytest.raises(Exception, match="UNIQUE"):
        store.commit_episode(commit(consumed=[1], activities=[ORDER, ORDER]))
    assert store.history("one") == []
    assert len(store.read_episode("one", NOON).entries) == 1


def test_a_turn_of_an_execution_that_is_gone_writes_nothing(store: DurableStore) -> None:
    started(store)
    store.purge("one")
    assert not store.commit_episode(commit(past=2))
    assert store.history("one") == []
    store.create(replace(NEW, execution_id="other"), NOON)
    assert not store.commit_episode(commit(past=2))


def test_a_result_is_delivered_once_and_its_activity_stays_due_until_it_is_written(store: DurableStore) -> None:
    started(store, activities=[ORDER])
    (due,) = store.activities_after(0, 10)
    with pytest.raises(TypeError):
        store.complete_activity(due.number, Outgoing("one", "execution", {"Result": object()}, NOON))
    assert list(store.activities_after(0, 10)) == [due]
    result = Outgoing("one", "execution", completed(0), NOON)
    assert store.complete_activity(due.number, result)
    assert not store.complete_activity(due.number, result)
    assert len(store.read_episode("one", NOON).entries) == 1


def test_entries_come_by_the_time_they_are_due_then_as_they_came(store: DurableStore) -> None:
    for name, due_at in (("c", LATER), ("a", NOON), ("b", NOON)):
        store.send(Outgoing("one", None, raised(name), due_at))
    assert [each.event["Name"] for each in store.read_episode("one", LATER).entries] == ["a", "b", "c"]
