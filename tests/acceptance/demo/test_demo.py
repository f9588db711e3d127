"""`make demo` and `make run` as a person starts them: whole processes, a real hub over AMQP, the app in its host."""

import json
import signal
from base64 import b64encode
from pathlib import Path
from urllib.request import urlopen

import pytest

from local.programs import APP
from tests.acceptance.demo.started import KEYS, Start, Started, free_port
from tests.hubledger.cli.project import Project
from tests.hubledger.cli.test_formats import LINES, SCHEMA
from tests.patience import allowed

ROOMS = APP / "tests" / "fixtures" / "rooms"
ENDLESS = ("local.demo", "--events", "1000000", "--rate", "500")


@pytest.mark.proof("event")
def test_a_small_demo_proves_that_every_event_is_accounted_for_and_keeps_its_page_which_can_be_served_again(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "run-before").mkdir()
    (tmp_path / "run-before" / "record.db").touch()
    port = free_port()
    demo = start("local.demo", "--events", "2000", "--folder", str(tmp_path), "--keep", "--port", str(port))
    demo.wait_for_line(lambda line: line.startswith("Proved: each of 2,000 events is accounted for exactly once"))
    figures = json.loads(demo.wait_for_line(lambda line: line.startswith('{"published": 2000')))
    demo.wait_for_line(lambda line: line.startswith(f"ready: http://localhost:{port}/api/ops"))
    demo.stop(signal.SIGINT)
    assert demo.wait().code == 0
    assert demo.left() == []
    assert list(figures) == KEYS
    assert figures["published"] == figures["accounted"] == 2_000
    assert figures["written"] + figures["filtered"] + figures["dead_lettered"] == 2_000
    assert figures["dead_lettered"] > 0 and figures["ledger_balanced"] is True
    letters = figures["letters"]
    assert letters["resolved"] > 0 and letters["waiting"] == 0
    assert letters["resolved"] + letters["exhausted"] == figures["dead_lettered"]
    assert figures["gaps"] == {"healed": 0, "absent": 0}
    (kept,) = tmp_path.iterdir()
    assert kept.name != "run-before", "the files of the demo before are gone"
    port = free_port()
    served = start("local.serve", "--folder", str(kept), "--port", str(port))
    served.wait_for_line(lambda line: line.startswith(f"ready: http://localhost:{port}/api/ops"))
    with urlopen(f"http://localhost:{port}/", timeout=allowed(30)) as page:
        assert (page.url, b"<title>Hubledger</title>" in page.read()) == (f"http://localhost:{port}/api/ops", True)
    served.stop(signal.SIGINT)
    assert served.wait().code == 0


@pytest.mark.soak
def test_a_demo_of_flights_with_workers_of_which_one_is_killed_proves_it_too(start: Start, tmp_path: Path) -> None:
    options = ("--transform", "flight_info", "--events", "2000", "--rate", "1000", "--folder", str(tmp_path))
    demo = start("local.demo", "--workers", "2", "--kill", "1", *options)
    figures, out = proven(demo)
    assert list(figures) == [*KEYS, "kills", "workers"]
    assert figures["published"] == figures["accounted"] == 2_000
    assert figures["written"] + figures["dead_lettered"] == 2_000
    assert figures["dead_lettered"] > 0 == figures["filtered"]
    assert (figures["kills"], figures["workers"], figures["ledger_balanced"]) == (1, 2, True)
    assert any(line.startswith("killing worker-") for line in out)


def test_a_demo_in_chaos_proves_it_too_and_has_healed_every_loss_of_the_host(start: Start, tmp_path: Path) -> None:
    options = ("--chaos", "--kill", "1", "--events", "4000", "--rate", "2000", "--folder", str(tmp_path))
    figures, out = proven(start("local.demo", *options))
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


@pytest.mark.proof("room")
def test_a_demo_of_a_room_proves_the_rows_and_letters_of_its_own_events(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOMS))
    demo = start("local.demo", "--transform", "shop", "--events", "2000", "--kill", "1", "--folder", str(tmp_path))
    figures, out = proven(demo)
    assert list(figures) == [*KEYS, "kills"]
    published = (figures["published"], figures["written"], figures["filtered"], figures["dead_lettered"])
    assert published == (2_000, 1_168, 333, 499)
    assert figures["letters"] == {"resolved": 1, "exhausted": 498, "waiting": 0}
    source = "publishing 2,000 events of tests/fixtures/rooms/shop/events.jsonl (12 lines), keyed by customerId; "
    assert any(line.startswith(source) for line in out)
    assert "letters: 166 of class unknown, exhausted: KeyError: 'lines'" in out


