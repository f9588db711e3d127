import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest

from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import load_transform, rooms_of
from local.event_hubs.codec import Raw, Symbol, encode
from local.event_hubs.events import Event as HubEvent
from local.event_hubs.events import Unstamped, stamp
from local.event_hubs.log import Disk
from local.feed.businesses import Domain
from local.feed.planned_events import Minute
from local.feed.record import ONCE
from local.recount.sample_recount import recount_sample
from local.recount.stored import read_log
from tests.fakes import trigger_events
from tests.local.stores import PARTITIONS, Fault, Files, first_row, ingest, settle_letters, shop, unnamed, write_record

EVENTS = 360
FLIGHTS = Path(__file__).parents[3] / "examples" / "flight_info" / "events.jsonl"
DATA = b"\x00\x53\x75"  # an AMQP section of data begins with it
POISON = "rowid = (SELECT MIN(rowid) FROM event_hub_dead_letter WHERE error_class = 'poison')"
LINES = "stream_id, partition_id, sequence_number, 7, commit_number, order_id, customer_tier, amount, weight, due"
LETTER = f"UPDATE event_hub_dead_letter SET {{}} WHERE {POISON}"
LINE = f"UPDATE shop_order_line SET {{}} WHERE {first_row('shop_order_line')}"
RESOLVED = (
    "(partition_id, sequence_number) IN (SELECT partition_id, sequence_number FROM event_hub_dead_letter"
    " WHERE status = 'resolved')"
)
FAULTS: list[Fault] = [
    (f"DELETE FROM shop_order_line WHERE {first_row('shop_order_line')}", "shop_order_line", ""),
    (f"INSERT INTO shop_order_line SELECT {LINES} FROM shop_order_line LIMIT 1", "shop_order_line", ""),
    (LINE.format("amount = '19.91'"), "shop_order_line", ""),
    (  # made of an earlier state
        "UPDATE shop_order_line SET customer_tier = 1 WHERE order_id = 'o-3' AND sequence_number > 100",
        "shop_order_line",
        "",
    ),
    (f"DELETE FROM shop_order_line WHERE {RESOLVED}", "shop_order_line", ""),
    ("DELETE FROM shop_order WHERE order_id = 'o-2'", "shop_order", "missing: ('o-2',)"),
    (  # the same row, of an earlier event
        "UPDATE shop_order AS s SET sequence_number = (SELECT MAX(l.sequence_number) FROM shop_order_line AS l"
        " WHERE l.order_id = 'o-3' AND l.sequence_number < s.sequence_number) WHERE order_id = 'o-3'",
        "shop_order",
        "",
    ),
    ("UPDATE shop_customer SET tier = 1 WHERE customer_id = 'c-1'", "shop_customer", ""),  # an earlier state
    (LETTER.format("body = CAST(body || x'20' AS BLOB)"), "letters", ""),
    (LETTER.format("error_class = 'refused', attempts = 6"), "letters", ""),  # it made no rows to refuse
    (
        "UPDATE shop_order_line SET sequence_number = sequence_number + 100000",
        "shop_order_line",
        "is no event of the hub",
    ),
]


def minutes_of(domain: Domain, events: int = EVENTS) -> list[Minute]:
    return list(domain.story(1, events, 1, 0, None))


def write_hub(path: Path, minutes: Iterable[Minute]) -> None:
    """Write the emulator's file with the events where `ingest` has them."""
    ends = dict.fromkeys(range(PARTITIONS), 0)
    with closing(Disk(path)) as disk:
        for minute in minutes:
            key = minute.partition_key
            number = crc32((key or "").encode()) % PARTITIONS
            annotations = [] if key is None else [Raw(encode(Symbol("x-opt-partition-key"))), Raw(encode(key))]
            for event in minute.events:
                at = ends[number]
                ends[number] += 1
                stamped = stamp(Unstamped(annotations, DATA + encode(event.body)), at, at, 1_767_225_600_000)
                disk.add("telemetry", str(number), [stamped])
        disk.commit()


