"""The arguments that the app's commands share."""

from argparse import ArgumentTypeError

import pytest

from handlers.arguments import reason_of


@pytest.mark.parametrize("reason", ["why", "a\nreason", "x" * 400])
def test_a_reason_is_taken_as_it_is(reason: str) -> None:
    assert reason_of(reason) == reason


@pytest.mark.parametrize("reason", ["", "no", " \t\n ", "x" * 401])
def test_a_reason_that_is_blank_too_short_or_too_long_is_refused_with_its_length(reason: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"3 to 400 characters.* has {len(reason)}$"):
        reason_of(reason)
