"""The rooms of the hooks: their rights in batches, and the event that proves an app of theirs."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.transforms.loading import Room
from infra.hooks import room
from infra.hooks.errors import HookRefused
from infra.hooks.room import rights_of, rooms_in, sample_of, transform_in
from infra.hooks.smoke.event import body_of
from tests.fakes.orders_room import ORDERS, write_room
from tests.fakes.written_modules import written_modules

APP = {"TRANSFORM": ORDERS}


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Path]:
    """Write a user's room, and make it importable beside the empty folder of ours."""
    import apps

    folder = write_room(tmp_path)
    apps.__path__.append(str(folder.parent))
    with written_modules(tmp_path):
        yield folder
    apps.__path__.remove(str(folder.parent))
    assert sys.modules["apps"] is apps, "the tests that follow would import another package"


def test_the_rooms_of_an_environment_are_those_of_its_transform_by_default_an_example(orders: Path) -> None:
    assert [one.name for one in rooms_in({})] == ["examples.home_security"]
    assert rooms_in(APP) == (Room(ORDERS, orders),)


def test_every_fault_of_a_transform_is_a_line_that_names_it(orders: Path) -> None:
    transform = orders / "transform.py"
    transform.write_text(transform.read_text().replace("cents: int", "cents: bytes").replace('"orders/1"', "7"))
    with pytest.raises(HookRefused) as refusal:
        transform_in(APP)
    assert len(refusal.value.faults) >= 2
    assert all(one.startswith(f"TRANSFORM={ORDERS}: ") for one in refusal.value.faults)


def test_a_missing_package_is_named_with_the_file_that_must_have_it(orders: Path) -> None:
    (orders / "amounts.py").write_text("import no_such_package\n")
    with pytest.raises(HookRefused, match=r"No module named 'no_such_package'\n.*requirements\.txt"):
        transform_in(APP)


@pytest.mark.parametrize(
    ("text", "batches"),
    [
        ("GRANT SELECT ON a TO b;\n", ["GRANT SELECT ON a TO b;"]),
        ("GRANT 1;\nGO\nGRANT 2;\n  go 1 ; -- twice\n\nGO\n", ["GRANT 1;", "GRANT 2;"]),
        ("\ufeffGRANT 1; -- GO\r\nGO\r\nGRANT GOAL;\r\n", ["GRANT 1; -- GO", "GRANT GOAL;"]),
        ("GO", []),
    ],
)
def test_rights_are_parted_at_each_go_that_stands_alone(tmp_path: Path, text: str, batches: list[str]) -> None:
    (tmp_path / room.PERMISSIONS).write_bytes(text.encode())
    assert rights_of(Room("apps.x", tmp_path)) == tuple(batches)


def test_a_room_without_rights_has_none(tmp_path: Path) -> None:
    assert rights_of(Room("apps.x", tmp_path)) == ()


def test_the_event_of_the_proof_is_the_first_sample_that_becomes_a_row_alone(
    orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sample_of(transform_in(APP)) == (b'"customer c-1 Ada"', f"line 3 of {ORDERS}/events.jsonl")
    assert body_of(orders, APP) == b'"customer c-1 Ada"'
    assert "line 3 of apps.orders/events.jsonl; SMOKE_EVENT names" in capsys.readouterr().out


@pytest.mark.parametrize("samples", [None, b"", b'\n"line c-1 2"\nnonsense\n\xff\n'])
def test_without_such_a_sample_there_is_no_event(orders: Path, samples: bytes | None) -> None:
    (orders / "events.jsonl").unlink()
    if samples is not None:
        (orders / "events.jsonl").write_bytes(samples)
    assert body_of(orders, APP) is None
