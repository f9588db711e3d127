"""local/recount/sample_recount.py: record, hub and store of a user's room agree, and every change in them is named."""

from pathlib import Path

import pytest

from local.feed.businesses import domain_of_sample
from local.feed.record import Copies
from local.feed.sample import keyed_by, read_sample
from tests.local.shop import Shop, minutes_of, shop
from tests.local.stores import Fault, fault, first_row, unnamed

EVENTS = 360
FLIGHTS = Path(__file__).parents[2] / "examples" / "flight_info" / "events.jsonl"
POISON = "rowid = (SELECT MIN(rowid) FROM event_hub_dead_letter WHERE error_class = 'poison')"
LINES = "stream_id, partition_id, sequence_number, 7, commit_number, order_id, customer_tier, amount, weight, due"
EARLIER = (  # the same row, of an earlier event
    "UPDATE shop_order AS s SET sequence_number = (SELECT MAX(l.sequence_number) FROM shop_order_line AS l"
    " WHERE l.order_id = 'o-3' AND l.sequence_number < s.sequence_number) WHERE order_id = 'o-3'"
)
RESOLVED = (
    "(partition_id, sequence_number) IN (SELECT partition_id, sequence_number FROM event_hub_dead_letter"
    " WHERE status = 'resolved')"
)


def changed(table: str, change: str, where: str, kinds: str) -> Fault:
    return fault(f"UPDATE {table} SET {change} WHERE {where}", kinds=kinds)


