from local.functions_host.durable.management import Query


def test_names_match_in_any_case_and_unreadable_values_count_as_not_given() -> None:
    query = Query({"SHOWINPUT": "True", "showHistory": "perhaps"})
    assert query.claims("showInput")
    assert query.claims("showHistory", default=True)
