"""tests/offenders.py: a test of many cases lists those that fail, and no others."""

import pytest

from tests.offenders import holds_for


def test_every_case_that_fails_is_listed_with_its_reason() -> None:
    @holds_for(range(5))
    def check(number: int) -> None:
        assert number % 2 == 0, "odd"

    with pytest.raises(AssertionError) as failure:
        check()
    first, *listed = str(failure.value).splitlines()
    assert first == "2 of 5 cases fail"
    assert [line for line in listed if "odd" in line] == ["1: odd", "3: odd"]


def test_a_check_without_cases_fails() -> None:
    @holds_for(())
    def check(case: object) -> None:
        pass

    with pytest.raises(AssertionError, match="0 of 0 cases"):
        check()


@holds_for([2, 4])
def test_cases_that_all_hold_are_one_test(number: int) -> None:
    assert number % 2 == 0
