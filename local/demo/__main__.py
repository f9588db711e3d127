"""`make demo`: a bounded run of everything, with kills, and the proof that every event is accounted for."""

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from core.errors import HubledgerError
from local import serve
from local.demo import aggregation as aggregating
from local.demo import chaos, devices
from local.demo.accounting import NOTHING, Accounted, Accounting, NoProgress, Waited
from local.demo.aggregation import prove_aggregate
from local.demo.chaos import Chaos, Strikes, blow_plan
from local.demo.operator import NotDone, NotOpened, discarding, open_next_incarnation
from local.demo.proof import Finished, Proof, prove, report
from local.feed.businesses import HOMES, Domain, sample_of
from local.feed.businesses import SETTINGS as OF_A_SAMPLE
from local.feed.dangers import DEADLY
from local.feed.options import (
    add_domain,
    add_undeliverable,
    choose_domain,
    choose_senders,
    none_or_more,
    port,
    positive,
    rate_word,
    seed,
)
from local.functions_host.errors import RECYCLED
from local.functions_host.supervisor import free_port
from local.programs import Interrupted, Interruption, Parser, asked_as
from local.recount.recount import recount
from local.recount.sample_recount import recount_sample
from local.run import PortInUse, refuse_port_in_use
from local.stack.app_totals import letters_by_cause
from local.stack.consumers import Consumers, Host, Workers
from local.stack.folders import LOCAL_RUN, FolderRefused, fresh_folder
from local.stack.processes import Child, ChildFailed, Children, Pause
from local.stack.sql_server import ServerRefused, add_store, prepared
from local.stack.stack import FeedOrder, Place, Stack