@pytest.mark.soak
def test_a_demo_of_a_room_whose_bodies_are_no_json_proves_its_rows_and_a_letter(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path)
    project.write("samples.jsonl", *LINES)
    project.write("7.avsc", json.dumps(SCHEMA))
    options = ("--from", "samples.jsonl", "--format", "avro", "--schema", "7.avsc", "--key", "parcelId")
    project.done("hubledger", "new", "wired", *options)
    (tmp_path / "alone").mkdir()
    room = (tmp_path / "apps" / "wired").rename(tmp_path / "alone" / "wired")
    for file in room.rglob("*.py"):  # `apps` of this project is a different one
        file.write_text(file.read_text().replace("apps.wired", "wired"))
    samples = room / "events.base64"
    samples.write_bytes(samples.read_bytes() + b64encode(b"no body of a format") + b"\n")
    monkeypatch.setenv("PYTHONPATH", str(room.parent))
    demo = start("local.demo", "--transform", "wired", "--events", "400", "--folder", str(tmp_path / "runs"))
    figures, out = proven(demo)
    assert (figures["published"], figures["written"], figures["dead_lettered"]) == (400, 300, 100)
    assert any("events.base64 (4 lines), without a key" in line for line in out)


def proven(demo: Started) -> tuple[dict, list[str]]:
    """Return the figures and the other lines of a demo that ended well and left no process."""
    ended = demo.wait()
    assert ended.code == 0, ended.err
    assert demo.left() == []
    return json.loads(ended.out[-1]), ended.out[:-1]


@pytest.mark.soak
def test_a_demo_that_is_stopped_leaves_no_process_behind(start: Start, tmp_path: Path) -> None:
    signals = (signal.SIGTERM, signal.SIGINT)
    demos = [(number, start(*ENDLESS, "--folder", str(tmp_path / number.name))) for number in signals]
    for number, demo in demos:
        demo.wait_for_line(lambda line: line.startswith("publishing"))
        assert len(demo.left()) >= 4
        demo.stop(number)
    for number, demo in demos:
        ended = demo.wait()
        assert ended.code == 128 + number
        assert f"stopped by {number.name}" in ended.err
        assert demo.left() == []


@pytest.mark.soak
def test_a_demo_whose_emulator_or_worker_dies_by_itself_says_so_and_leaves_no_process_behind(
    start: Start, tmp_path: Path
) -> None:
    without_worker = start(*ENDLESS, "--workers", "2", "--folder", str(tmp_path / "worker"))
    without_emulator = start(*ENDLESS, "--folder", str(tmp_path / "emulator"))
    for demo, module in ((without_emulator, "local.event_hubs"), (without_worker, "core.worker")):
        demo.wait_for_line(lambda line: line.startswith("publishing"))
        demo.kill_child(module)
    for demo, name in ((without_emulator, "demo: emulator"), (without_worker, "demo: worker-")):
        ended = demo.wait()
        assert ended.code == 1
        assert name in ended.err and "ended with code -9" in ended.err
        assert demo.left() == []


@pytest.mark.soak
def test_a_run_prints_its_progress_holds_its_folder_and_goes_on_from_its_state(start: Start, tmp_path: Path) -> None:
    for turn in ("first", "second"):
        options = ("local.run", "--hub-port", str(free_port()), "--port", str(free_port()), "--folder", str(tmp_path))
        run = start(*options, "--rate", "2000", "--homes", "500")
        if turn == "first":
            run.wait_for_line(lambda line: line.startswith("pages: http://localhost:"))
            ended = start("local.run", "--hub-port", str(free_port()), "--port", str(free_port()), *options[5:]).wait()
            assert (ended.code, "another run uses" in ended.err) == (1, True)
        line = run.wait_for_line(lambda line: line.startswith("published") and accounted(line) > 500)
        assert "ledger balanced" in line, turn
        run.stop(signal.SIGINT)
        ended = run.wait()
        assert (ended.code, ended.err) == (0, ""), turn
        assert run.left() == []


def accounted(line: str) -> int:
    return int(line.split("accounted ")[1].split()[0].replace(",", ""))
