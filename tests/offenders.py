"""A rule over many cases as one test that lists every case which breaks it."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Signature
from typing import TypeVar

Case = TypeVar("Case")


def holds_for(cases: Iterable[Case]) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Turn the check of one case into a test of all cases. A test without cases fails."""
    given = list(cases)

    def test_of(check: Callable[[Case], None]) -> Callable[[], None]:
        @wraps(check)
        def test() -> None:
            offenders = [f"{case}: {fault}" for case in given for fault in _faults(check, case)]
            if offenders or not given:
                raise AssertionError("\n".join([f"{len(offenders)} of {len(given)} cases fail", *offenders]))

        test.__signature__ = Signature()  # type: ignore[attr-defined]  # the case is no fixture
        return test

    return test_of


def _faults(check: Callable[[Case], None], case: Case) -> list[str]:
    try:
        check(case)
    except AssertionError as fault:
        return [str(fault)]
    return []
