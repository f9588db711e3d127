from datetime import UTC, datetime

import pytest

from local.functions_host.durable.instances import Status
from local.functions_host.durable.orchestrations import Query, QueryFault


def test_names_match_in_any_case_and_unreadable_values_count_as_not_given() -> None:
    query = Query({"SHOWINPUT": "True", "top": "x", "createdTimeFrom": "never", "runtimeStatus": "failed,Nonsense"})
    assert query.claims("showInput")
    assert query.claims("showHistory", default=True)
    wanted = query.instances("a")
    assert (wanted.top, wanted.created_from, wanted.after) == (100, None, "a")
    assert wanted.statuses == [Status.FAILED]


def test_an_instant_without_a_zone_is_utc() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    for text in ("2026-11-21T12:00:00", "2026-11-21T12:00:00.000000Z"):
        assert Query({"createdTimeTo": text}).instant("createdTimeTo") == noon


def test_a_name_that_is_not_emulated_is_refused() -> None:
    with pytest.raises(QueryFault, match="pollingInterval is not emulated"):
        Query({"pollinginterval": "1"}).refuse("timeout", "pollingInterval")
