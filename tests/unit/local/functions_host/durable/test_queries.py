import pytest

from local.functions_host.durable.management import Query, QueryFault


def test_names_match_in_any_case_and_unreadable_values_count_as_not_given() -> None:
    query = Query({"SHOWINPUT": "True", "showHistory": "perhaps"})
    assert query.claims("showInput")
    assert query.claims("showHistory", default=True)


def test_a_name_that_is_not_emulated_is_refused() -> None:
    with pytest.raises(QueryFault, match="pollingInterval is not emulated"):
        Query({"pollinginterval": "1"}).refuse("timeout", "pollingInterval")
