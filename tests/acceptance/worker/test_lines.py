"""A worker that ends logs the sums of its batches."""

import json
import signal
import subprocess

from tests.acceptance.worker.started import DEADLINE, PARTITIONS, TIMES, Workplace, settings_of, start
from tests.patience import ended


def test_after_sigterm_the_lines_sum_to_all_events(place: Workplace) -> None:
    settings = settings_of(place.emulator.connection_string, place.engine.path)
    worker = start({**settings, "BATCH_LINES_PER_MINUTE": "1"}, *TIMES, output=subprocess.PIPE)
    place.workers.append(worker)
    place.publish(20)
    place.until_all_accounted()
    worker.send_signal(signal.SIGTERM)
    printed, errors = ended(worker, DEADLINE)
    assert (worker.returncode, errors) == (0, "")
    lines = [line for line in map(json.loads, printed.splitlines()) if line.get("action") == "ingest"]
    assert sum(line["events"] - line["redelivered"] for line in lines) == PARTITIONS * place.published
    assert "batches ingested" in {line["message"] for line in lines}
