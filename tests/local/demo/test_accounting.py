"""local/demo/accounting.py: the wait of a demo ends, and says what it waits for."""

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.demo.accounting import Accounting, NoProgress, Waited
from tests.fakes.builders import keep_letters, partition
from tests.fakes.engines import SqliteEngine


def test_a_wait_without_progress_ends_and_names_the_letters_that_are_in_the_way(
    sqlite: SqliteEngine, tmp_path: Path
) -> None:
    store, record, log = sqlite.open(), tmp_path / "record.db", tmp_path / "host.log"
    with closing(sqlite3.connect(record)):
        log.write_text("the last line")
    keep_letters(store, {0: "a"}, status="exhausted", error="the process died")
    keep_letters(store, {0: "a"}, partition("1"), status="discarded", error="given up")
    store.close()

    def nothing(*_: object) -> None:
        pass

    child: Any = SimpleNamespace(running=True, exit_code=nothing, refuse_dead=nothing)
    watch = SimpleNamespace(books=None, silence="")
    consumers: Any = SimpleNamespace(watch=watch, refuse_dead=nothing, logs=[log])
    stack: Any = SimpleNamespace(pause=nothing, place=SimpleNamespace(live=sqlite.path))
    accounting = Accounting(stack, consumers, Waited(child, record, patience=0.05))
    with pytest.raises(
        NoProgress, match=r"accounted for.*; 1 of class unknown, exhausted: .*the process died"
    ) as ended:
        accounting.wait([], {}, child)
    assert "given up" not in str(ended.value)
