from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.started import AT_ONCE, CRASHED, KILLING, SELDOM, WAYS, App, Supervisor, working

SETTINGS = {**SELDOM, **KILLING, **AT_ONCE}


def deaths(app: App, most: int = 1) -> list[int]:
    """Run host after host until all is accounted for. Return how each that died has ended."""
    return Supervisor(lambda: app.start_host(**SETTINGS), most).until(lambda: app.accounted() == app.published)


def attempts(app: App) -> int:
    return int(app.engine.sql("SELECT COUNT(*) FROM batch_attempt")[0][0])


def test_an_event_that_ends_its_process_costs_one_host_and_its_neighbours_are_written(app: App) -> None:
    app.send("0", [b"fine"] * 61 + [b"exit"] + [b"fine"] * 38)
    app.send("1", [b"fine"] * 100)
    assert deaths(app) == [9]
    assert app.letters() == {"exit": CRASHED}
    assert [line["sequence_number"] for line in app.lines("child_died")] == [61, 61]
    app.publish(100)
    app.until_all_accounted()
    assert attempts(app) == 0


def test_eight_partitions_with_a_killer_each_cost_two_workers_and_no_host_like_azures(place: App) -> None:
    for id, way in enumerate(WAYS):
        place.send(str(id), [*[b"fine"] * 9, way, b"leave", *[b"fine"] * 9])
    place.start_host("--like-azure", **SETTINGS)
    place.until_all_accounted()
    assert len(place.lines("worker_died")) <= 2
    crashed = dict.fromkeys([way.decode() for way in WAYS], CRASHED)
    assert place.letters() == {**crashed, "leave": ("unknown", "SystemExit", "waiting")}


def test_a_hang_ends_the_host_once_and_the_line_names_its_events(app: App) -> None:
    app.send("0", [b"sleep"])
    app.send("1", [b"fine"])
    assert deaths(app) == [70]
    assert app.letters() == {"sleep": CRASHED}
    (hung,) = app.lines("hang")
    assert (hung["partition"], hung["first"]) == ("telemetry/hubledger/0", 0)


def test_a_hang_in_native_code_is_named_by_the_next_process(app: App) -> None:
    """No line of Python can be written while native code keeps its lock."""
    app.send("0", [b"fine", b"regex"])
    app.send("1", [b"fine"])
    assert deaths(app) == [1]
    assert app.lines("hang") == []
    died = [(line["partition"], line["first"], line["last"]) for line in app.lines("attempt_died")]
    assert ("telemetry/hubledger/0", 0, 1) in died
    assert [line["sequence_number"] for line in app.lines("child_died")] == [1]


def replay(app: App, dry_run: bool = False) -> None:
    counts = app.ended(app.open_task("replay", reason="a new version", dry_run=dry_run))["counts"]
    assert (counts["dead_lettered"], counts["written"]) == (len(WAYS), 18 * len(WAYS))
    assert app.letters() == ({} if dry_run else {way.decode(): CRASHED for way in WAYS})


def dry_run(app: App) -> None:
    replay(app, dry_run=True)


def redrive(app: App) -> None:
    chosen = {"move": "retry", "filter": {"status": "waiting"}, "expected_count": len(WAYS), "reason": "a new version"}
    app.open_task("redrive", **chosen)
    app.until(lambda: set(app.letters().values()) == {CRASHED})


@pytest.mark.parametrize(("order", "before"), [(dry_run, "not"), (replay, "not"), (redrive, "fails")])
def test_eight_killers_of_a_new_version_cost_two_workers_at_most_and_the_host_stays(
    place: App, order: Callable[[App], None], before: str
) -> None:
    for id, way in enumerate(WAYS):
        place.send(str(id), [*[b"fine"] * 9, way, *[b"fine"] * 9])
    quick = {"TASK_SCHEDULE": "* * * * * *", "DEAD_LETTER_LOOK_SECONDS": "0.5", "DEAD_LETTER_LEASE_SECONDS": "5"}
    place.start_host(**SETTINGS, **quick, KILLS=before)
    place.until_all_accounted()
    place.start_host("--like-azure", **SETTINGS, **quick)
    order(place)
    assert len(place.lines("worker_died")) <= 2
    assert place.host is not None and place.host.poll() is None and place.lines("host_recycled") == []
    assert attempts(place) == 0


@pytest.mark.parametrize("by_worker", [False, True], ids=["the durable keeper", "the worker"])
def test_a_letter_that_ends_its_process_is_isolated_and_costs_one_process(tmp_path: Path, by_worker: bool) -> None:
    """A deadly letter stands alone, the others are settled, and the process stays at work: it does not loop."""
    quick = {"BASE": "0.2", "CEILING": "1", "LOOK": "0.2", "LEASE": "1"}
    settings = {f"DEAD_LETTER_{name}_SECONDS": seconds for name, seconds in quick.items()}
    armed = tmp_path / "armed"
    settings |= {"TRANSFORM": "tests.fakes.killing_transform", "DEAD_LETTER_ATTEMPTS": "100", "DEADLY": str(armed)}
    with working(tmp_path) as app:

        def statuses() -> dict[int, tuple[str, str]]:
            letters = [each for each in app.engine.letters() if each.partition_id == "0"]
            return {letter.sequence_number: (letter.status, letter.error_class) for letter in letters}

        start = app.start_worker if by_worker else app.start_host
        supervisor = Supervisor(lambda: start(**AT_ONCE, **settings), most_deaths=1)
        app.send("0", [b"fine", b"late", b"late", b"deadly", b"late", b"late"])
        supervisor.until(lambda: len(statuses()) == 5)
        assert supervisor.statuses == []
        armed.touch()
        supervisor.until(lambda: statuses()[3] == ("exhausted", "crash"))
        supervisor.until(lambda: [statuses()[number][0] for number in (1, 2, 4, 5)] == ["resolved"] * 4)
        assert set(supervisor.statuses) == {9}
        armed.unlink()
        app.send("0", [b"late", b"fine"])
        supervisor.until(lambda: 6 in statuses())
        armed.touch()
        supervisor.until(lambda: statuses()[6][0] == "resolved")
        assert supervisor.statuses == [9], "the letter killed again"
        assert statuses()[3] == ("exhausted", "crash")
