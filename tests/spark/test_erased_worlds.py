"""Erasures in random worlds with Spark and a lake. The oracle reads all of the database, the lake and the log.

A world is drawn from a seed. A replaced file of the lake may have the subject for seven days, and the log of a table
for thirty. Nothing else may, and after that time nothing at all.
"""

import json
import logging
import os
import random
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from core.aggregation.lake_upkeep import maintain_job
from core.aggregation.orders import Pipelines
from core.aggregation.runs import Order
from core.audit.audit import verify_partition
from core.erasure.task import ErasedRows, erase_rows, erase_windows
from core.errors import ErasureWaits
from core.incarnations.next_incarnation import IncarnationMeans, IncarnationOrder, Incarnations, next_incarnation
from core.ingest.ingest import ingest_batch
from core.model.policies import DEFAULT_DAYS
from core.purge.purge import purge_request
from core.purge.store import Purges
from core.purge.task import PurgeKind
from core.settle.partition_store import Partitions
from core.tasks.run import open_parts, open_task, work_on
from core.tasks.statuses import TaskMove
from core.tasks.task import TaskOrder
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.fakes.builders import STREAM, batch, partition
from tests.fakes.erasing import KEY, ErasingWorld
from tests.spark.readings import NOON
from tests.spark.stream import HOMES, Stream, as_they_are, fewer, gas_event, moved, refusing, registered, twice
from tests.spark.test_damage import emptied, garbled, remake, rows_in_lake, rows_in_sql
from tests.spark.test_erasure import JOB, a_day_later, settle
from tests.spark.world import Fate, World

WITH_LAKE = True
GONE, OTHERS = "ho'me&7", ("home-1", "home-2")
FORMS = {  # the spellings in which a text may have the subject
    one.encode()
    for text in (GONE, escape(GONE), quote(GONE, safe=""), GONE.replace("&", "\\u0026"))
    for one in (text, json.dumps(text)[1:-1])
}
MENDED = (as_they_are, moved, fewer, twice, refusing, a_day_later)
FATES = (Fate.KILLED_BEFORE, Fate.KILLED_DURING, Fate.KILLED_AFTER, Fate.LOST, Fate.TWICE, Fate.UNANSWERED)
FILES_KEPT, LOG_KEPT = timedelta(days=7), timedelta(days=30)  # of the promise in docs/erasure.md


@dataclass
class Own(ErasingWorld):
    """Erasures that reach the windows and the lake of a world, as the app's do with an engine or without one."""

    beside: World = None  # type: ignore[assignment]
    has_engine: bool = True

    def _erase_lake(self, erased: ErasedRows) -> tuple[str, ...]:
        own = self.beside.own
        if self.has_engine:
            return erase_rows(erased, own, Pipelines(self.store.database))
        return erase_windows(erased, self.aggregates, own.store, own.lake)