KEPT_PORT = 7071  # where the command line looks for an app


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when the recount agrees, 1 when it differs or something broke, 128 + signal after a signal."""
    try:
        options = _options(arguments)
        keeps = options.keep or (sys.stdin.isatty() and sys.stdout.isatty())
        if options.port or keeps:
            options.port = options.port or KEPT_PORT
            refuse_port_in_use(options.port, asked_as("--port"))
        else:
            options.port = free_port(0)
    except (PortInUse, HubledgerError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    interruption = Interruption()
    interruption.listen()
    try:
        with fresh_folder(options.folder) as folder:
            code = _in_folder(options, folder, interruption.pause)
            if code:
                print(f"demo: its files are in {folder}", file=sys.stderr)
        if keeps:
            print("demo: its pages stay up; in a second terminal: bin/hubledger status", flush=True)
            serve.main(["--folder", str(folder), "--port", str(options.port)])
        return code
    except FolderRefused as refused:
        print(f"demo: {refused}", file=sys.stderr)
        return 1
    except Interrupted as stopped:
        print(f"demo: {stopped}", file=sys.stderr)
        return 128 + stopped.signal_number


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="python -m local.demo",
        description="Run emulator, store, functions host or workers, and feed until every published event is accounted "
        "for. Then recount the store against the feed's record, and print the result as one JSON object on the last "
        "line.",
    )
    parser.add_argument("--events", type=positive, default=20_000, metavar="N", help="default: 20000")
    parser.add_argument("--workers", type=none_or_more, default=0, metavar="N", help="N workers instead of the host")
    _add_blows(parser)
    aggregating.add_option(parser)
    devices.add_option(parser)
    add_domain(parser)
    add_store(parser)
    parser.add_argument(
        "--rate", type=rate_word, default="full", metavar="R", help="events a second; default: full speed"
    )
    parser.add_argument("--seed", type=seed, default=1, metavar="S", help="of the events and of the kills; default: 1")
    parser.add_argument("--patience", type=positive, default=60, metavar="S", help="seconds without progress; 60")
    parser.add_argument("--folder", type=Path, default=LOCAL_RUN / "demo", metavar="DIR", help="default: %(default)s")
    parser.add_argument("--keep", action="store_true", help="serve its pages at the end until Ctrl-C; so in a terminal")
    parser.add_argument(
        "--port",
        type=port,
        metavar="P",
        help="of its pages; default: 7071, or any free port if they end with the demo",
    )
    options = parser.parse_args(arguments)
    choose_domain(parser, options, sample_of)
    choose_senders(parser, options, aggregating.senders_for(options))
    _complete_blows(parser, options)
    if options.store and options.aggregate:
        parser.error("argument --aggregate: here Spark reads only the embedded store: leave --store out")
    aggregating.refuse_unable(parser, options)
    devices.complete(parser, options)
    return options


def _add_blows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kill", type=none_or_more, default=0, metavar="K", help="SIGKILL the host, or a worker, K times"
    )
    parser.add_argument(
        "--chaos",
        action="store_true",
        help=f"kill the host ({chaos.KILLS} times, or K), have it lose batches, cut all connections, lock the store, "
        "and publish a thousandth of the events twice; with homes, also publish an event that kills the host, some "
        "that no trigger delivers and some that the database refuses, keep the order of each home, and recreate the "
        "hub; the app must heal every gap",
    )
    add_undeliverable(parser)
    parser.add_argument(
        "--like-azure",
        action="store_true",
        help="end the host after three deaths within half an hour, and start the next one",
    )


def _complete_blows(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.chaos and options.workers:
        parser.error(
            "argument --chaos: it needs the functions host, because workers lose no batches: leave --workers out"
        )
    if options.chaos:
        options.kill = options.kill or chaos.KILLS
    if _is_dangerous(options):
        options.undeliverable = options.undeliverable or chaos.UNDELIVERABLE
    if options.undeliverable and options.transform is not HOMES:
        parser.error(f"argument --undeliverable: such events are only those of {HOMES.name}")


def _in_folder(options: argparse.Namespace, folder: Path, pause: Pause) -> int:
    place, record = Place(folder, host_port=options.port, server=options.store), folder / "record.db"
    try:
        with prepared(place.server, pause=pause), aggregating.jobs_ended(folder), Children(folder) as children:
            more = dict(aggregating.settings_for(options))
            if _is_dangerous(options):
                more |= chaos.DANGEROUS
            elif options.chaos or options.undeliverable:
                more |= chaos.SETTINGS
            more |= OF_A_SAMPLE if options.transform.sample else {}
            more |= devices.SETTINGS if options.iot else {}
            of_host = ["--reopen-after", chaos.REOPEN_AFTER, *(["--like-azure"] if options.like_azure else [])]
            finished, drill = _run(options, Stack(place, children, pause, more, of_host), record)
            if place.server:
                place.server.copy(place.store)
    except (ChildFailed, NoProgress, NotOpened, ServerRefused, NotDone, aggregating.NotAggregated) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    domain: Domain = options.transform
    recounted = partial(devices.differences_of, drill) if drill else recount
    proof = prove(
        finished, place.store, record, partial(recount_sample, domain, place.hub) if domain.sample else recounted
    )
    if options.transform.sample:
        for line in letters_by_cause(place.store):
            print(f"letters: {line}")
    if drill:
        proof.figures["iot"] = drill.figures
    if options.aggregate:
        figures, differences = prove_aggregate(domain, place.store, print)
        proof = Proof({**proof.figures, **figures}, proof.differences + differences)
    return report(proof)


def _run(options: argparse.Namespace, stack: Stack, record: Path) -> tuple[Finished, devices.Drill | None]:
    """Start all, wait until all is accounted for, and end the consumers in order, so that their logs are whole."""
    emulator = stack.start_emulator("--retain", str(max(100_000, options.events)))
    stack.create_store(options.transform.transform)
    consumers, strikes = _consumers(options, stack, emulator)
    run = _Run(options, stack, record, consumers, emulator)
    with consumers.watch, run.operator(), aggregating.job_killer(options, stack.place):
        accounting = run.part(options.events)
        source = options.transform.source(options.senders)
        print(f"publishing {options.events:,} events of {source}; {consumers}", flush=True)
        blows = blow_plan(options.events, options.kill, options.seed, chaos=options.chaos)
        accounted = accounting.wait(blows, strikes, emulator)
        if _is_dangerous(options) and isinstance(consumers, Host):
            later = run.in_recreated_hub(consumers, accounted)
            accounted = accounted.followed_by(later)
        if isinstance(consumers, Host) and options.aggregate:
            aggregating.aggregate_and_replay(consumers, stack.place, options.transform, stack.pause)
        drill = None
        if isinstance(consumers, Host) and options.iot:
            drill = devices.replay_and_erase(consumers, stack.place, record, stack.pause)
    consumers.end()
    dangerous = _is_dangerous(options)
    return Finished(*accounted, accounting.struck, options.workers, consumers.logs, dangerous), drill


@dataclass(frozen=True, slots=True)
class _Run:
    """The parts of one run: its options, its processes, and its record."""

    options: argparse.Namespace
    stack: Stack
    record: Path
    consumers: Consumers
    emulator: Child

    def operator(self) -> AbstractContextManager[object]:
        """Return the operator of a run whose letters block later events of their key."""
        if (_is_dangerous(self.options) or self.options.iot) and isinstance(self.consumers, Host):
            return discarding(self.consumers, self.stack.place.live)
        return nullcontext()

    def part(self, events: int, earlier: Accounted = NOTHING) -> Accounting:
        """Start the feed of a part of the run, and return the wait for it."""
        own, is_later = self.options, earlier is not NOTHING
        more = ["--record", str(self.record), *(["--append"] if is_later else [])]
        more += ["--duplicates", str(chaos.DUPLICATES)] if own.chaos else []
        more += ["--dangers", "0" if is_later else "1"] if _is_dangerous(own) else []
        more += ["--undeliverable", str(own.undeliverable)] if own.undeliverable and not is_later else []
        more += devices.FEED if own.iot else ()
        seed = own.seed + is_later
        feed = self.stack.start_feed(FeedOrder(own.transform, own.senders, str(events), own.rate, seed, tuple(more)))
        return Accounting(self.stack, self.consumers, Waited(feed, self.record, own.patience, earlier))

    def in_recreated_hub(self, host: Host, earlier: Accounted) -> Accounted:
        """Recreate the hub, publish some events into it, and open the next incarnation as an operator would."""
        print("recreating the event hub", flush=True)
        self.emulator.recreate_hubs()
        accounting = self.part(max(200, int(self.options.events * chaos.LATER)), earlier)
        open_next_incarnation(host, self.stack.pause)
        host.watch.move(host.address)
        return accounting.wait([], {}, self.emulator)


def _is_dangerous(options: argparse.Namespace) -> bool:
    """Return True for a chaos of a business that has dangerous events."""
    return options.chaos and options.transform.dangerous is not None


def _consumers(options: argparse.Namespace, stack: Stack, emulator: Child) -> tuple[Consumers, Strikes]:
    """Start the consumers. Return them with the strikes that can hit them."""
    transform = options.transform.transform
    if options.workers:
        workers = Workers(stack, transform, options.workers, Random(options.seed))
        return workers, {"kill": workers.kill_one}
    if _is_dangerous(options):
        transform = options.transform.dangerous
    transform = devices.TRANSFORM if options.iot else transform
    host = Host(stack, transform, (DEADLY, RECYCLED) if _is_dangerous(options) else ())
    return host, Chaos(stack, host, emulator).strikes if options.chaos else {"kill": host.kill_one}


if __name__ == "__main__":
    sys.exit(main())
