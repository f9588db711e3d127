"""infra/hooks/deployer/address.py: the address that the database admits is found, and a person's choice stays."""

import pytest

from infra.hooks.deployer.address import ADDRESS, FOUND, SERVICES, choose_address, find_address, public_address
from infra.hooks.errors import HookRefused
from tests.infra.doubles import answering

HERE, THERE = "8.8.8.8", "9.9.9.9"
BOTH = {ADDRESS: HERE, FOUND: HERE}


def never() -> str:
    raise AssertionError("a service was asked")


def chosen(**environment: str) -> dict[str, str]:
    return choose_address(environment, lambda: HERE)


def test_an_address_that_is_missing_is_found() -> None:
    assert chosen() == BOTH
    assert chosen(**{ADDRESS: "", FOUND: THERE}) == BOTH


def test_an_address_that_a_hook_found_follows_the_machine() -> None:
    assert chosen(**{ADDRESS: THERE, FOUND: THERE}) == BOTH
    assert chosen(**BOTH) == {}


@pytest.mark.parametrize(
    "environment",
    [
        {ADDRESS: "none"},
        {ADDRESS: "none", "CI": "true"},
        {ADDRESS: THERE},
        {ADDRESS: THERE, FOUND: HERE},
        {"VNET_ENABLED": "true"},
    ],
)
def test_a_choice_of_a_person_stays_and_nobody_is_asked(environment: dict[str, str]) -> None:
    assert choose_address(environment, never) == {}


def test_a_pipeline_admits_its_own_machine_and_not_that_of_a_person() -> None:
    assert chosen(**{ADDRESS: THERE, "CI": "true"}) == BOTH
    assert chosen(**{ADDRESS: HERE, "CI": "true"}) == {}


@pytest.mark.parametrize("wrong", ["home", "10.0.0.4", "::1", "8.8.8", "8.8.8.8/32", "100.64.0.1", "0.0.0.0"])
def test_an_address_that_cannot_work_is_refused_with_the_way_to_set_it(wrong: str) -> None:
    with pytest.raises(HookRefused, match=r"DEPLOYER_ADDRESS: .*azd env set DEPLOYER_ADDRESS <address>"):
        choose_address({ADDRESS: wrong}, never)


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


def test_two_services_are_asked_by_https() -> None:
    assert len(SERVICES) == 2
    assert all(service.startswith("https://") for service in SERVICES)
