"""infra/hooks/deployer/address.py: the address that firewalls admit is found, and a person's choice stays."""

import pytest

from infra.hooks.deployer.address import ADDRESS, address_of, find_address, public_address
from infra.hooks.errors import HookRefused
from tests.infra.doubles import answering

HERE, THERE = "8.8.8.8", "9.9.9.9"


def never() -> str:
    raise AssertionError("a service was asked")


def test_an_address_that_nobody_chose_is_found() -> None:
    assert address_of({}, lambda: HERE) == HERE
    assert address_of({ADDRESS: ""}, lambda: HERE) == HERE


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({ADDRESS: "none"}, None),
        ({ADDRESS: "none", "CI": "true"}, None),
        ({ADDRESS: THERE}, THERE),
        ({"VNET_ENABLED": "true"}, None),
        ({"VNET_ENABLED": "true", ADDRESS: THERE}, None),
    ],
)
def test_a_choice_of_a_person_stays_and_nobody_is_asked(environment: dict[str, str], address: str | None) -> None:
    assert address_of(environment, never) == address


def test_a_pipeline_admits_its_own_machine_and_not_that_of_a_person() -> None:
    assert address_of({ADDRESS: THERE, "CI": "true"}, lambda: HERE) == HERE


@pytest.mark.parametrize("wrong", ["home", "10.0.0.4", "::1", "8.8.8", "8.8.8.8/32", "100.64.0.1", "0.0.0.0"])
def test_an_address_that_cannot_work_is_refused_with_the_way_to_set_it(wrong: str) -> None:
    with pytest.raises(HookRefused, match=r"DEPLOYER_ADDRESS: .*azd env set DEPLOYER_ADDRESS <address>"):
        address_of({ADDRESS: wrong}, never)


def test_an_address_is_read_in_its_plain_form() -> None:
    assert public_address(f" {HERE}\n") == HERE


def test_the_second_service_answers_for_the_first() -> None:
    with answering((500, "no")) as broken, answering((200, f"{HERE}\n")) as working:
        assert find_address([broken, working]) == HERE


@pytest.mark.parametrize("answer", ["<html>sign in to this network</html>", "192.168.1.2", "2001:db8::1", ""])
def test_an_answer_that_is_no_public_address_is_no_address(answer: str) -> None:
    with (
        answering((200, answer)) as address,
        pytest.raises(HookRefused, match=r"not found: set it by `azd env set DEPLOYER_ADDRESS <address>`") as refusal,
    ):
        find_address([address, "http://127.0.0.1:1"])
    assert len(str(refusal.value).splitlines()) == 1