FAULTS = [
    fault(f"DELETE FROM shop_order_line WHERE {first_row('shop_order_line')}", kinds="shop_order_line", count=1),
    fault(f"INSERT INTO shop_order_line SELECT {LINES} FROM shop_order_line LIMIT 1", kinds="shop_order_line", count=1),
    fault(  # made of an earlier state
        "UPDATE shop_order_line SET customer_tier = 1 WHERE order_id = 'o-3' AND sequence_number > 100",
        kinds="shop_order_line",
    ),
    fault(f"DELETE FROM shop_order_line WHERE {RESOLVED}", kinds="shop_order_line"),
    *(
        changed("shop_order_line", change, first_row("shop_order_line"), "shop_order_line")
        for change in (
            "order_id = 'other'",
            "customer_tier = 9",
            "amount = '19.91'",
            "weight = 0.26",
            "due = '2026-03-10'",
            "ordinal = 5",
        )
    ),
    fault("DELETE FROM shop_order WHERE order_id = 'o-2'", kinds="shop_order", says=("missing: ('o-2',)",)),
    *(
        changed("shop_order", change, "order_id = 'o-1'", "shop_order")
        for change in (
            "status = 'new'",
            "at = '2026-03-01T07:05:00.000001Z'",
            "order_id = 'o-9'",
        )
    ),
    fault(EARLIER, kinds="shop_order", count=1),
    changed("shop_customer", "tier = 1", "customer_id = 'c-1'", "shop_customer"),  # an earlier state
    changed("shop_customer", "is_active = 0", "customer_id = 'c-1'", "shop_customer"),
    *(
        changed("event_hub_dead_letter", change, POISON, "letters")
        for change in (
            "body = CAST(body || x'20' AS BLOB)",
            "partition_key = 'c-1'",
            "error_class = 'unknown'",
            "status = 'waiting'",
            "error_class = 'refused', attempts = 6",  # the transform made no rows that a table could refuse
        )
    ),
    changed("event_hub_dead_letter", "attempts = 3", "error_class = 'unknown'", "letters"),
    fault(f"DELETE FROM event_hub_dead_letter WHERE {POISON}", kinds="letters outcomes"),
    fault(  # an order that was there in time is called missing
        "UPDATE event_hub_dead_letter SET error_class = 'reference' WHERE error_class = 'unknown'", kinds="letters"
    ),
    fault(
        "DELETE FROM batch_ledger WHERE partition_id = '2' AND commit_number = 2 AND kind = 'batch'",
        says=("ledger: hole in partition 2", "events are accounted for"),
    ),
    fault(
        "UPDATE batch_ledger SET written = written - 1, filtered = filtered + 1 WHERE commit_number = 1"
        " AND written > 0",
        kinds="outcomes",
    ),
    fault(
        "UPDATE event_hub_checkpoint SET sequence_number = sequence_number - 1 WHERE partition_id = '2'",
        kinds="checkpoint",
    ),
    fault("UPDATE shop_order_line SET sequence_number = sequence_number + 100000", says=("is no event of the hub",)),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    domain = shop()
    return Shop.after(tmp_path_factory.mktemp("shop"), domain, minutes_of(domain, EVENTS))


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
        copy.change_hub(statement)
        kinds = {difference.partition(":")[0] for difference in copy.recount()}
        assert "hub" in kinds, name
        assert ("checkpoint" in kinds) is (name != "other"), name


def test_an_event_that_was_sent_twice_has_its_rows_twice(tmp_path: Path) -> None:
    domain = shop()
    minutes = minutes_of(domain, 60)
    agrees = {}
    for copies in range(4):
        (tmp_path / str(copies)).mkdir()
        sent = [each for each in minutes for _ in range(copies)]
        made = Shop.after(tmp_path / str(copies), domain, sent)
        made.record.unlink()
        made.record_copies(minutes, Copies(1, 2))
        agrees[copies] = made.recount() == []
    assert agrees == {0: False, 1: True, 2: True, 3: False}


def test_a_state_that_several_partitions_wrote_is_the_newest_of_one_of_them(tmp_path: Path) -> None:
    domain = shop("status")  # the order o-1 is new in one partition and paid in another
    made = Shop.after(tmp_path, domain, minutes_of(domain, EVENTS))
    assert made.recount() == []
    made.change(
        "UPDATE shop_order SET (status, at, partition_id, sequence_number) = (SELECT 'new',"
        " '2026-03-01T09:00:00.000000Z', partition_id, MIN(sequence_number)"
        " FROM shop_order_line WHERE order_id = 'o-1') WHERE order_id = 'o-1'"
    )
    assert [difference.partition(":")[0] for difference in made.recount()] == ["shop_order"]


def test_a_state_that_a_column_orders_is_the_greatest_of_all_partitions(tmp_path: Path) -> None:
    sample = read_sample(FLIGHTS)
    domain = domain_of_sample("examples.flight_info.transform", keyed_by(FLIGHTS, sample, "status"))
    minutes = minutes_of(domain, 2 * len(sample))
    for name, given in {"in order": minutes, "the other way round": minutes[::-1]}.items():
        (tmp_path / name).mkdir()
        made = Shop.after(tmp_path / name, domain, given)
        assert made.recount() == []
    several = "carrier = 'LH' AND flight_number = 400"
    ((partitions,),) = made.change(f"SELECT COUNT(DISTINCT partition_id) FROM flight_change WHERE {several}")
    assert partitions > 1
    made.change(
        "UPDATE flight_status AS s SET (status, departure_gate, departs_at, arrives_at, changed_at, partition_id,"
        " sequence_number) = (SELECT c.status, c.departure_gate, c.departs_at, c.arrives_at, c.changed_at,"
        " c.partition_id, c.sequence_number FROM flight_change AS c WHERE c.carrier = 'LH' AND c.flight_number = 400"
        f" ORDER BY c.changed_at LIMIT 1) WHERE {several}"
    )
    assert [difference.partition(":")[0] for difference in made.recount()] == ["flight_status"]


def test_states_that_come_from_other_partitions_may_be_of_any_time_but_must_be_states(tmp_path: Path) -> None:
    domain = shop("orderId")  # so customers have no key, and their orders are in other partitions
    made = Shop.after(tmp_path, domain, minutes_of(domain, EVENTS))
    assert made.recount() == []
    tiers = "UPDATE shop_order_line SET customer_tier = {} WHERE order_id = 'o-3'"
    made.change(tiers.format(1))
    assert made.recount() == []
    made.change(tiers.format(2))
    assert {difference.partition(":")[0] for difference in made.recount()} == {"shop_order_line"}
