"""The command line: `python -m local.feed --connection ... --events 20000`."""

import argparse
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

from azure.eventhub.exceptions import EventHubError

from local.feed.businesses import Domain
from local.feed.dangers import dangers_of, with_dangers
from local.feed.devices import of_device
from local.feed.feeding import LARGEST, Feed, Gateways, Pace, Progress, feed
from local.feed.homes import HomeScript, HomeShares, home_minutes
from local.feed.options import parse_options
from local.feed.planned_events import Minute
from local.feed.publisher import NOT_FINITE, HubSilent, Publisher, Resends, connect, keyed
from local.feed.record import NoRecord, Record, RecordExists


def main(arguments: list[str] | None = None) -> int:
    """Feed until the end, SIGTERM or SIGINT. Return 1, with one line on stderr, when the hub or the record fails."""
    options = parse_options(arguments)
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    try:
        _feed(options, stopping)
    except (EventHubError, HubSilent, RecordExists, ValueError, OSError) as error:
        print(f"feed: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    return 0


def _feed(options: argparse.Namespace, stopping: threading.Event) -> None:
    domain: Domain = options.transform
    record: Record | NoRecord = NoRecord()
    if options.record is not None:
        record = Record(options.record, domain, options.seed, options.senders, is_added_to=options.append)
    story = _story(options)
    with ExitStack() as opened:
        opened.callback(record.close)
        resends = opened.enter_context(closing(Resends()))
        clients = [opened.enter_context(connect(options.connection, options.hub)) for _ in range(options.lanes)]
        alike = 1 if domain.sample is None else LARGEST
        gateways = Gateways(clients[0].get_partition_ids(), options.gather, alike=alike)
        properties = {} if options.dangers is None else NOT_FINITE
        stamp = of_device if options.iot else keyed
        publishers = [Publisher(client, stopping.wait, resends, properties, stamp) for client in clients]
        progress = Progress(sys.stdout, time.monotonic)
        pace = Pace(options.rate, time.monotonic, stopping.wait)
        print(f"feed ready for {options.hub}: {domain.source(options.senders)}, seed {options.seed}", flush=True)
        own = Feed(gateways, [each.publish for each in publishers], record, pace, progress, stopping.is_set)
        published = feed(story, own)
        doubtful = sum(publisher.doubtful for publisher in publishers)
        progress.end(published, cpu_seconds=round(time.process_time(), 2), doubtful_sends=doubtful)


def _story(options: argparse.Namespace) -> Iterator[Minute]:
    domain: Domain = options.transform
    dangers = dangers_of(options.dangers, options.undeliverable)
    if not dangers and not options.registered:
        return domain.story(options.senders, options.events, options.seed, options.start, options.duplicates)
    shares = HomeShares(late=0.0, **({} if options.duplicates is None else {"duplicate": options.duplicates}))
    script = HomeScript(options.senders, options.events, options.seed, options.start, shares)
    return with_dangers(home_minutes(script), script, dangers)


if __name__ == "__main__":
    sys.exit(main())
