"""core/settle/attempts.py: what a process had in hand is known after its death, and only then."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.model.events import PartitionId, span
from core.settle import attempts as flight
from core.settle.attempts import DEAD, LEFT, NEW, NO_SLOT, OWN, SIZE, SLOTS, WINDOW, Flight, flight_folder
from tests.fakes.mortal import MortalFlight

P, TRIED = PartitionId("3"), span(2**62, 2**62 + 499)


class Hour:
    """A clock of files that moves when told."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def survivor(tmp_path: Path) -> Iterator[Flight]:
    with closing(Flight(tmp_path / "records")) as own:
        yield own


def dead(folder: Path, *tried: tuple[PartitionId, int, int]) -> None:
    process = MortalFlight(folder / "records")
    for id, first, last in tried:
        process.begin(id, span(first, last))
    process.bury()


def test_what_a_dead_process_had_in_hand_is_suspect_and_what_it_had_ended_is_not(
    tmp_path: Path, survivor: Flight
) -> None:
    process = MortalFlight(tmp_path / "records")
    ended = process.begin(P, span(0, 9))
    process.begin(P, TRIED)
    process.begin(PartitionId("a-long-name-of-a-partition-of-forty-chars"[:40]), span(0, 0))
    process.end(ended)
    assert survivor.look() == flight.Wreckage()
    process.bury()
    found = survivor.look()
    assert (found.deaths, len(found.suspects)) == (1, 2)
    assert found.holds(P, span(2**62 + 499, 2**62 + 500))
    assert not found.holds(P, span(2**62 + 500, 2**62 + 501)) and not found.holds(P, span(0, 9))
    assert not found.holds(PartitionId("4"), TRIED)


def test_a_death_is_known_to_every_process_for_half_an_hour(tmp_path: Path) -> None:
    hour = Hour()
    with closing(Flight(tmp_path / "records", hour)) as one, closing(Flight(tmp_path / "records", hour)) as other:
        dead(tmp_path, (P, 0, 9))
        assert one.look() == other.look() and one.look().deaths == 1
        hour.now += WINDOW - 1
        dead(tmp_path, (P, 20, 29))
        assert [one.look().deaths, other.look().deaths] == [2, 2]
        hour.now += 2
        assert one.look().suspects == ((P, span(20, 29)),)
        hour.now += WINDOW
        assert one.look() == flight.Wreckage()
    assert not (tmp_path / "records").exists(), "the last one to close leaves nothing"


def test_a_process_that_ended_with_nothing_in_hand_is_no_death(tmp_path: Path, survivor: Flight) -> None:
    dead(tmp_path)
    assert survivor.look() == flight.Wreckage()
    assert len(list((tmp_path / "records").iterdir())) == 1


def test_a_real_process_that_is_killed_leaves_its_record_and_a_living_one_is_no_suspect(
    tmp_path: Path, survivor: Flight
) -> None:
    code = (
        "import sys, time; from pathlib import Path; from core.model.events import span;"
        "from core.settle.attempts import Flight;"
        f"Flight(Path({str(tmp_path / 'records')!r})).begin('3', span(5, 6)); print('up', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        assert survivor.look() == flight.Wreckage()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert survivor.look().suspects == ((P, span(5, 6)),)


def test_events_that_are_left_stay_suspects_of_the_process_itself_and_of_the_next_one(
    tmp_path: Path, survivor: Flight
) -> None:
    process = Flight(tmp_path / "records")
    for first in range(LEFT + 1):
        process.leave(process.begin(P, span(first, first)))
    assert [one.first for _, one in process.look().suspects] == list(range(1, LEFT + 1))
    assert process.look().deaths == 0
    process.close()
    process._memory.close()  # as the end of the process does
    assert survivor.look().deaths == 1 and len(survivor.look().suspects) == LEFT


def test_an_attempt_more_than_there_are_slots_is_not_noted(tmp_path: Path, survivor: Flight) -> None:
    slots = [survivor.begin(P, TRIED) for _ in range(SLOTS + 1)]
    assert len(set(slots)) == SLOTS + 1 and slots[-1] == NO_SLOT
    for slot in slots:
        survivor.end(slot)
    assert survivor.begin(P, TRIED) != NO_SLOT


@pytest.mark.parametrize("content", [b"", b"\0" * 17, b"\xff" * (SIZE + 1)])
def test_a_record_that_is_half_written_or_of_a_different_length_has_no_suspects(
    tmp_path: Path, survivor: Flight, content: bytes
) -> None:
    (tmp_path / "records" / f"other{OWN}").write_bytes(content)
    assert survivor.look() == flight.Wreckage()


def test_a_record_with_bytes_of_chance_is_read(tmp_path: Path, survivor: Flight) -> None:
    (tmp_path / "records" / f"other{OWN}").write_bytes((bytes(range(1, 241)) * 15)[:SIZE])
    assert survivor.look().deaths == 1


def test_files_of_others_stay_and_unfinished_records_go_after_a_while(tmp_path: Path) -> None:
    hour, folder = Hour(), tmp_path / "records"
    with closing(Flight(folder, hour)) as own:
        for name in (f"half{NEW}", "notes.txt"):
            (folder / name).write_text("")
            os.utime(folder / name, (hour.now, hour.now))
        own.look()
        assert (folder / f"half{NEW}").exists()
        hour.now += WINDOW
        own.look()
        assert not (folder / f"half{NEW}").exists() and (folder / "notes.txt").exists()


def test_a_record_is_in_its_folder_only_when_its_process_holds_its_lock(tmp_path: Path, survivor: Flight) -> None:
    (path,) = (tmp_path / "records").iterdir()
    with path.open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_two_readers_at_once_find_the_same_death(tmp_path: Path, survivor: Flight) -> None:
    dead(tmp_path, (P, 0, 9))
    (path,) = [one for one in (tmp_path / "records").iterdir() if one.stem != survivor._name]
    with path.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert survivor.look().deaths == 1
    assert path.with_suffix(DEAD).exists()


def test_without_a_folder_that_can_be_written_the_process_goes_on_after_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "records").write_text("a file")
    process = Flight(tmp_path / "records")
    for one in (process, Flight(None)):
        slot = one.begin(P, TRIED)
        assert slot == NO_SLOT
        one.leave(slot)
        one.end(slot)
        assert one.look() == flight.Wreckage()
        one.close()
    assert [line.getMessage() for line in caplog.records] == [
        "no flight record; an event that kills may cost one more process"
    ]


def test_a_file_that_gets_no_room_is_found_before_the_first_note(tmp_path: Path) -> None:
    """On a full disk, the first write to a page of a mapped file would end the process."""
    code = (
        "import resource, sys; from pathlib import Path; from core.settle.attempts import Flight;"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
        f"own = Flight(Path({str(tmp_path / 'records')!r})); sys.exit(own.begin('0', None) + 43)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 42, ended.stderr
    assert list((tmp_path / "records").iterdir()) == []


def test_each_stream_of_a_store_has_a_folder_in_the_temp_folder() -> None:
    one = flight_folder("sqlite:///a", "ns/hub $Default")
    assert one == flight_folder("sqlite:///a", "ns/hub $Default")
    others = {one, flight_folder("sqlite:///a", "ns/hub other"), flight_folder("sqlite:///b", "ns/hub $Default")}
    assert len(others) == 3 and len({each.parent for each in others}) == 1
    assert "sqlite" not in one.name
