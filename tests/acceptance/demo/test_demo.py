import json
import os
import re
import signal
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

from local.demo.aggregation import SUBMIT
from local.event_hubs import Emulator, HubSettings
from local.feed.record import published_copies
from local.functions_host.supervisor import free_port
from local.programs import APP
from tests.acceptance.started import HUB, Process, line_of, start
from tests.patience import allowed, ended, until
from tests.spark.here import environment, lacking

DEADLINE = 300.0  # seconds of an idle machine, where a demo with chaos takes 30 to 60
SPARK_DEADLINE = 900.0  # Spark starts four times or more
ENDLESS = ("--events", "1000000", "--rate", "500")
KEYS = ["published", "accounted", "written", "filtered", "dead_lettered", "letters", "gaps", "redelivered_dropped"]
KEYS += ["ledger_balanced", "seconds", "events_per_second"]
MARK = "HUBLEDGER_TEST"  # in the environment of a command and of all that it starts

Begin = Callable[..., Process]


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Start commands, and end those that still run after the test."""
    monkeypatch.setenv(MARK, str(uuid.uuid4()))
    begun: list[Process] = []

    def starting(*words: str) -> Process:
        patient = ("--patience", str(round(allowed(60)))) if words[0] == "local.demo" else ()
        begun.append(start(*words, *patient))
        return begun[-1]

    yield starting
    for each in begun:
        each.terminate()
        ended(each, DEADLINE)


def left() -> list[int]:
    """Return the processes that still run of all that the test has started."""
    mark, found = f"{MARK}={os.environ[MARK]}".encode(), []
    for entry in Path("/proc").iterdir():
        try:
            is_own = entry.name.isdigit() and int(entry.name) != os.getpid()
            found += [int(entry.name)] if is_own and mark in (entry / "environ").read_bytes() else []
        except OSError:
            continue
    return found


def proven(demo: Process, deadline: float = DEADLINE) -> tuple[dict, list[str]]:
    out, errors = ended(demo, deadline)
    assert demo.returncode == 0, errors
    assert left() == []
    lines = out.splitlines()
    return json.loads(lines[-1]), lines[:-1]


def stopped(process: Process, number: int = signal.SIGINT) -> str:
    """Stop a command that runs until Ctrl-C, and return its complaints."""
    process.send_signal(number)
    _, errors = ended(process, DEADLINE)
    assert left() == []
    return str(errors)


def port() -> str:
    return str(free_port(0))


def ready_at(served: Process) -> str:
    return re.findall(r"^ready: (http://localhost:\d+)/api/ops", line_of(served, "ready: ", deadline=DEADLINE))[0]


@pytest.mark.proof("event")
def test_a_small_demo_proves_that_every_event_is_accounted_for_and_keeps_its_page(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "run-before").mkdir()
    (tmp_path / "run-before" / "record.db").touch()
    demo = begin("local.demo", "--events", "2000", "--kill", "1", "--folder", str(tmp_path), "--keep", "--port", port())
    link = line_of(demo, "publishing 2,000 events", deadline=DEADLINE).split()[-1]
    line_of(demo, "Proved: each of 2,000 events is accounted for exactly once", deadline=DEADLINE)
    figures = json.loads(line_of(demo, '{"published": 2000', deadline=DEADLINE))
    assert link == f"{ready_at(demo)}/api/ops", "the same through a restart and at the end"
    stopped(demo)
    assert demo.returncode == 0
    assert list(figures) == [*KEYS, "kills"]
    assert figures["published"] == figures["accounted"] == 2_000
    assert figures["written"] + figures["filtered"] + figures["dead_lettered"] == 2_000
    assert figures["dead_lettered"] > 0 and figures["ledger_balanced"] is True
    letters = figures["letters"]
    assert letters["resolved"] > 0 and letters["waiting"] == 0
    assert letters["resolved"] + letters["exhausted"] == figures["dead_lettered"]
    assert figures["gaps"] == {"healed": 0, "absent": 0}
    (kept,) = tmp_path.iterdir()
    assert kept.name != "run-before", "the files of the demo before are gone"
    served = begin("local.serve", "--folder", str(kept), "--port", port())
    address = ready_at(served)
    with urlopen(f"{address}/", timeout=allowed(30)) as page:
        assert (page.url, b"<title>Hubledger</title>" in page.read()) == (f"{address}/api/ops", True)
    stopped(served)
    assert served.returncode == 0


def test_a_demo_in_chaos_proves_it_too_and_has_healed_every_loss_of_the_host(begin: Begin, tmp_path: Path) -> None:
    options = ("--chaos", "--kill", "1", "--events", "4000", "--rate", "2000", "--folder", str(tmp_path))
    figures, out = proven(begin("local.demo", *options))
    assert list(figures) == [*KEYS, "kills", "chaos", "undeliverable", "crashes_isolated", "incarnations", "held"]
    assert figures["published"] == figures["accounted"] >= 4_000
    assert (figures["crashes_isolated"], figures["incarnations"]) == (1, 2)
    assert figures["held"] > 0 and figures["gaps"]["healed"] > 0 == figures["gaps"]["absent"]
    # none when the first process that reads the event is careful, because the demo has killed the one before
    assert sum("has killed the functions host" in line for line in out) <= 2
    # A process that is killed before the first batch of a partition takes the request to skip that batch with it.
    assert figures["chaos"].pop("skipped_batches") > 0
    assert (figures["kills"], figures["chaos"]) == (1, {"cuts": 2, "locks": 1})
    said = ("killing the functions host", "skipping: the host loses", "cutting every", "locking the store")
    missing = [one for one in (*said, "opened incarnation 2") if not any(line.startswith(one) for line in out)]
    assert missing == []


def test_a_demo_of_an_iot_hub_replays_and_forgets_by_device(begin: Begin, tmp_path: Path) -> None:
    figures, out = proven(begin("local.demo", "--iot", "--events", "1500", "--folder", str(tmp_path)))
    assert list(figures) == [*KEYS, "kills", "iot"]
    assert (figures["published"], figures["accounted"], figures["kills"]) == (1_500, 1_500, 1)
    kills = sum(line.startswith("killing the functions host") for line in out)
    found = figures["iot"]
    assert (kills, found["devices_replayed"]) == (2, 5), "one kill while events arrive, one while devices are replayed"
    assert min(found.values()) > 0
    (store,) = tmp_path.glob("*/hubledger.db")
    with closing(sqlite3.connect(store)) as connection:
        assert set(connection.execute("SELECT event_key FROM event_stream")) == {
            ("system:iothub-connection-device-id",)
        }


@pytest.mark.proof("room")
def test_a_demo_of_a_room_proves_the_rows(begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(APP / "tests" / "fixtures" / "rooms"))
    options = ("--transform", "shop", "--events", "2000", "--kill", "1", "--folder", str(tmp_path))
    figures, out = proven(begin("local.demo", *options))
    assert list(figures) == [*KEYS, "kills"]
    published = (figures["published"], figures["written"], figures["filtered"], figures["dead_lettered"])
    assert published == (2_000, 1_168, 333, 499)
    assert figures["letters"] == {"resolved": 1, "exhausted": 498, "waiting": 0}
    source = "publishing 2,000 events of tests/fixtures/rooms/shop/events.jsonl (12 lines), keyed by customerId; "
    assert any(line.startswith(source) for line in out)
    assert "letters: 166 of class unknown, exhausted: KeyError: 'lines'" in out
    # A room whose samples are envelopes: all that an IoT Hub adds to an event is published, and read by the transform.
    figures, _ = proven(begin("local.demo", "--transform", "devices", "--events", "300", "--folder", str(tmp_path)))
    assert [figures[name] for name in ("published", "written", "filtered", "dead_lettered")] == [300, 150, 50, 100]


@pytest.mark.soak
def test_a_demo_with_workers_that_is_stopped_or_whose_worker_dies_leaves_none(begin: Begin, tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        demo = begin("local.demo", *ENDLESS, "--folder", str(tmp_path / number.name))
        line_of(demo, "publishing", deadline=DEADLINE)
        assert len(left()) >= 4
        assert f"stopped by {number.name}" in stopped(demo, number)
        assert demo.returncode == 128 + number
    demo = begin("local.demo", *ENDLESS, "--workers", "2", "--folder", str(tmp_path / "worker"))
    line_of(demo, "publishing", deadline=DEADLINE)
    os.kill(next(pid for pid in left() if b"core.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()), signal.SIGKILL)
    _, errors = ended(demo, DEADLINE)
    assert (demo.returncode, left()) == (1, [])
    assert "demo: worker-" in errors and "ended with code -9" in errors


@pytest.mark.soak
def test_a_run_prints_its_progress_holds_its_folder_and_goes_on_from_its_state(begin: Begin, tmp_path: Path) -> None:
    def accounted(line: str) -> bool:
        return int(line.split("accounted ")[1].split()[0].replace(",", "")) > 500

    options = ("--folder", str(tmp_path), "--rate", "2000", "--homes", "500")
    for turn in ("first", "second"):
        run = begin("local.run", "--hub-port", port(), "--port", port(), *options)
        if turn == "first":
            line_of(run, "pages: http://localhost:", deadline=DEADLINE)
            other = begin("local.run", "--hub-port", port(), "--port", port(), *options)
            _, errors = ended(other, DEADLINE)
            assert (other.returncode, "another run uses" in errors) == (1, True)
        assert "ledger balanced" in line_of(run, "published", accounted, DEADLINE), turn
        assert stopped(run) == "", turn
        assert run.returncode == 0


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator([HubSettings(HUB, 4, ("hubledger",))]).running() as hub:
        yield hub


def feed(emulator: Emulator, *options: str) -> Process:
    return start("local.feed", "--connection", emulator.connection_string, "--homes", "100", *options)


def figures_of(process: Process) -> dict:
    out, errors = ended(process, DEADLINE)
    assert (process.returncode, errors) == (0, "")
    return dict(json.loads(out.splitlines()[-1]))


def in_hub(emulator: Emulator) -> int:
    return sum(end + 1 for end in emulator.end_of(HUB).values())


def test_lost_connections_leave_a_record_of_certain_and_doubtful_copies(emulator: Emulator, tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    feeding = feed(emulator, "--record", str(path), "--events", "4000", "--rate", "2000")
    line_of(feeding, "feed ready for telemetry")
    for wanted in (500, 1_500, 2_500):
        until(lambda: in_hub(emulator) >= wanted, DEADLINE)  # noqa: B023
        emulator.drop_connections()
    last, copies = figures_of(feeding), published_copies(path)
    assert copies.at_least == 4_000
    assert copies.at_most > 4_000, "three lost connections left no doubt"
    assert last["doubtful_sends"] > 0
    assert copies.at_least <= in_hub(emulator) <= copies.at_most
    missing = feed(emulator, "--hub", "missing")
    _, errors = ended(missing, DEADLINE)
    assert (missing.returncode, errors[:6], len(errors.splitlines())) == (1, "feed: ", 1)


WHY = lacking() or (None if SUBMIT.exists() else f"{SUBMIT} is missing")
of_spark = pytest.mark.skipif(WHY is not None, reason=f"the demo cannot aggregate: {WHY}")


@pytest.mark.soak
@of_spark
def test_a_demo_that_aggregates_proves_it(begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():  # the jobs plan and compile as those of the other tests: half the time
        monkeypatch.setenv(name, value)
    options = ("--events", "3000", "--kill", "1", "--aggregate", "--folder", str(tmp_path))
    figures, out = proven(begin("local.demo", *options), SPARK_DEADLINE)
    assert (figures["kills"], figures["published"], figures["accounted"]) == (1, 3_000, 3_000)
    aggregate, aggregation = figures["aggregate"], figures["aggregation"]
    assert (aggregate["name"], aggregate["equals_recount"]) == ("home_activity", True)
    assert 2_000 < aggregate["rows"] < 3_000 and 0 < aggregation["windows"] <= aggregate["rows"]
    assert aggregation["runs"] >= 3 and aggregation["replays"] == 1 and aggregation["killed"] >= 1
    assert any(f"aggregating: run {aggregation['runs']}, attempt " in line for line in out)
    assert any(line.startswith("killing Spark, process ") for line in out)
    (replayed,) = [line for line in out if line.startswith("replayed ")]
    assert re.fullmatch(r"replayed [\d,]+ events: [1-9][\d,]* rows were replaced", replayed)
    (line,) = [line for line in out if line.startswith("a home's page: ")]
    assert figures["home_page"] in line
    (folder,) = re.findall(r"make serve FOLDER=(\S+?)`", line)
    assert Path(folder).parent == tmp_path
    serve = begin("local.serve", "--folder", folder, "--port", port())
    served = ready_at(serve)

    def got(place: str) -> str:
        with urlopen(place, timeout=allowed(60)) as answer:
            return str(answer.read().decode())

    page = figures["home_page"].replace("http://localhost:7071", served)
    assert "<title>" in got(page)
    assert sum(one["readings"] for one in json.loads(got(f"{page}/activity"))["day"]["kinds"]) > 0
    books = json.loads(got(f"{served}/api/status"))
    assert (books["accounted"], books["ledger_balanced"]) == (3_000, True)
    runs = json.loads(got(f"{served}/api/aggregations"))
    assert (runs["cut"], len(runs["runs"])) == (runs["reached"], aggregation["runs"])
    stopped(serve)
    assert serve.returncode == 0
    demo = begin("local.demo", *ENDLESS, "--aggregate", "--folder", str(tmp_path / "next"))
    line_of(demo, "publishing", deadline=DEADLINE)
    until(lambda: any((tmp_path / "next").glob("run-*/spark/*/group")), DEADLINE)
    demo.send_signal(signal.SIGTERM)
    ended(demo, DEADLINE)
    assert demo.returncode == 128 + signal.SIGTERM
    until(lambda: left() == [], DEADLINE)