class Shop(Files):
    domain = shop()

    @property
    def hub(self) -> Path:
        return self._folder / "event-hubs.db"

    @classmethod
    def after(cls, folder: Path, domain: Domain, minutes: list[Minute]) -> "Shop":
        made = cls(folder)
        made.domain = domain
        migrate_sqlite(made.store, rooms_of(load_transform(domain.transform).row_classes))
        write_hub(made.hub, minutes)
        ingest(made.store, minutes, domain)
        settle_letters(made.store, domain)
        made.change("UPDATE event_hub_dead_letter SET status = 'exhausted', attempts = 6 WHERE status = 'waiting'")
        write_record(made.record, [(minute, ONCE) for minute in minutes], domain)
        return made

    def recount(self) -> list[str]:
        return recount_sample(self.domain, self.hub, self.store, self.record)

    def kinds(self) -> set[str]:
        return {difference.partition(":")[0] for difference in self.recount()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.after(tmp_path_factory.mktemp("shop"), shop(), minutes_of(shop()))


@pytest.mark.slow
def test_a_room_agrees_with_its_events_and_every_planted_fault_is_named(made: Shop, tmp_path: Path) -> None:
    assert made.recount() == []
    assert made.change("SELECT COUNT(*) FROM event_hub_dead_letter WHERE status = 'resolved'") == [(1,)]
    assert unnamed(FAULTS, made, tmp_path) == {}


def test_an_event_that_the_hub_lost_or_that_was_never_published_is_named(made: Shop, tmp_path: Path) -> None:
    last = "partition_id = '2' AND sequence_number = (SELECT MAX(sequence_number) FROM event WHERE partition_id = '2')"
    for name, statement in {
        "lost": f"DELETE FROM event WHERE {last}",
        "more": "INSERT INTO event SELECT hub, partition_id, sequence_number + 1, 0, 0, payload FROM event"
        f" WHERE {last}",
        "other": f"UPDATE event SET payload = (SELECT payload FROM event WHERE partition_id = '0') WHERE {last}",
    }.items():
        copy = made.copied_to(tmp_path / name)
        with closing(sqlite3.connect(copy.hub, isolation_level=None)) as connection:
            connection.execute(statement)
        kinds = copy.kinds()
        assert "hub" in kinds, name
        assert ("checkpoint" in kinds) is (name != "other"), name


def test_a_state_that_several_partitions_wrote_is_the_newest_of_one_of_them(tmp_path: Path) -> None:
    domain = shop("status")  # the order o-1 is new in one partition and paid in another
    made = Shop.after(tmp_path, domain, minutes_of(domain))
    assert made.recount() == []
    made.change(
        "UPDATE shop_order SET (status, at, partition_id, sequence_number) = (SELECT 'new',"
        " '2026-03-01T09:00:00.000000Z', partition_id, MIN(sequence_number)"
        " FROM shop_order_line WHERE order_id = 'o-1') WHERE order_id = 'o-1'"
    )
    assert made.kinds() == {"shop_order"}


def test_states_that_come_from_other_partitions_may_be_of_any_time_but_must_be_states(tmp_path: Path) -> None:
    domain = shop("orderId")  # so customers have no key, and their orders are in other partitions
    made = Shop.after(tmp_path, domain, minutes_of(domain))
    tiers = "UPDATE shop_order_line SET customer_tier = {} WHERE order_id = 'o-3'"
    made.change(tiers.format(1))
    assert made.recount() == []
    made.change(tiers.format(2))
    assert made.kinds() == {"shop_order_line"}


def test_an_event_of_the_hub_s_file_is_the_one_that_the_real_trigger_gave(tmp_path: Path) -> None:
    rows = trigger_events.delivered()
    with closing(Disk(tmp_path / "hub.db")) as disk:
        disk.add("telemetry", "0", [HubEvent(number, number, 0, one.message) for number, one in enumerate(rows)])
        disk.commit()
    found = [event for _, event in read_log(tmp_path / "hub.db")]
    for one, ours in zip(rows, found, strict=True):
        given = one.event()
        for name in ("partition_key", "properties", "body", "sent_annotations"):
            assert getattr(ours, name) == getattr(given, name), (one.name, name)
