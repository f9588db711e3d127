"""One world that a seed decides: hub, host, two instances, operators, and faults. Then a quiet time.

In the quiet time nothing fails, and the open work is finished in the ordinary ways alone: the host
delivers, the silence check looks, keepers retry, replays are resumed or cancelled. Then the oracle checks everything.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime

from msgspec import convert, to_builtins

from core.errors import (
    ErasureKeyMissing,
    HeldLettersFull,
    InfrastructureFault,
    OutageSuspected,
    PartitionStopped,
    StreamIncarnationChanged,
)
from core.ingest.ingest import ingest_batch
from core.ingest.stalled_partitions import Healed, Unhealed
from core.letters.retry import claim_due, next_due_at, retry_chunk
from core.model.events import Event, SequenceNumber
from core.model.letters import Backoff, LetterChunk, LetterPolicy
from core.model.policies import Fuse, SubjectKey
from core.store.database import Database
from tests.fakes.builders import FakeClock, batch, partition
from tests.fakes.faulty_database import Killed, TimedDatabase
from tests.fakes.kept import SqliteEyes
from tests.fakes.store import Store
from tests.simulation.answers import answers, served
from tests.simulation.deployments import TRANSFORMS
from tests.simulation.host import Ending, Host, SimulatedHub
from tests.simulation.operators import Instance, Operators, Site
from tests.simulation.oracle import Books, Forgotten, Truth, check, check_gone, words_of
from tests.simulation.trouble import Trouble
from tests.simulation.watch import KeyOrderWatch

INSTANCES = 2
PENDING = 8  # chunks that Durable still has to run: an activity may run again, much later
MOST_ASKED = 12  # places of erased events of which the API is asked
HOUR, DAY = 3_600.0, 86_400.0
MOST_DEATHS = 10  # of processes that try one event in batches, before it stands alone
NEWEST_LETTERS = "event_hub_dead_letter WHERE stream_id = (SELECT MAX(stream_id) FROM event_stream)"
FETCHED = "SELECT COUNT(*) FROM sim_attempt WHERE kind = 'retry' AND had_body = 0"
KINDS_OF_EVENTS = {"poison": "poison", "bug": "bug", "huge": "refused row", "kill": "kills its process"}


class World:
    """A database, and all processes and people that work on it."""

    steps = 60

    def __init__(self, seed: int, engine: SqliteEyes, store: Store) -> None:
        self.chance = chance = random.Random(seed)
        self.clock = FakeClock()
        self.sql, self._copy_to = engine.sql, engine.copy_to
        self.trouble = Trouble(chance, self.clock)
        self.counts = self.trouble.counts  # of each kind of trouble and of each answer
        ids = tuple(map(str, range(chance.randint(1, 3))))
        self.hub = SimulatedHub(ids, chance, self.clock, self.trouble.of_hub)
        policy = LetterPolicy(
            Backoff(attempts=chance.randint(2, 4)), chance.random() < 0.7, chunk=chance.choice([3, 12]), fan_out=3
        )
        if chance.random() < 0.3:
            policy = replace(policy, order="hold_key", held_limit=chance.choice([3, 1_000]))
        fuse = Fuse(floor=chance.randint(2, 5), patience=chance.choice([0, 2, 4]))
        timed: Database = TimedDatabase(store.database, self.clock.now)
        if policy.order == "hold_key":
            timed = KeyOrderWatch(timed, self.sql, self._key_of)
        self.site = Site(timed, self.hub, self.clock, self.trouble, policy, fuse, self._dies)
        self._retention = chance.choice([0.0, 0.0, 0.3, 1.0])  # the amount of trouble
        self._lives = chance.choice([1, 1, 2, 3])  # of the hub
        self._deaths: Counter[tuple[int, object]] = Counter()
        self._deaths_of_batches: Counter[tuple[int, object]] = Counter()
        self._deployed = TRANSFORMS[0]
        self.site.host = self.host = Host(self.hub, self.trouble, self._ingest, INSTANCES)
        self.instances = [Instance(self.site, self._deployed) for _ in range(INSTANCES)]
        self.operators = Operators(self.trouble, ids, self.committed)
        self._heard = _Heard()
        self._secrets, self._done = [self.site.key.secret], 0
        self._pending: list[LetterChunk] = []
        self._retrying = 0  # chunks, each amid the one before
        self._fetched: int | None = None  # retries that needed the hub, when a different one took its place
        self._acts = self._all_acts()
        self.trouble.meanwhile = lambda: chance.choice([self._act, self._befall, self.host.rival])()

    def run(self) -> "World":
        """Run with trouble, then without, and ask the oracle."""
        log = logging.getLogger("hubledger")
        log.addHandler(self._heard)
        try:
            return self._run()
        finally:
            log.removeHandler(self._heard)

    def _run(self) -> "World":
        for id in self.hub.log:
            self.hub.enqueue(id, self.chance.randint(0, 25))
        for _ in range(self.steps):
            self.clock.advance(self.chance.choice([0.0, 1.0, 45.0, 400.0]))
            self._act()
            self._assert_unviolated()
            self._search()
        self._give_back()
        self._heal()
        self._assert_unviolated()
        self._end()
        return self

    def _end(self) -> None:
        is_ordered = self.site.policy.order == "hold_key"
        books = check(self.sql, self.truths(), self.operators.discarded, self.forgotten(), is_ordered)
        self._count(books)
        self._done = 0
        self._search()
        self._search_answers()

    def _search_answers(self) -> None:
        """Ask each route that reads for erased subjects: lists, tasks, and the places of their events."""
        forgotten, truths = self.forgotten(), self.truths()
        done = forgotten.done(truths)
        if not done:
            return
        own, later = truths[-1].place[0], {place for each in done.values() for place in each}
        places = [
            (truth.place[1], int(event.sequence_number))
            for truth in truths
            for event in truth.events.values()
            if truth.place[0] == own and words_of(event) & done.keys()
        ]
        places = [one for one in places if (own, *one) not in later][:MOST_ASKED]
        task_ids = [id for (id,) in self.sql("SELECT task_id FROM task ORDER BY requested_at DESC LIMIT 20")]
        copied = forgotten.copy_without(later, self._copy_to)
        with closing(copied), served(copied, self.hub, self.clock.now, self.site.key):
            for asked, answer in answers(task_ids, places):
                found = [one for one in done if one in answer]
                assert not found, (found, "were erased, but an answer has them", asked, answer)
                self.counts["answers searched for erased subjects"] += 1

    def forgotten(self) -> Forgotten:
        return Forgotten(self.sql, self.operators.subjects, self._secrets)

    def _search(self) -> None:
        """Search the database, the log and the answers for subjects, whenever an erasure was done."""
        ((done,),) = self.sql("SELECT COUNT(*) FROM task WHERE kind = 'erasure' AND is_dry_run = 0 AND status = 'done'")
        if done == self._done:
            return
        self.counts["erasures"] += max(0, done - self._done)
        self._done = done
        self.forgotten().search(self._copy_to, self.truths(), "\n".join(self._heard.lines))

    def committed(self, id: str) -> int:
        """Return the last number of a partition of this hub that is committed, or before its anchor. Else -1."""
        ((last,),) = self.sql(
            "SELECT COALESCE(MAX(c.sequence_number), MAX(a.sequence_number - 1), -1) FROM event_stream AS e"
            " LEFT JOIN event_hub_checkpoint AS c ON c.stream_id = e.stream_id AND c.partition_id = ?"
            " LEFT JOIN partition_anchor AS a ON a.stream_id = e.stream_id AND a.partition_id = ?"
            " WHERE e.hub_created_at = ?",
            *(id, id, _text(self.hub.own_made_at)),
        )
        return int(last)

    def _key_of(self, stream_id: int, id: str, number: int) -> str | None:
        ((made_at,),) = self.sql("SELECT hub_created_at FROM event_stream WHERE stream_id = ?", stream_id)
        (log,) = [logs[id] for at, logs in self.hub.lives.items() if _text(at) == made_at]
        return log.events[number].partition_key

    def truths(self) -> list[Truth]:
        lives = {_text(made_at): logs for made_at, logs in self.hub.lives.items()}
        return [
            Truth(
                stream_id,
                id,
                {one.sequence_number: one for one in log.events},
                len(log.events) - 1 if closed_at is None else None,
                log.gone,
                log.lost,
            )
            for stream_id, made_at, closed_at in self.sql(
                "SELECT stream_id, hub_created_at, closed_at FROM event_stream"
            )
            for id, log in lives.get(made_at, {}).items()
        ]

    def _all_acts(self) -> list[Callable[[], object]]:
        at, some = self._as, self._some_partition
        return [
            *[lambda: self.host.deliver(some())] * 6,
            *[lambda: at(self._look)] * 2,
            *[lambda: at(self._claim)] * 2,
            *[lambda: at(self._retry)] * 3,
            *[lambda: at(self.operators.drive)] * 2,
            lambda: at(self.operators.move_letters),
            lambda: at(self.operators.request),
            lambda: at(self.operators.move_task),
            *[lambda: at(self._erase)] * (self.chance.random() < 0.5),
            lambda: at(self._succeed),
            lambda: at(self._ask),
            lambda: self.hub.enqueue(some(), self.chance.randint(1, 12)),
            self._befall,
            self._befall,
        ]

    def _act(self) -> None:
        self.chance.choice(self._acts)()

    def _befall(self) -> None:
        if self.trouble.level == 0.0:
            return
        accidents: list[tuple[str, Callable[[], object]]] = [
            ("death: killed from outside", self._kill),
            ("clock: jump", self._jump),
            ("deployment", self._deploy),
            *[("hub: retention", self._expire)] * (not self.hub.aside),
            *[("hub: recreated", self._recreate)] * (self._lives > len(self.hub.lives) and not self.hub.aside),
            ("keeper: chunks purged", self._pending.clear),
            *[("deployment: the next erasure key", self._rotate)] * (self.site.key.before is None),
        ]
        some = self._some_partition()
        self.chance.choice(
            [
                *(lambda kind=kind, act=act: self._counted(kind, act) for kind, act in accidents),
                lambda: self.host.steal(some),
                self.host.wake_zombie,
                *([self._give_back] * 4 if self.hub.aside else [self._swap]),
            ]
        )()

    def _counted(self, kind: str, act: Callable[[], object]) -> None:
        self.counts[kind] += 1
        act()

    def _count(self, books: Books) -> None:
        """Count the events of this world by kind and by outcome."""
        counts = self.counts
        logs = [log for logs in self.hub.lives.values() for log in logs.values()]
        bodies = [one.body.split()[0].decode() for log in logs for one in log.events]
        for word, kind in KINDS_OF_EVENTS.items():
            counts[f"event: {kind}"] += bodies.count(word)
        lost = sum(len(log.lost) for log in logs)
        ranges = [one for kept in books.ledger.values() for one in kept]
        letters = [one for kept in books.letters.values() for one in kept]
        counts["hub: retention took unread events"] += lost
        counts["event: missing reference"] += sum(one.error_class == "reference" for one in letters)
        counts["events isolated as crash"] += sum(one.error_class == "crash" for one in letters)
        counts["absent numbers"] += sum(one.absent for one in ranges if one.kind == "batch")
        counts["events held"] += sum(one.held for one in ranges if one.kind == "batch")
        counts["held letters freed"] += sum(one.kind == "free" for made in books.attempts.values() for _, one in made)
        counts["pieces replayed"] += sum(one.kind == "replay" for one in ranges)

    def _as(self, act: Callable[[Instance], object], number: int | None = None) -> Ending:
        """Let one instance act. When it dies, a new process takes its place."""
        instance = self.instances[self.chance.randrange(INSTANCES) if number is None else number]
        try:
            act(instance)
        except InfrastructureFault as fault:
            self.counts["batches held by the fuse"] += isinstance(fault, OutageSuspected)
            self.counts["batches stopped by too many held letters"] += isinstance(fault, HeldLettersFull)
            self.counts["batches stopped at a different hub"] += isinstance(fault, StreamIncarnationChanged)
            self.counts["batches stopped for the key of erased subjects"] += isinstance(fault, ErasureKeyMissing)
            return "failed"
        except Killed:
            self._bury(instance)
            return "died"
        return "done"

    def _bury(self, instance: Instance) -> None:
        instance.process.is_dead = True
        for number, one in enumerate(self.instances):
            if one is instance:
                self.instances[number] = Instance(self.site, self._deployed, instance.skew)
                self.host.forget(number)

    def _ingest(self, number: int, id: str, events: tuple[Event, ...], retries: int) -> Ending:
        def ingest(instance: Instance) -> None:
            done = ingest_batch(replace(batch(events, partition(id)), retries=retries), instance.means)
            self.counts["healed events"] += done.healed
            self.counts["redelivered events dropped"] += done.redelivered

        return self._as(ingest, number)

    def _look(self, instance: Instance) -> None:
        for looked in instance.silence.run("timer"):
            is_held = isinstance(looked, Unhealed) and isinstance(looked.fault, PartitionStopped)
            assert self.trouble.level or is_held or not isinstance(looked, Unhealed), looked
            self.counts["gaps at the end healed"] += isinstance(looked, Healed)

    def _claim(self, instance: Instance) -> None:
        self._pending = [*self._pending, *claim_due(instance.keeper)][-PENDING:]

    def _retry(self, instance: Instance) -> None:
        """Run an activity of a keeper: now, later or twice. Durable runs it again when its process died."""
        if not self._pending:
            return
        place = self.chance.randrange(len(self._pending))
        chunk = self._pending[place]
        if self.trouble.comes(0.3):
            self.counts["keeper: chunk run again"] += 1
        else:
            del self._pending[place]
        try:
            self._retry_chunk(chunk, instance)
        except Killed:
            self._pending = [*self._pending, chunk][-PENDING:]
            raise

    def _retry_chunk(self, chunk: LetterChunk, instance: Instance) -> None:
        travelled = convert(to_builtins(chunk), LetterChunk)
        self._retrying += 1
        try:
            report = retry_chunk(travelled, instance.keeper, f"activity-{self.chance.getrandbits(32)}")
        finally:
            self._retrying -= 1
        for name in ("resolved", "waiting", "exhausted", "released", "lost"):
            self.counts[f"letters {name}"] += getattr(report, name)

    def _kill(self) -> None:
        self._bury(self.chance.choice(self.instances))

    def _jump(self) -> None:
        self.chance.choice(self.instances).skew = self.chance.choice([-DAY, -HOUR, 0.0, HOUR, DAY])

    def _rotate(self) -> None:
        """Give the app its next key, and the one before: instances that run keep theirs."""
        self.site.key = SubjectKey("the next key of the world", self.site.key.secret)
        self._secrets.append(self.site.key.secret)
        self._kill()

    def _deploy(self) -> None:
        """Deploy any version. Instances that run keep theirs, as in a rolling deployment."""
        self._deployed = self.chance.choice(TRANSFORMS)
        self._kill()

    def _dies(self, event: Event, is_letter: bool) -> bool:
        """Return True for an event that ends its process: as often as its body says, in batches at most ten times."""
        times, key = int(event.body.split()[1]), (event.sequence_number, event.enqueued_at)
        self._deaths[key] += 1
        self._deaths_of_batches[key] += not is_letter and self._deaths[key] <= times
        assert self._deaths_of_batches[key] <= MOST_DEATHS, (event, self._deaths_of_batches[key])
        self.counts["death: event kills its process"] += self._deaths[key] <= times
        return self._deaths[key] <= times

    def _expire(self) -> None:
        """Remove the head of a partition, or one event of it. Some may not have been read yet."""
        id = self._some_partition()
        if self.chance.random() >= self._retention or not self.hub.held[id]:
            return
        if self.chance.random() < 0.3:
            self.hub.punch(id, self.committed(id))
        else:
            self.hub.cut(id, self.chance.choice([*self.hub.held[id], self.hub.last[id] + 1]), self.committed(id))

    def _recreate(self) -> None:
        self.hub.replace(self.chance.choice([0, 30, 30, 30]))
        self.counts["hub: recreated and empty"] += max(self.hub.last.values()) < 0
        self.host.lose_places()

    def _swap(self) -> None:
        """Let a wrong setting name a different hub, once the stream knows its own."""
        if self._knows_hub():
            self._fetched = None if self._retrying else self._retries_by_the_hub()
            self.hub.swap()
            self.counts["hub: swapped"] += 1
            self.counts["hub: swapped for an empty one"] += max(self.hub.last.values()) < 0
            self.counts["hub: swapped amid a call"] += self.trouble.is_amid_a_call
            self.host.lose_places()

    def _give_back(self) -> None:
        """Put the stream's hub back, of which the other may have settled nothing. The host may still hold its events.

        Processes that are amid an act end: what they do next rests on what they read before.
        """
        if not self.hub.aside:
            return
        self.counts["hub: given back"] += 1
        self.hub.give_back()
        check_gone(self.sql, self.truths())
        assert self._fetched in (None, self._retries_by_the_hub()), "a retry counts that a different hub answered"
        self.host.lose_places()
        for one in self.instances if self.trouble.is_amid_a_call else ():
            self._bury(one)

    def _retries_by_the_hub(self) -> int:
        return int(self.sql(FETCHED)[0][0])

    def _ask(self, instance: Instance) -> None:
        """Look for an event and at the end, as pages, erasures and people do: only the stream's hub may answer."""
        id = self._some_partition()
        log, made_at = self.hub.log[id], self.hub.own_made_at
        count, number = len(log.events), SequenceNumber(self.chance.randint(0, len(log.events)))
        try:
            found, last = instance.hub.find_event(partition(id), number), instance.hub.extent(partition(id)).last
        except StreamIncarnationChanged:
            self.counts["reads refused at a different hub"] += 1
            raise
        instance.process.refuse_dead()  # the hub may have been given back amid the reads
        self.counts["events found" if found else "events gone"] += 1
        if self.hub.own_made_at == made_at:  # else it was recreated meanwhile
            assert found in log.events if found else number >= count or number in log.gone, (id, number, found)
            assert count - 1 <= last < len(log.events), (id, last)

    def _erase(self, instance: Instance) -> None:
        """Request an erasure. A wrong key shows itself only where subjects were erased with a different one."""
        if instance.erasures.key.secret in self._secrets or self.sql("SELECT 1 FROM erased_subject"):
            self.operators.erase(instance)

    def _succeed(self, instance: Instance) -> None:
        """Act as an operator does when partitions are stopped, and the setting is right."""
        if not self.hub.aside and self.sql("SELECT 1 FROM partition_stop WHERE reason = 'incarnation'"):
            self.operators.open_incarnation(instance, self.hub.made_at)

    def _some_partition(self) -> str:
        return self.chance.choice(list(self.hub.log))

    def _assert_unviolated(self) -> None:
        assert not (found := self.sql("SELECT kind, detail FROM sim_violation")), found

    def _heal(self) -> None:
        self.trouble.end()
        self._deployed = self.chance.choice(TRANSFORMS)
        self.instances = [Instance(self.site, self._deployed) for _ in range(INSTANCES)]
        for number in range(INSTANCES):
            self.host.forget(number)
        self._until_at_rest(self._deliver_all, "events are not committed")
        self._until_at_rest(self._end_tasks, "tasks do not end")
        if self.operators.named and self.chance.random() < 0.5:
            self._as(lambda instance: self.operators.erase_all(instance, sorted(self.operators.named)))
            self._until_at_rest(self._finish_tasks, "an erasure does not end")
        self._until_at_rest(self._settle_letters, "letters do not come to rest")
        for _ in range(2):
            self.clock.advance(120.0)
            self._all_look()

    def _until_at_rest(self, turn: Callable[[], bool], fault: str) -> None:
        for _ in range(1_000):
            if turn():
                return
        raise AssertionError(fault)

    def _deliver_all(self) -> bool:
        for id in self.hub.log:
            self.host.deliver(id)
        if self.chance.random() < 0.3:
            self.clock.advance(45.0)
            self._all_look()
        self._as(self._succeed)
        if self.sql("SELECT 1 FROM partition_stop WHERE reason = 'held'"):
            self._as(self.operators.drive)  # a redrive that died half-way keeps others off its letters
            self._settle_letters()
        return self._knows_hub() and all(self.committed(id) >= last for id, last in self.hub.last.items())

    def _knows_hub(self) -> bool:
        """Return True when the newest stream is of the hub that is there: an empty hub shows itself to a look only."""
        ((made_at,),) = self.sql("SELECT MAX(hub_created_at) FROM event_stream")
        return bool(made_at == _text(self.hub.made_at))

    def _all_look(self) -> None:
        for number in range(INSTANCES):
            assert self._as(self._look, number) != "failed"

    def _end_tasks(self) -> bool:
        self.operators.asked = self.operators.all_jobs(self.instances[0])
        for job_id in self.operators.asked:
            wanted = self.chance.choice(["resume", "resume", "cancel"])
            self.operators.move(self.instances[0], job_id, "pause")  # a deployment may have left it with an old version
            self.operators.move(self.instances[0], job_id, wanted)  # type: ignore[arg-type]
        return self._finish_tasks()

    def _finish_tasks(self) -> bool:
        self._as(self.operators.drive)
        return not self.sql("SELECT 1 FROM task WHERE status IN ('planned', 'running', 'paused')")

    def _settle_letters(self) -> bool:
        """Retry all waiting letters once the last is due. Discard the exhausted letters that others wait for."""
        if next_due_at(self.instances[0].keeper) is None:
            if not self.sql(f"SELECT 1 FROM {NEWEST_LETTERS} AND status = 'held'"):
                return True
            first = self.sql(f"SELECT partition_id, sequence_number FROM {NEWEST_LETTERS} AND status = 'exhausted'")
            self._as(lambda instance: self.operators.discard_all(instance, first))
            return False
        ((last,),) = self.sql(f"SELECT MAX(due_at) FROM {NEWEST_LETTERS} AND status IN ('waiting', 'retrying')")
        self.clock.advance(max(0.0, (datetime.fromisoformat(last) - self.clock.now()).total_seconds()))
        self._as(self._keep)
        return False

    def _keep(self, instance: Instance) -> None:
        for chunk in claim_due(instance.keeper):
            self._retry_chunk(chunk, instance)


class _Heard(logging.Handler):
    """Keeps each line that the app logs, with its values."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {record.__dict__}")


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
