from datetime import timedelta
from pathlib import Path

from local.functions_host.event_source import HubAddress
from local.functions_host.state_file import StateFile, TimerStatus
from tests.local.functions_host.doubles import NOON, event

ADDRESS = HubAddress("localhost", "telemetry", "cg")


def test_checkpoints_outlive_the_host(tmp_path: Path) -> None:
    first = StateFile(tmp_path / "state.db")
    first.write_checkpoint(ADDRESS, "0", event(1).position)
    first.write_checkpoint(ADDRESS, "0", event(2).position)
    first.close()
    second = StateFile(tmp_path / "state.db")
    assert second.read_checkpoint(ADDRESS, "0") == event(2).position
    assert second.read_checkpoint(ADDRESS, "1") is None
    assert second.read_checkpoint(HubAddress("localhost", "telemetry", "other"), "0") is None
    second.close()


def test_a_timer_status_is_read_as_it_was_written() -> None:
    state = StateFile(None)
    for status in (TimerStatus(None, NOON, NOON), TimerStatus(NOON, NOON + timedelta(seconds=0.5), NOON)):
        state.write_timer("tick", status)
        assert state.read_timer("tick") == status
    assert state.read_timer("tock") is None
    state.close()
