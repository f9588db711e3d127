"""`python -m bench.size.ingester STORE PROCESS BATCHES`: one of several processes that write into one store."""

import json
import subprocess
import sys
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

from bench.size.batches import partition, ready_batch, ready_means
from core.ingest.ingest import ingest_batch
from core.model.events import EventBatch

PARTITIONS = 4  # of each process


@dataclass(frozen=True, slots=True)
class Share:
    """Batches per second of all processes together; seconds of a batch, of the processor and of the clock."""

    rate: float
    cpu: float
    clock: float


def ingest_side_by_side(store: Path, processes: int, batches: int) -> Share:
    """Start processes, let them ingest at the same time, and return what it took; each ingests all its batches."""
    with ExitStack() as opened:
        running = [opened.enter_context(_started(store, number, batches // processes)) for number in range(processes)]
        for process in running:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("an ingester did not start")
        began = perf_counter()
        for process in running:
            if process.stdin is not None:
                process.stdin.write("go\n")
                process.stdin.flush()
        found = [json.loads(process.stdout.readline()) for process in running if process.stdout is not None]
        seconds = perf_counter() - began
    done = batches // processes * processes
    return Share(done / seconds, sum(cpu for cpu, _ in found) / done, sum(clock for _, clock in found) / done)


def _started(store: Path, number: int, batches: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "bench.size.ingester", str(store), str(number), str(batches)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def main(store: str, process: str, batches: str) -> None:
    """Open the partitions, wait for a line, ingest, and print seconds: of the processor, and of the clock."""
    means, database = ready_means(Path(store))
    with closing(database):
        rounds = -(-int(batches) // PARTITIONS) + 1
        own = [_batch(int(process), turn) for turn in range(PARTITIONS * rounds)]
        for batch in own[:PARTITIONS]:
            ingest_batch(batch, means)
        print("ready", flush=True)
        sys.stdin.readline()
        cpu, clock = process_time(), perf_counter()
        for batch in own[PARTITIONS : PARTITIONS + int(batches)]:
            ingest_batch(batch, means)
        print(json.dumps([process_time() - cpu, perf_counter() - clock]), flush=True)


def _batch(process: int, turn: int) -> EventBatch:
    return ready_batch(partition(process * PARTITIONS + turn % PARTITIONS), turn // PARTITIONS)


if __name__ == "__main__":
    main(*sys.argv[1:])
