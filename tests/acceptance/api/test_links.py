"""A resident's link over HTTP: made by the company's site, it opens one home, for a time."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from examples.home_security.transform import Home
from tests.acceptance.api.served import HUB, Reply, Served, segment
from tests.fakes.builders import commit, partition, settled

SECRET = "a secret of at least thirty-two octets"
ODD = 'h?x=1#"><script>'
HOMES = ("H1", "H2", ODD)


@pytest.fixture(scope="module")
def linking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A host that makes links, with some homes."""
    made = Served(tmp_path_factory.mktemp("links"), RESIDENT_LINK_SECRET=SECRET, RESIDENT_LINK_SECONDS="600")
    state = made.store.read_partition(partition("0", hub=HUB))
    rows = {number: [Home(one, "UTC", True)] for number, one in enumerate(HOMES)}
    made.store.commit_batch(commit(state, 0, len(HOMES) - 1, settled(rows)))
    yield made
    made.close()


def make(served: Served, home_id: str) -> Reply:
    return served.request("POST", f"/api/homes/{segment(home_id)}/links")


def own(served: Served, home_id: str, link: str) -> Reply:
    return served.get(f"homes/{segment(home_id)}/own-activity", headers={"X-Home-Link": link})


def test_a_link_opens_its_home_and_no_other(linking: Served) -> None:
    for home_id in HOMES:
        made = make(linking, home_id)
        assert (made.status, made.headers["cache-control"]) == (200, "no-store")
        assert made.json["page"] == f"/api/homes/{segment(home_id)}#link={made.json['link']}"
        answers = {other: own(linking, other, made.json["link"]) for other in HOMES}
        assert [other for other, answer in answers.items() if answer.status == 200] == [home_id]
        assert answers[home_id].json["home_id"] == home_id
        refused = [answer for answer in answers.values() if answer.status != 200]
        assert {(one.status, one.json["type"]) for one in refused} == {(403, "urn:hubledger:problem:not-allowed")}


def test_a_link_is_no_key_for_anything_else(linking: Served) -> None:
    link = make(linking, "H1").json["link"]
    for way in ({"link": link}, {"X-Home-Link": link}, {"code": link}):
        assert linking.get("homes/H1/own-activity", **way).status in (400, 403)


def test_the_end_of_a_link_is_that_of_the_setting(linking: Served) -> None:
    made = make(linking, "H2").json
    left = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(seconds=540) < left <= timedelta(seconds=600)


def test_a_link_is_made_only_for_a_registered_home_and_by_post(linking: Served) -> None:
    assert (make(linking, "NOWHERE").status, make(linking, "NOWHERE").fields) == (404, ["home_id"])
    assert make(linking, "a b").fields == ["home_id"]
    assert linking.get("homes/H1/links").status == 405


def test_bad_input_with_a_right_link_is_refused_by_its_name(linking: Served) -> None:
    headers = {"X-Home-Link": make(linking, "H1").json["link"]}
    assert linking.get("homes/H1/own-activity", headers=headers, until="yesterday").fields == ["until"]
    assert linking.get("homes/H1/own-activity", headers=headers, since="2026-01-01T00:00:00Z").fields == ["since"]
