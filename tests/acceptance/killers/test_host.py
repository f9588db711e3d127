"""Events that kill the local host, which is started again each time: they become letters, and all else is written."""

from pathlib import Path

from tests.acceptance.gaps.apps import SELDOM, STREAM, App, working
from tests.acceptance.killers.supervised import CRASHED, SETTINGS, WAYS, Supervisor, accounted, letters, start_host

AT_ONCE = {"AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1"}


class Hosts:
    """Host after host of an app, each without a wait for more events than there are."""

    def __init__(self, app: App, most_deaths: int) -> None:
        self._app = app
        self._supervisor = Supervisor(lambda: start_host(app, **SELDOM, **SETTINGS, **AT_ONCE), most_deaths)

    def deaths(self) -> list[int]:
        """Run until all is accounted for; return how each host ended that has died meanwhile."""
        before = len(self._supervisor.statuses)
        return self._supervisor.until(lambda: accounted(self._app.engine, STREAM) == self._app.published)[before:]


def test_an_event_that_ends_its_process_costs_one_host_and_its_neighbours_are_written(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.send("0", [b"fine"] * 61 + [b"exit"] + [b"fine"] * 38)
        app.send("1", [b"fine"] * 100)
        assert Hosts(app, 1).deaths() == [9]
        assert letters(app.engine) == {"exit": CRASHED}
        (first, second) = app.lines("child_died")
        assert first["sequence_number"] == second["sequence_number"] == 61
        assert {line["partition"] for line in app.lines("attempt_died")} <= {
            "telemetry/hubledger/0", "telemetry/hubledger/1",
        }  # fmt: skip
        app.publish(100)
        app.until_all_accounted()
        assert app.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]


def test_eight_partitions_with_a_killer_each_cost_two_workers_and_no_host_like_azures(tmp_path: Path) -> None:
    with working(tmp_path, len(WAYS)) as app:
        for id, way in enumerate(WAYS):
            app.send(str(id), [*[b"fine"] * 9, way, b"leave", *[b"fine"] * 9])
        app.start_host("--like-azure", **SELDOM, **SETTINGS, **AT_ONCE)
        app.until(lambda: accounted(app.engine, STREAM) == app.published)
        assert len(app.lines("worker_died")) <= 2
        crashed = dict.fromkeys([way.decode() for way in WAYS], CRASHED)
        assert letters(app.engine) == {**crashed, "leave": ("unknown", "SystemExit", "waiting")}


def test_a_hang_ends_the_host_once_and_the_line_names_its_events(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.send("0", [b"sleep"])
        app.send("1", [b"fine"])
        assert Hosts(app, 1).deaths() == [70]
        assert letters(app.engine) == {"sleep": CRASHED}
        (hung,) = app.lines("hang")
        assert (hung["partition"], hung["first"]) == ("telemetry/hubledger/0", 0)


def test_a_hang_in_native_code_is_named_by_the_next_process(tmp_path: Path) -> None:
    """No line of Python can be written while native code keeps its lock."""
    with working(tmp_path) as app:
        app.send("0", [b"fine", b"regex"])
        app.send("1", [b"fine"])
        assert Hosts(app, 1).deaths() == [1]
        assert app.lines("hang") == []
        assert ("telemetry/hubledger/0", 0, 1) in [
            (line["partition"], line["first"], line["last"]) for line in app.lines("attempt_died")
        ]
        assert [line["sequence_number"] for line in app.lines("child_died")] == [1]
