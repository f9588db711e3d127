"""Try seeds in processes. A process that dies or hangs fails its seed, and a new process continues."""

import faulthandler
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait

from tests.simulation.runner import Result, prepare

PATIENCE = 300.0  # seconds for one world; most worlds take a tenth of a second
TICK = 1.0  # seconds: the longest wait that counts at once, so that no world looks hung after the run was suspended
SPAWN = get_context("spawn")
Try = Callable[[int], Result]


class Worker:
    """A process that tries one seed after the other."""

    def __init__(self, attempt: Try) -> None:
        self.answers, calls = SPAWN.Pipe()
        self._process = SPAWN.Process(target=_serve, args=(calls, attempt), daemon=True)
        self._process.start()
        calls.close()
        self.seed = -1
        self.waited = 0.0
        self.is_ready = False
        self.is_fit = True

    def give(self, seed: int) -> None:
        """Give it a seed. When the process is dead, `take` says so."""
        self.seed, self.waited = seed, 0.0
        with suppress(OSError):
            self.answers.send(seed)

    def take(self) -> Result | None:
        """Return its answer, or a fault when the process died; None when the process says that it is ready."""
        try:
            result: Result | None = self.answers.recv()
        except (EOFError, OSError):
            self.is_fit = False
            self._process.join()
            return Result(
                self.seed, Counter(), f"the process of this world died with exit code {self._process.exitcode}"
            )
        if result is None:
            self.is_ready, self.waited = True, 0.0
        return result

    def is_overdue(self, patience: float) -> bool:
        """Return True when it has not answered within `patience`; until it is ready it has PATIENCE."""
        return self.waited >= (patience if self.is_ready else PATIENCE)

    def give_up(self) -> Result:
        """End a process that does not answer; it prints its stack first."""
        self.is_fit = False
        if self._process.pid:
            os.kill(self._process.pid, signal.SIGUSR1)
        self._process.join(TICK)
        return Result(
            self.seed, Counter(), f"this world has not ended after {self.waited:.0f} s; its process was ended"
        )

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.answers.close()


def run_all(
    seeds: Iterable[int], attempt: Try, processes: int | None = None, patience: float = PATIENCE
) -> Iterator[Result]:
    """Yield the result of each seed, in any order, from as many processes as there are cores."""
    waiting = iter(seeds)
    busy: list[Worker] = []
    try:
        for _, seed in zip(range(processes or os.cpu_count() or 1), waiting, strict=False):
            busy.append(Worker(attempt))
            busy[-1].give(seed)
        while busy:
            for worker, result in list(_answered(busy, patience)):
                busy.remove(worker)
                busy += _next(worker, waiting, attempt)
                yield result
    finally:
        for worker in busy:
            worker.end()


def _answered(busy: list[Worker], patience: float) -> Iterator[tuple[Worker, Result]]:
    began = time.monotonic()
    ready = wait([one.answers for one in busy], TICK)
    passed = min(TICK, time.monotonic() - began)
    for worker in busy:
        worker.waited += passed
        if worker.answers in ready:
            if (result := worker.take()) is not None:
                yield worker, result
        elif worker.is_overdue(patience):
            yield worker, worker.give_up()


def _next(worker: Worker, waiting: Iterator[int], attempt: Try) -> list[Worker]:
    """Give the next seed to the worker, or to a new one when this one is dead or hung."""
    seed = next(waiting, None)
    if seed is None or not worker.is_fit:
        worker.end()
    if seed is None:
        return []
    following = worker if worker.is_fit else Worker(attempt)
    following.give(seed)
    return [following]


def _serve(calls: Connection, attempt: Try) -> None:
    faulthandler.register(signal.SIGUSR1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    prepare()
    calls.send(None)
    with suppress(EOFError):
        while True:
            calls.send(attempt(calls.recv()))
