"""Game days of the alarms about delivery: events that wait, events that left the hub, and an app that is down."""

import subprocess
import signal
from datetime import timedelta

import pytest

from tests.acceptance.game_days.day import Day
from tests.acceptance.gaps.apps import HUB
from tests.acceptance.worker.started import TIMES, start

pytestmark = pytest.mark.slow

WRITING_OFF = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("ingest", "heal_gaps")}


def test_events_that_left_the_hub_are_replayed_from_capture(day: Day) -> None:
    day.start()
    day.app.publish(30)
    day.until_quiet()
    day.app.end_host()
    day.app.publish(30)
    day.app.emulator.expire_before(HUB, "0", 45)
    day.start()
    day.until_it_fires("events-absent")
    day.until_quiet()


def test_a_partition_that_nobody_reads_is_read_again_once_its_functions_are_switched_on(day: Day) -> None:
    day.start(**WRITING_OFF)
    day.clock.behind = timedelta(minutes=10)
    day.publish("0", *[b"reading home"] * 20)
    day.clock.behind = timedelta(0)
    day.until_it_fires("partition-stopped")


def test_events_that_wait_for_a_frozen_worker_are_written_once_it_is_started_again(day: Day) -> None:
    day.limits["lag_seconds"] = 1
    day.start(**WRITING_OFF)
    settings = {**day.app.settings(), **day.settings}
    with start(settings, *TIMES, output=subprocess.DEVNULL) as worker:
        day.app.publish(20)
        day.until_quiet()
        worker.send_signal(signal.SIGSTOP)
        day.clock.behind = timedelta(minutes=2)
        day.app.publish(20)
        day.clock.behind = timedelta(0)
        day.until_it_fires("lag")
        worker.kill()


def test_an_app_that_is_down_is_started_again_and_has_lost_nothing(day: Day) -> None:
    day.start()
    day.app.publish(20)
    day.until_quiet()
    day.app.end_host()
    day.app.publish(20)
    day.until_it_fires("watch-silent")
