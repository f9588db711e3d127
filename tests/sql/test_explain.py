"""`python -m local.explain` shows the T-SQL that the store sends, and docs/sqlserver.md names its transactions."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from core.aggregation.store import close_run_script, portion_script
from core.letters.store import claim_script, retry_script
from core.model.letters import LetterClaim
from core.model.release import DEFAULT_TRANSFORM
from core.replay.store import commit_script
from core.settle.partition_store import batch_script
from core.store.sqlserver.batch import run_batch, run_text
from core.transforms.loading import load_transform
from local.explain import TRANSACTIONS, explained, lock_lines, main
from tests.offenders import holds_for
from tests.sql.statements import (
    PORTION,
    RUN,
    STAGED,
    commit_of,
    every_run,
    every_script,
    replay_of,
    retry_of,
)
from tests.sql.values import EPOCH

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


def sent_by(verb: str) -> str:
    """Return the text that a verb of the store sends, with a row of each class and a letter."""
    partition = commit_of((), first=True, letters=False).partition
    claim = LetterClaim(partition.stream, "claim-1", EPOCH, EPOCH, EPOCH, 5)
    scripts = {
        "commit_batch": batch_script(commit_of(HOMES, first=False, letters=True)),
        "retry": retry_script(retry_of(HOMES)),
        "replay": commit_script(replace(replay_of(HOMES, letters=True), row_classes=HOMES)),
        "slices": portion_script(RUN, STAGED, PORTION),
        "run": close_run_script(RUN, STAGED, EPOCH),
        "claim": claim_script(claim, 1),
    }
    return run_batch(scripts[verb], rehearse=False)[0]


@holds_for(TRANSACTIONS)
def test_a_transaction_is_explained_by_the_text_that_the_store_sends(name: str) -> None:
    lines = explained(name, HOMES).splitlines()
    remarks = [line for line in lines if line.startswith("--")]
    assert len(remarks) > 1
    assert lines == [*remarks, *sent_by(name).splitlines()], name


@holds_for(every_script())
def test_every_read_that_locks_is_among_the_locks_of_a_script_whose_text_needs_no_value(name: str) -> None:
    script, text = every_script()[name], every_run()[name][0]
    hinted = re.findall(r"WITH \((?:[A-Z]+, )*?(REPEATABLEREAD|UPDLOCK)\b", text)
    assert sorted(re.findall(r"\b(REPEATABLEREAD|UPDLOCK)\b", "\n".join(lock_lines(script)))) == sorted(hinted)
    assert name.startswith("rehearsal ") or run_text(script) == text


def test_the_locks_of_a_commit_are_listed_with_their_steps() -> None:
    shown = [" ".join(line.split()) for line in lock_lines(TRANSACTIONS["commit_batch"](HOMES))]
    stream, checkpoint, *_ = shown
    assert stream == "event_stream REPEATABLEREAD advance_checkpoint"
    assert checkpoint == "event_hub_checkpoint UPDATE advance_checkpoint"
    assert "home UPDATE and INSERT set Home" in shown
    assert shown[-2:] == ["event_hub_dead_letter INSERT add_letter", "batch_ledger INSERT record_batch"]


def test_the_command_prints_what_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claim", "commit_batch"]) == 0
    shown = capsys.readouterr().out
    assert shown == f"{explained('claim', HOMES)}\n\n{explained('commit_batch', HOMES)}\n"
    assert main(["commit_batch", "--transform", "examples.flight_info"]) == 0
    assert "INSERT INTO hubledger.flight_change" in capsys.readouterr().out
    assert main(["rights"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "event_hub_dead_letter INSERT add_replayed_letters, add_letter" in lines
    assert "sensor_reading DELETE delete SensorReading, delete_subject SensorReading" in lines
    assert not any("flight_change" in line for line in lines)


def test_a_transform_that_is_unknown_or_whose_field_no_column_holds_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["claim", "--transform", "core.transforms.nobody"]) == 1
    assert re.fullmatch(r"explain: .*core\.transforms\.nobody.*\n", capsys.readouterr().err)
    (tmp_path / "pictures.py").write_text(PICTURES, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    said = r"explain: TRANSFORM=pictures: pictures.py:10: Picture.image is bytes: a column holds .*\n"
    for name in ("commit_batch", "rights"):
        assert main([name, "--transform", "pictures"]) == 1
        assert re.fullmatch(said, capsys.readouterr().err)
