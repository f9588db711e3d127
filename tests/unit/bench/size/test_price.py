"""bench/size/price.py: a feature that is switched off leaves nothing in its store, and all others stay."""

import sqlite3
from contextlib import closing

import pytest

from bench.samples import SIZE
from bench.size.features import FEATURES
from bench.size.price import WARM, Variant, ingested, share_of

BATCHES = 4
TRACES = {
    "range of the ledger": "SELECT COUNT(*) FROM batch_ledger",
    "bodies of letters": "SELECT SUM(body_kept = 1) FROM event_hub_dead_letter",
    "compare-and-set of the checkpoint": "SELECT commit_number > 1 FROM event_hub_checkpoint",
}


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> list[Variant]:
    return ingested(tmp_path_factory.mktemp("price"), BATCHES)


def ask(variant: Variant, query: str) -> int:
    with closing(sqlite3.connect(variant.path)) as connection:
        return int(connection.execute(query).fetchone()[0])


def test_each_variant_lacks_what_it_goes_without_and_has_the_rest(variants: list[Variant]) -> None:
    for variant in variants:
        off = {feature.name for feature in variant.without}
        without = {name for name, query in TRACES.items() if not ask(variant, query)}
        assert without == off & set(TRACES)


def test_every_variant_writes_the_same_rows_and_letters(variants: list[Variant]) -> None:
    for query in ("SELECT COUNT(*) FROM sensor_reading", "SELECT COUNT(*) FROM event_hub_dead_letter"):
        assert len({ask(variant, query) for variant in variants}) == 1
    written = sum(ask(variants[0], f"SELECT SUM({name}) FROM batch_ledger") for name in ("written", "filtered"))
    assert written + ask(variants[0], "SELECT COUNT(*) FROM event_hub_dead_letter") == BATCHES * SIZE


def test_the_journal_is_on_unless_it_is_off(variants: list[Variant]) -> None:
    journaled = [variant.means.journal is not variants[-1].means.journal for variant in variants]
    assert journaled == [not any(one.is_journal for one in variant.without) for variant in variants]


def test_there_is_a_variant_for_each_feature_and_one_without_any(variants: list[Variant]) -> None:
    assert [variant.without for variant in variants] == [(), *((one,) for one in FEATURES), FEATURES]


def test_a_share_is_that_of_the_middle_batch_without_the_first_ones() -> None:
    whole, less = [9.0] * WARM + [1.0] * 9 + [50.0], [1.0] * WARM + [0.75] * 9 + [0.1]
    share, spread = share_of(whole, less)
    assert (share, spread) == (25.0, 0.0)
