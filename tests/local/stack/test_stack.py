"""stack.py: the feed publishes the domain that the run has chosen, and its record names the transform in full."""

from pathlib import Path

import pytest

from local.feed.businesses import FLIGHTS, HOMES, Domain, domain_of_sample
from local.feed.options import parse_options
from local.feed.sample import keyed_by, read_sample
from local.stack.stack import FeedOrder, words_of
from tests.local.stores import shop

EVENTS = Path("examples/home_security/events.jsonl")


def of_file(transform: str) -> Domain:
    return domain_of_sample(transform, keyed_by(EVENTS.resolve(), read_sample(EVENTS), "home_id"))


@pytest.mark.parametrize(
    "domain",
    [HOMES, FLIGHTS, shop(), of_file(HOMES.transform), of_file("examples.mine")],
    ids=["homes", "flights", "room", "homes from a file", "room among the examples"],
)
def test_the_options_lead_the_feed_to_the_same_domain(domain: Domain) -> None:
    options = parse_options(words_of(FeedOrder(domain, 7, "20", "full", 3, ("--duplicates", "0.5"))))
    found: Domain = options.transform
    assert (found.transform, found.sample) == (domain.transform, domain.sample)
    assert (options.events, options.rate, options.seed, options.duplicates) == (20, None, 3, 0.5)
    assert options.senders == (7 if domain.sample is None else 1)
