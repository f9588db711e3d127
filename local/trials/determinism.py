"""Determinism: an event has one outcome, in any order, in any process, at any time and in any place."""

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

from core.model.events import Event
from core.model.rows import Row
from local.trials.outcomes import Given, event_of, outcome_of, shown, transform_of

# Processes with different hashes of texts. Their zones are 25 hours apart, so that they never have the same date.
PLACES = (("1", "<+14>-14"), ("2", "<-11>11"), ("3", "UTC0"))
PROGRAM = "from local.trials.determinism import answer; answer()"
TIMEOUT = 60.0  # seconds


def check_deterministic(transform: Given, events: Iterable[object], *, references: Iterable[Row] = ()) -> None:
    """Assert that each event has the same outcome a second time, after the later events, and in three new processes.

    The processes differ in the hashes of texts and in the time zone, and run a second later. `events` are bodies or
    events, and each is alone.
    """
    known, given = tuple(references), [event_of(each, number=at) for at, each in enumerate(events)]
    if not given:
        raise AssertionError("a check of determinism needs at least one event")
    at_first, later = outcomes(transform, given, known), time.time() + 1
    _compare(given, at_first, outcomes(transform, given, known), "a second time")
    backwards = outcomes(transform, given[::-1], known)[::-1]
    _compare(given, at_first, backwards, "after the later events")
    call = pickle.dumps((_name_of(transform), given, known, later))
    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(lambda place: _answer_in(place[0], place[1], call), PLACES))
    for (seed, zone), found in zip(PLACES, answers, strict=True):
        _compare(given, at_first, found, f"in a process with PYTHONHASHSEED={seed} TZ={zone}")


def outcomes(transform: Given, events: Iterable[Event], known: Sequence[Row]) -> list[str]:
    """Return the outcome of each event alone, as a text."""
    loaded = transform_of(transform)
    return [str(outcome_of(loaded, event, known)) for event in events]


def answer() -> None:
    """Answer the call on stdin with the outcomes as JSON on stdout."""
    stdout, sys.stdout = sys.stdout, sys.stderr
    name, events, known, later = pickle.loads(sys.stdin.buffer.read())
    time.sleep(max(0.0, later - time.time()))  # a clock that is cut to seconds has gone on
    print(json.dumps(outcomes(name, events, known)), file=stdout)


def _compare(events: Sequence[Event], first: list[str], second: list[str], when: str) -> None:
    for event, one, other in zip(events, first, second, strict=True):
        if one != other:
            raise AssertionError(f"{shown(event.body)} has two outcomes:\n  at first: {one}\n  {when}: {other}")


def _name_of(given: Given) -> str:
    if isinstance(given, ModuleType):
        return given.__name__
    return given if isinstance(given, str) else given.rows_of.__module__


def _answer_in(seed: str, zone: str, call: bytes) -> list[str]:
    path = os.pathsep.join(filter(None, sys.path))
    own = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "PYTHONPATH": path}
    started = [sys.executable, "-c", PROGRAM]
    try:
        done = subprocess.run(started, input=call, env=own, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"the transform does not end in a new process within {TIMEOUT:.0f} s") from None
    if done.returncode:
        raise AssertionError(
            f"the transform does not run in a new process: {done.stderr.decode(errors='replace').strip()}"
        )
    found: list[str] = json.loads(done.stdout)
    return found
