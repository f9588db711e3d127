"""`make demo`: a bounded run of everything, with kills, and the proof that every event is accounted for."""

import argparse
import json
import shutil
import sys
from pathlib import Path
from random import Random

from local import aggregating
from local.accounting import Accounting, NoProgress
from local.chaos import DUPLICATES, KILLS, SETTINGS, Chaos, Strikes, blow_plan, kills_alone
from local.consumers import Consumers, Host, Workers
from local.feed.options import add_domain, choose_senders, positive, rate
from local.folders import LOCAL_RUN, fresh_folder
from local.interruption import Interrupted, Interruption
from local.processes import Child, ChildFailed, Children, Pause
from local.proof import Finished, Proof, prove
from local.stack import Asked, Place, Stack


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when the recount agrees, 1 when it differs or something broke, 128 + signal after a signal."""
    options = _options(arguments)
    interruption = Interruption()
    interruption.listen()
    try:
        with fresh_folder(options.folder) as folder:
            code = _in_folder(options, folder, interruption.pause)
            if code == 0 and not options.keep and not options.aggregate:
                shutil.rmtree(folder)
            else:
                print(f"demo: its files are in {folder}", file=sys.stderr)
            return code
    except Interrupted as stopped:
        print(f"demo: {stopped}", file=sys.stderr)
        return 128 + stopped.signal_number


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m local.demo",
        description="Run emulator, store, functions host or workers, and feed until every published event is accounted "
        "for. Then recount the store against the feed's record, and print the result as one JSON object on the last "
        "line.",
    )
    parser.add_argument("--events", type=positive, default=20_000, metavar="N", help="default: 20000")
    parser.add_argument("--kill", type=_or_none, default=0, metavar="K", help="SIGKILL the host, or a worker, K times")
    parser.add_argument("--workers", type=_or_none, default=0, metavar="N", help="N workers instead of the host")
    parser.add_argument(
        "--chaos",
        action="store_true",
        help=f"kill the host ({KILLS} times, or K), have it lose batches, cut all connections, lock the store, and "
        "publish a thousandth of the events twice; the app must heal every gap",
    )
    parser.add_argument(
        "--aggregate", action="store_true", help="aggregate with Spark, and recount the aggregate; implies --keep"
    )
    add_domain(parser)
    parser.add_argument("--rate", type=_rate, default="full", metavar="R", help="events a second; default: full speed")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the events and of the kills; default: 1")
    parser.add_argument("--patience", type=positive, default=60, metavar="S", help="seconds without progress; 60")
    parser.add_argument("--folder", type=Path, default=LOCAL_RUN / "demo", metavar="DIR", help="default: %(default)s")
    parser.add_argument("--keep", action="store_true", help="keep the run's files until the next demo")
    options = parser.parse_args(arguments)
    usual = aggregating.homes_for if options.aggregate else options.transform.senders_for
    choose_senders(parser, options, usual(options.events))
    if options.chaos and options.workers:
        parser.error(
            "argument --chaos: it needs the functions host, because workers lose no batches: leave --workers out"
        )
    if options.chaos:
        options.kill = options.kill or KILLS
    aggregating.refuse_unable(parser, options)
    return options


def _or_none(text: str) -> int:
    return 0 if text == "0" else positive(text)


def _rate(text: str) -> str:
    rate(text)
    return text


def _in_folder(options: argparse.Namespace, folder: Path, pause: Pause) -> int:
    place, record = Place(folder), folder / "record.db"
    try:
        with aggregating.jobs_ended(folder), Children(folder) as children:
            more = {**(SETTINGS if options.chaos else {}), **(aggregating.SETTINGS if options.aggregate else {})}
            finished = _run(options, Stack(place, children, pause, more), record)
    except (ChildFailed, NoProgress, aggregating.NotAggregated) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    proof = prove(finished, place.store, record)
    if options.aggregate:
        figures, differences = aggregating.prove_aggregate(place.store, record, print)
        proof = Proof({**proof.figures, **figures}, proof.differences + differences)
    for difference in proof.differences:
        print(f"difference: {difference}", file=sys.stderr)
    print(json.dumps(proof.figures), flush=True)
    return 1 if proof.differences else 0


def _run(options: argparse.Namespace, stack: Stack, record: Path) -> Finished:
    """Start all, wait until all is accounted for, and end the consumers in order, so that their logs are whole."""
    emulator = stack.start_emulator("--retain", str(max(100_000, options.events)))
    stack.migrate()
    consumers, strikes = _consumers(options, stack, emulator)
    more = ("--record", str(record), *(("--duplicates", str(DUPLICATES)) if options.chaos else ()))
    order = Asked(options.transform, options.senders, str(options.events), options.rate, options.seed, more)
    feed = stack.start_feed(order)
    senders = f"{options.senders:,} {options.transform.senders}"
    print(f"publishing {options.events:,} events of {senders}; {consumers}", flush=True)
    accounting = Accounting(stack, consumers, feed, record, options.patience)
    blows = blow_plan(options.events, options.kill, options.seed, chaos=options.chaos)
    accounted = accounting.wait(blows, strikes, emulator)
    if isinstance(consumers, Host) and options.aggregate:
        aggregating.aggregate_all(consumers.address, stack.place.folder, stack.pause)
    consumers.end()
    return Finished(*accounted, accounting.struck, options.workers, consumers.logs)


def _consumers(options: argparse.Namespace, stack: Stack, emulator: Child) -> tuple[Consumers, Strikes]:
    """Start the consumers; return them with the strikes that can hit them."""
    transform = options.transform.transform
    if options.workers:
        workers = Workers(stack, transform, options.workers, Random(options.seed))
        return workers, kills_alone(workers)
    host = Host(stack, transform)
    return host, Chaos(stack, host, emulator).strikes if options.chaos else kills_alone(host)


if __name__ == "__main__":
    sys.exit(main())
