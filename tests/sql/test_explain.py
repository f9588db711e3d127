"""`python -m local.explain` shows the T-SQL that the store sends, and docs/sqlserver.md names its transactions."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.aggregation.store import Aggregations
from core.errors import StoreUnavailable
from core.letters.store import Letters
from core.model.letters import LetterClaim
from core.model.release import DEFAULT_TRANSFORM
from core.replay.store import Replays
from core.settle.partition_store import Partitions
from core.store.script import Named, Outcome, Script
from core.store.sqlserver.batch import run_batch, run_text
from core.transforms.loading import load_transform
from local.explain import TRANSACTIONS, explained, lock_lines, main
from tests.offenders import holds_for
from tests.sql.statements import PORTION, RUN, STAGED, commit_of, every_run, every_script, replay_of, retry_of
from tests.sql.values import EPOCH, ROW_CLASSES

PICTURES = """
from dataclasses import dataclass
from core.model.rows import appended_to

VERSION = "pictures/1"

@appended_to("picture")
@dataclass(frozen=True, slots=True)
class Picture:
    image: bytes

def transform(event, references):
    return [Picture(event.body)]
"""
HOMES = load_transform(DEFAULT_TRANSFORM).row_classes


class Sending:
    """A Database that keeps the text that a server would be sent, and then is unavailable."""

    def __init__(self) -> None:
        self.text = ""

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return [(1,)]

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self.text = run_batch(script, rehearse)[0]
        raise StoreUnavailable("it was only to be sent")

    def close(self) -> None:
        return


def sent_by(verb: str) -> str:
    """Return the text that a verb of the store sends, with a row of each class and a letter."""
    database = Sending()
    partition = commit_of((), first=True, letters=False).partition
    replay = replace(replay_of(HOMES, letters=True), row_classes=HOMES)
    claim = LetterClaim(partition.stream, "claim-1", EPOCH, EPOCH, EPOCH, 5)
    verbs: dict[str, Callable[[], object]] = {
        "commit_batch": lambda: Partitions(database).commit_batch(commit_of(HOMES, first=False, letters=True)),
        "retry": lambda: Letters(database, Partitions(database)).commit_retry(retry_of(HOMES)),
        "replay": lambda: Replays(database, Partitions(database)).commit_replay(replay),
        "slices": lambda: Aggregations(database).commit_portion(RUN, STAGED, PORTION),
        "run": lambda: Aggregations(database).close_run(RUN, STAGED, EPOCH),
        "claim": lambda: Letters(database, Partitions(database)).claim_letters(claim),
    }
    with pytest.raises(StoreUnavailable):
        verbs[verb]()
    return database.text


@holds_for(TRANSACTIONS)
def test_a_transaction_is_explained_by_the_text_that_the_store_sends(name: str) -> None:
    lines = explained(name, HOMES).splitlines()
    remarks = [line for line in lines if line.startswith("--")]
    assert len(remarks) > 1
    assert lines == [*remarks, *sent_by(name).splitlines()], name


@holds_for(every_script())
def test_the_text_of_a_script_needs_no_value(name: str) -> None:
    if not name.startswith("rehearsal "):
        assert run_text(every_script()[name]) == every_run()[name][0]


TOP = r"(?: TOP \(@\w+\))?"
CHANGE = re.compile(
    rf"(?:INSERT INTO|UPDATE{TOP}|DELETE{TOP} FROM) hubledger\.(?P<named>\w+)"
    rf"|\b(?:UPDATE{TOP}|DELETE|DELETE FROM) (?P<alias>[a-z])\s[^;]*?\bhubledger\.(?P<aliased>\w+) AS (?P=alias)\b"
)


@holds_for(every_script())
def test_every_table_that_a_script_changes_is_among_its_locks_in_order(name: str) -> None:
    found = CHANGE.finditer(re.sub(r"--.*", "", every_run()[name][0]))
    changed = [one["named"] or one["aliased"] for one in found]
    lines = lock_lines(every_script()[name])
    locked = [line.split()[0] for line in lines if re.search(r"\b(?:INSERT|UPDATE|DELETE)\b", line)]
    assert list(dict.fromkeys(locked)) == list(dict.fromkeys(changed))


def test_the_locks_of_a_commit_are_listed_with_their_steps() -> None:
    shown = [" ".join(line.split()) for line in lock_lines(TRANSACTIONS["commit_batch"](HOMES))]
    stream, checkpoint, *_ = shown
    assert stream == "event_stream REPEATABLEREAD advance_checkpoint"
    assert checkpoint == "event_hub_checkpoint UPDATE advance_checkpoint"
    assert "home UPDATE and INSERT set Home" in shown
    assert shown[-2:] == ["event_hub_dead_letter INSERT add_letter", "batch_ledger INSERT record_batch"]


@holds_for(every_script())
def test_every_read_that_keeps_its_locks_is_among_them(name: str) -> None:
    hinted = re.findall(r"WITH \((?:[A-Z]+, )*?(REPEATABLEREAD|UPDLOCK)\b", every_run()[name][0])
    shown = re.findall(r"\b(REPEATABLEREAD|UPDLOCK)\b", "\n".join(lock_lines(every_script()[name])))
    assert sorted(shown) == sorted(hinted)


def test_the_command_prints_the_transactions_that_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claim", "commit_batch"]) == 0
    shown = capsys.readouterr().out
    assert shown == f"{explained('claim', HOMES)}\n\n{explained('commit_batch', HOMES)}\n"


def test_the_command_writes_the_tables_of_the_transform_that_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["commit_batch", "--transform", "examples.flight_info"]) == 0
    assert "INSERT INTO hubledger.flight_change" in capsys.readouterr().out


def test_the_command_prints_the_rights_with_the_statements_that_need_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rights"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "event_hub_dead_letter INSERT add_replayed_letters, add_letter" in lines
    assert "sensor_reading DELETE delete SensorReading, delete_subject SensorReading" in lines
    assert not any("flight_change" in line for line in lines)


def test_an_unknown_transform_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claim", "--transform", "core.transforms.nobody"]) == 1
    assert re.fullmatch(r"explain: .*core\.transforms\.nobody.*\n", capsys.readouterr().err)


def test_a_transform_whose_field_no_column_holds_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pictures.py").write_text(PICTURES, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("commit_batch", "rights"):
        assert main([name, "--transform", "pictures"]) == 1
        assert re.fullmatch(
            r"explain: TRANSFORM=pictures: pictures.py:10: Picture.image is bytes: a column holds .*\n",
            capsys.readouterr().err,
        )


def test_every_row_class_has_its_part_in_a_commit() -> None:
    text = explained("commit_batch", ROW_CLASSES)
    assert [one for one in ROW_CLASSES if f" {one.__name__}\n" not in text] == []
