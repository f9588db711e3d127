"""local/trials/any_body.py: a body that becomes neither rows nor a letter is found."""

from dataclasses import dataclass

import pytest

from examples.flight_info import transform as flight_info
from examples.home_security import transform as home_security
from examples.home_security.transform import Home
from hubledger.testing import check_any_body
from tests.local.trials.conftest import Plant


@dataclass
class Message:
    name: str
    ppm: int
    note: str = ""


DECODE = """try: body = json.loads(event.body)
    except (ValueError, RecursionError) as error: raise PoisonEvent(str(error)) from error
    if not isinstance(body, dict) or set(body) - {'name', 'ppm', 'note'}: raise PoisonEvent('other fields')
    if not isinstance(body.get('name'), str) or type(body.get('ppm')) is not int: raise PoisonEvent('no name or number')
"""
ANY_FIELDS = """try: body = json.loads(event.body)
    except (ValueError, RecursionError) as error: raise PoisonEvent(str(error)) from error
    if not isinstance(body, dict) or not {'name', 'ppm'} <= set(body): raise PoisonEvent('no message')
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("return reading(event.body.decode())", "UnicodeDecodeError"),
        ("return reading(json.loads(event.body)['name'])", "JSONDecodeError"),
        ("if text[:1] == '\"': raise KeyError(text)\n    raise PoisonEvent(text)", "KeyError"),
        (f"{ANY_FIELDS}    return reading(body['name'].upper())", "AttributeError"),
        (f"{DECODE}    return reading(body['name'], 10 // body['ppm'])", "ZeroDivisionError"),
        (f"{DECODE}    return reading(body['name'], (body['note'], body['ppm'])[1])", "KeyError: 'note'"),
        (f"{DECODE}    return reading(body['name'], float('nan') if body['ppm'] > 10 else 1)", "cannot be stored"),
    ],
)
def test_a_body_that_raises_anything_but_poison_or_whose_rows_do_not_fit_is_found(
    plant: Plant, statement: str, fault: str
) -> None:
    with pytest.raises(AssertionError, match=fault):
        check_any_body(plant(statement), Message)


@pytest.mark.slow
def test_a_transform_that_refuses_what_it_cannot_use_passes(plant: Plant) -> None:
    check_any_body(plant(f"{DECODE}    return reading(body['name'], body['ppm'] % 7)"), Message)
    check_any_body(plant("raise PoisonEvent(text)"))


@pytest.mark.slow
def test_our_own_transforms_pass() -> None:
    check_any_body(home_security, home_security._Body, references=[Home("home-1", "UTC", True)], examples=50)
    check_any_body(flight_info, flight_info._Change, examples=50)
