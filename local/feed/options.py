"""Parse the options of the feed completely, or refuse them."""

import argparse
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from local.feed.businesses import HOMES, Domain, UnknownDomain, domain_of_sample, find_domain
from local.feed.event_file import UnusableFile
from local.feed.planned_events import FIRST_INSTANT
from local.feed.sample import NoSuchKey, Sample, keyed_by, read_sample

LOCAL_HUB = (
    "Endpoint=sb://localhost:5672;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options: None is endless `events` or full-speed `rate`. `start` is in microseconds since 1970."""
    parser = argparse.ArgumentParser(
        prog="python -m local.feed",
        description="Publish the events of a business, or those of a file, to an event hub, and record each.",
        epilog="SIGTERM or Ctrl-C ends the feed with a complete record. The same seed makes the same events.",
    )
    parser.add_argument("--connection", default=LOCAL_HUB, metavar="TEXT", help="default: the emulator on port 5672")
    parser.add_argument("--hub", default="telemetry", metavar="NAME", help="default: telemetry")
    add_domain(parser)
    parser.add_argument("--events", type=events, default="endless", metavar="N|endless")
    parser.add_argument(
        "--rate", type=rate, default="1000", metavar="R|full", help="events a second, or full speed; default: 1000"
    )
    parser.add_argument(
        "--gather",
        type=_up_to(10, "a number of seconds"),
        default="0.1",
        metavar="SECONDS",
        help="how long a gateway waits for more; default: 0.1",
    )
    parser.add_argument("--lanes", type=positive, default=16, metavar="N", help="sends at the same time; default: 16")
    parser.add_argument("--seed", type=seed, default=1, metavar="S", help="default: 1")
    parser.add_argument(
        "--start",
        type=_instant,
        default=FIRST_INSTANT,
        metavar="TIME",
        help="of the first readings; default: a fixed time",
    )
    parser.add_argument(
        "--duplicates", type=_up_to(1, "a number"), metavar="SHARE", help="of the events come twice; default: 0.005"
    )
    parser.add_argument(
        "--dangers",
        type=none_or_more,
        metavar="N",
        help="N events kill the process of the app, and some make rows that the database refuses; every home registers "
        "before its readings; malformed events carry properties that are no finite numbers",
    )
    add_undeliverable(parser)
    parser.add_argument(
        "--registered",
        action="store_true",
        help="every home registers before its readings, so that one story can follow a different one",
    )
    parser.add_argument(
        "--iot",
        action="store_true",
        help="send each event as an IoT Hub does: a home is a device, whose id is an annotation in place of the "
        "partition key",
    )
    parser.add_argument("--append", action="store_true", help="add to the record of an earlier feed")
    parser.add_argument("--record", type=Path, metavar="PATH", help="a new SQLite file for the expected outcomes")
    options = parser.parse_args(arguments)
    choose_domain(parser, options, _named)
    choose_senders(parser, options)
    _refuse_dangers(parser, options)
    return options


def _refuse_dangers(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.iot and (options.transform is not HOMES or options.dangers is not None or options.undeliverable):
        parser.error(f"argument --iot: it is for events of {HOMES.name}, without --dangers and --undeliverable")
    given = {
        "--dangers": options.dangers is not None,
        "--undeliverable": options.undeliverable,
        "--registered": options.registered,
    }
    for name in (name for name, is_given in given.items() if is_given):
        if options.events is None or options.transform is not HOMES:
            parser.error(f"argument {name}: it needs a number of --events, of {HOMES.name}")
    if options.append and options.record is None:
        parser.error("argument --append: it needs the --record of the earlier feed")


def add_undeliverable(parser: argparse.ArgumentParser) -> None:
    """Add the option for events that Azure's trigger cannot deliver."""
    parser.add_argument(
        "--undeliverable",
        type=none_or_more,
        default=0,
        metavar="N",
        help="N events that Azure's trigger cannot deliver: a text, a list or a map in place of the data, a map or a "
        "decimal of 64 bits as a property; every home registers before its readings",
    )


def add_domain(parser: argparse.ArgumentParser) -> None:
    """Add the options for the business and its number of senders, or for the file of events."""
    parser.add_argument(
        "--transform",
        metavar="NAME",
        help="home_security (default), flight_info, or a room like apps.orders",
    )
    parser.add_argument(
        "--events-from",
        type=Path,
        metavar="FILE",
        help="publish the lines of a file again and again; those of a file named *.base64 are bodies in base64;"
        " default for a room: its samples",
    )
    parser.add_argument("--key", metavar="FIELD", help="of the JSON lines, whose value is the partition key")
    parser.add_argument(
        "--homes", "--senders", dest="senders", type=positive, metavar="N", help="how many homes, or flight numbers"
    )


ChooseSample = Callable[[argparse.Namespace], Sample | None]


def choose_domain(parser: argparse.ArgumentParser, options: argparse.Namespace, sample_of: ChooseSample) -> None:
    """Replace the name of the `transform` by its domain: the domain of its sample, or, without one, a business."""
    try:
        found = sample_of(options)
        options.transform = options.transform or HOMES.name
        options.transform = domain_of_sample(options.transform, found) if found else find_domain(options.transform)
    except NoSuchKey as missing:
        parser.error(f"argument --key: {missing}")
    except UnusableFile as unusable:
        parser.error(f"argument --events-from: {unusable}")
    except UnknownDomain as unknown:
        parser.error(f"argument --transform: {unknown}")
    if found and options.senders:
        parser.error("argument --homes: the events of a file have no senders")
    if options.key and not found:
        parser.error("argument --key: it needs --events-from")


def _named(options: argparse.Namespace) -> Sample | None:
    """Return the sample of the file that the options name. The feed knows no transform, so it finds no key itself."""
    path: Path | None = options.events_from
    if path is None:
        return None
    lines = read_sample(path)
    return keyed_by(path, lines, options.key) if options.key else Sample(path, lines)


def choose_senders(parser: argparse.ArgumentParser, options: argparse.Namespace, usual: int | None = None) -> None:
    """Set `senders` to the usual number where none was given. Refuse a number above the limit."""
    domain: Domain = options.transform
    options.senders = options.senders or usual or domain.usual_senders
    if options.senders > domain.sender_limit:
        parser.error(f"argument --homes: there are no more than {domain.sender_limit} {domain.senders}")


def none_or_more(text: str) -> int:
    """Parse a whole number from 0."""
    return _whole(text, 0)


def positive(text: str) -> int:
    """Parse a whole number from 1."""
    return _whole(text, 1)


def port(text: str) -> int:
    return _whole(text, 1, 65_535)


def seed(text: str) -> int:
    """Parse the seed of everything random: any whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None


def _whole(text: str, least: int, most: int | None = None) -> int:
    if not (text.isascii() and text.isdigit() and least <= int(text) <= (most or int(text))):
        limits = f"from {least}" if most is None else f"from {least} to {most}"
        raise argparse.ArgumentTypeError(f"must be a whole number {limits}, not {text!r}")
    return int(text)


def rate(text: str) -> float | None:
    """Parse events a second. None is full speed."""
    if text == "full":
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"must be a number above 0, or full, not {text!r}")
    return value


def rate_word(text: str) -> str:
    """Check events a second, and return the word for the command of a feed."""
    rate(text)
    return text


def events(text: str) -> int | None:
    """Parse a number of events. None is endless."""
    return None if text == "endless" else positive(text)


def _up_to(limit: int, noun: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= limit:
            raise argparse.ArgumentTypeError(f"must be {noun} from 0 to {limit}, not {text!r}")
        return value

    return parse


def _instant(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a time like 2026-01-01T00:00:00Z, not {text!r}") from None
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"must name its time zone: {text!r}")
    return int(moment.timestamp()) * 1_000_000