class History(logging.Handler):
    """A world that a seed decides, with all lines of its log."""

    def __init__(self, seed: int, world: World, folder: Path) -> None:
        super().__init__()
        self.seed, self.chance, self.world, self.folder = seed, random.Random(seed), world, folder
        world.own = replace(world.own, jobs=(HOME_ACTIVITY, JOB))
        self.stream = Stream(world)
        self.own = self.stream.replays = Own(world.store, {}, HOMES, world.clock, beside=world)
        self.lines: list[str] = []
        self.did: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {record.__dict__}")

    def run(self) -> None:
        """Begin, let every kind of act happen in an order that the seed decides, and end."""
        own = [self.take, self.replay, self.tick, self.killed, self.damage] * 2
        own += [self.retry, self.purge, self.succeed, self.cancelled, self.erase, self.maintain]
        self.chance.shuffle(own)
        log = logging.getLogger("hubledger")
        log.addHandler(self)
        try:
            self.stream.take(*map(registered, (GONE, *OTHERS)), of=self._partition())
            for act in [self.take, self.tick, *own, self.end]:
                self.did.append(act.__name__)
                act()
        except BaseException as fault:
            fault.add_note(" ".join(self.did))
            raise
        finally:
            log.removeHandler(self)

    def _partition(self) -> str:
        return self.chance.choice("01")

    def take(self) -> None:
        """Publish and take events, some of them poison that mentions the subject."""
        chance, bodies = self.chance, []
        for _ in range(chance.randint(1, 6)):
            at = NOON + timedelta(days=chance.randint(-2, 2), minutes=chance.randint(0, 99))
            bodies.append(gas_event(chance.choice([GONE, GONE, *OTHERS]), chance.randint(1, 99), at))
        bodies += [f'{{"kind": "?", "who": "{chance.choice(sorted(FORMS)).decode()}"}}'] * chance.randint(0, 1)
        self.stream.take(*bodies, of=self._partition())

    def retry(self) -> None:
        self.stream.retry()

    def replay(self) -> None:
        self.stream.deploy(self.chance.choice(MENDED), f"test/{len(self.did)}")
        self.own.replay()

    def tick(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.world.tick(job=self.chance.choice([HOME_ACTIVITY, JOB]))

    def killed(self) -> None:
        self.world.engine.fates = [self.chance.choice(FATES)]
        self.tick()
        self.world.engine.fates = []

    def maintain(self) -> None:
        for job in self.world.own.jobs:
            maintain_job(self.world.own, job)

    def damage(self) -> None:
        """Damage a table of the lake, and have it made anew, now or after some runs."""
        tables = sorted({one.parents[1] for one in self.folder.rglob("_delta_log/*.json")})
        if not tables:
            return
        place = self.chance.choice(tables)
        entry = self.chance.choice(sorted((place / "_delta_log").glob("*.json")))
        harms: list[tuple[Callable[[Any], object], Path]] = [(shutil.rmtree, place), (garbled, entry), (emptied, entry)]
        files = map(Path, DeltaTable(str(place)).file_uris()[:1])
        harms += [(harm, path) for path in files for harm in (garbled, Path.unlink)]
        harm, path = self.chance.choice(harms)
        harm(path)
        if self.chance.random() < 0.5:
            self.tick()
        remake(self.world, place.relative_to(self.folder).as_posix(), accepts_loss=True)

    def purge(self) -> None:
        own, purges = self.own, Purges(self.own.stream)
        asked = TaskOrder(own.own.new_id(), own.stream.find() or 0, "ann", "room", own.own.now())
        request = purge_request(asked, dict.fromkeys(DEFAULT_DAYS, 0), purges.read_purge_partitions(), is_dry_run=False)
        kind = PurgeKind(purges, partial(verify_partition, own.audits, own.own), self.world.own.jobs, own.own)
        task = open_task(request, kind.tasks)
        while open_parts(task.task_id, kind):
            work_on(task.task_id, None, kind, own.own.now() + timedelta(hours=9))

    def succeed(self) -> None:
        """Open the next incarnation over the same hub, and take all of its events again."""
        own = self.own
        store = Incarnations(own.store.database, Partitions(own.store.database, key=KEY))
        asked = IncarnationOrder("ann", "again", store.partitions.read_incarnation(STREAM).number, is_dry_run=False)
        next_incarnation(replace(asked, is_forced=True), IncarnationMeans(STREAM, store, own.hub, own.own))
        for id, held in own.hub.held.items():
            ingest_batch(batch(held.values(), partition(id)), own.ingesting)

    def without_engine(self) -> None:
        """Erase without an engine. Then set it again."""
        self.own.has_engine = False
        acts = [self.take, self.replay, self.purge, self.succeed, self.cancelled, self.erase]
        for act in [*self.chance.sample(acts, 2), self.erase]:
            self.did.append(act.__name__)
            act()
        self.own.has_engine = True
        settle(self.world)

    def cancelled(self) -> None:
        """Erase a piece, and cancel the erasure."""
        own = self.own
        task = own.ask_erasure(GONE)
        work_on(task.task_id, None, own.erasing, own.clock.now() - timedelta(seconds=1))
        own.erasing.tasks.move(TaskMove(task.task_id, "cancel", "officer", "a mistake", own.own.now()))
        own.erasing.over(task.task_id)
        own.clock.advance(60)

    def erase(self) -> None:
        """Erase the subject, while the pipeline goes on."""
        task = self.own.ask_erasure(GONE)
        for _ in range(99):
            with suppress(ErasureWaits):
                task = self.own.drive(task)
                break
            for job in self.world.own.jobs:
                if self.own.has_engine:
                    self.world.tick(job=job)
                elif (run := self.world.store.read_standing(job).open_run) is not None:
                    asked = Order(job, "discard_run", "ann", "no engine", self.own.own.now(), run.run_id)
                    Pipelines(self.world.store.database).discard_run(asked, run, None)
        assert (task.status, task.fault) == ("done", None)

    def end(self) -> None:
        """Erase for good, in odd worlds without an engine. Then take everything again, replay, rebuild, and search."""
        (self.without_engine if self.seed % 2 else self.erase)()
        self.succeed()
        self.replay()
        settle(self.world)
        self.world.prove_by_rebuild()
        assert rows_in_lake(self.folder) == rows_in_sql(self.world)
        assert self.own.faults() == []
        self.check()

    def check(self) -> None:
        """Search the database, the log and the lake, now and after a month."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as copied:
            self.world.sqlite.copy_to(copied)
            copied.execute("VACUUM")
            assert not found_in(copied.serialize())
        assert not found_in("\n".join(self.lines).encode())
        live = set()
        for log in self.folder.rglob("_delta_log"):
            table = DeltaTable(str(log.parent))
            live |= set(map(Path, table.file_uris()))
            ends = pa.table(table.get_add_actions(flatten=True)).to_pylist()
            assert not found_in(json.dumps(ends, default=str).encode()), log
        assert live.isdisjoint(self.kept())
        self.maintain_after(FILES_KEPT + timedelta(days=1))
        assert [str(one) for one in self.kept() if one.parent.name != "_delta_log"] == []
        self.maintain_after(LOG_KEPT + timedelta(days=1))
        assert [str(one) for one in self.kept()] == []

    def maintain_after(self, passed: timedelta) -> None:
        """Move the files of the lake, and the times in its logs, into the past. Then maintain its tables."""
        then = int(time.time() - passed.total_seconds())
        for path in filter(Path.is_file, self.folder.rglob("*")):
            if path.match("_delta_log/*.json"):
                path.write_text(re.sub(r'("deletionTimestamp":)\d+', rf"\g<1>{then}000", path.read_text()))
            elif path.match("_delta_log/*.parquet"):
                found = pq.read_table(path)
                actions = found.to_pylist()
                for one in filter(None, (action["remove"] for action in actions)):
                    one["deletionTimestamp"] = then * 1000
                pq.write_table(pa.Table.from_pylist(actions, found.schema), path)
            os.utime(path, (then, then))
        self.maintain()

    def kept(self) -> Iterator[Path]:
        """Yield the files of the lake that have the subject."""
        for path in filter(Path.is_file, self.folder.rglob("*")):
            content = path.read_bytes()
            with suppress(pa.ArrowInvalid):  # no Parquet, or damaged
                content += json.dumps(pq.ParquetFile(path).read().to_pylist(), default=str).encode()
            if found_in(content):
                yield path


def found_in(content: bytes) -> list[bytes]:
    return [form for form in FORMS if form in content]


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 9))], ids="seed{}".format
)
def test_nothing_of_an_erased_subject_comes_back(seed: int, world: World, folder: Path) -> None:
    History(seed, world, folder).run()
