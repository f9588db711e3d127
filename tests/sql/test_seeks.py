"""Statements that meet large tables seek, as no plan can be read here: their conditions are those of an index.

No bounded statement locks a whole table: its rows, and the indexes that it changes, give the number of its locks.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from core.aggregation.tick import PORTION
from core.model.aggregates import Aggregate
from core.model.commits import ROWS_AT_ONCE
from core.model.letters import TRANSACTION_LIMIT
from core.model.rows import row_table
from core.purge.task import PurgeKind
from core.store.queries import load_queries
from core.store.script import RowVerb, of_rows
from core.store.sqlserver.statements import rows_query
from core.transforms.loading import load_aggregates
from local.explain import uses_of
from tests.fakes.rooms import all_migrations
from tests.offenders import holds_for
from tests.sql.statements import without_comments
from tests.sql.values import ROW_CLASSES

ROOT = Path(__file__).parents[2]
_STEP = re.compile(
    r"CREATE TABLE hubledger\.(?P<made>\w+) \((?P<columns>.*?)\n *\)[^;]*;"
    r"|DROP TABLE IF EXISTS hubledger\.(?P<gone>\w+)"
    r"|CREATE (?:UNIQUE )?(?:CLUSTERED )?INDEX (?P<index>\w+)\s+ON hubledger\.(?P<table>\w+) \((?P<keys>[^)]*)\)"
    r"(?:\s+INCLUDE \((?P<included>[^)]*)\))?(?:\s+WHERE (?P<condition>(?:(?!\s+WITH \()[^;])*))?",
    re.S,
)
_KEY = re.compile(r"CONSTRAINT (\w+) (?:PRIMARY KEY|UNIQUE) \(([^)]*)\)")


@dataclass(frozen=True)
class Index:
    name: str
    keys: tuple[str, ...]
    included: tuple[str, ...] = ()
    condition: str = ""

    @property
    def filters(self) -> set[str]:
        return set(re.findall(r"\b(\w+) (?:IN|=|<>|IS)\s", self.condition))


@cache
def indexes() -> Mapping[str, Mapping[str, Index]]:
    found: dict[str, dict[str, Index]] = {}
    for migration in all_migrations("sqlserver"):
        text = without_comments(migration.text).replace("''", "'").replace("')", ";")
        for step in _STEP.finditer(text):
            if step["gone"]:
                found.pop(step["gone"], None)
            elif step["made"]:
                keys = _KEY.findall(step["columns"])
                found.setdefault(step["made"], {name: Index(name, _names(columns)) for name, columns in keys})
            elif step["table"]:
                one = Index(step["index"], _names(step["keys"]), _names(step["included"]), step["condition"] or "")
                found[step["table"]][step["index"]] = one
    return found


def compared(text: str, alias: str) -> tuple[set[str], set[str]]:
    """Return the columns that a statement compares bare, on the left of a comparison: for equality, and in all.

    Without an alias, the columns of a statement about one table.
    """
    column = rf"(?<![\w.@]){alias and alias + '[.]'}\[?(\w+)\]?(?: COLLATE \w+)?"
    equal = set(re.findall(rf"{column} (?:=|IS NULL)(?=\s|;)", text))
    ranged = set(re.findall(rf"{column} (?:IN|<|>|<=|>=|BETWEEN|IS NOT NULL)(?=\s|$)", text))
    return equal, equal | ranged


def sought(text: str, alias: str, index: Index) -> tuple[str, ...]:
    """Return the leading columns of an index by which a statement seeks: all but the last are compared for equality."""
    equal, every = compared(text, alias)
    keys: list[str] = []
    for name in index.keys:
        if name in every:
            keys.append(name)
        if name not in equal:
            break
    return tuple(keys)


def _names(columns: str | None) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", columns or ""))


LETTERS = "event_hub_dead_letter"
OPEN, HELD = f"ix_{LETTERS}_open", f"ix_{LETTERS}_held"
PARTITION = ("stream_id", "partition_id")
OF_KEY = (*PARTITION, "key_hash")
SEEKS = {  # statement, alias: table, index, the columns that are sought
    ("read_open_keys", "d"): (LETTERS, OPEN, OF_KEY),
    ("find_open_letters", "o"): (LETTERS, OPEN, (*OF_KEY, "sequence_number")),
    ("free_letters", "d"): (LETTERS, HELD, ("stream_id", "partition_id", "held_behind")),
    ("free_letters", "o"): (LETTERS, OPEN, (*OF_KEY, "sequence_number")),
    ("order_letters", "o"): (LETTERS, OPEN, OF_KEY),
    ("free_without_order", "h"): (LETTERS, HELD, ("stream_id",)),
    ("free_without_order", "o"): (LETTERS, OPEN, (*OF_KEY, "sequence_number")),
    ("free_without_order", "d"): (LETTERS, f"pk_{LETTERS}", (*PARTITION, "sequence_number")),
    ("claim_letters", "d"): (LETTERS, f"ix_{LETTERS}_due", ("stream_id", "due_at")),
    ("begin_chunk", "d"): (LETTERS, f"pk_{LETTERS}", (*PARTITION, "sequence_number")),
    ("move_letters", "d"): (LETTERS, f"pk_{LETTERS}", (*PARTITION, "sequence_number")),
    ("delete_settled_letters", ""): (LETTERS, f"pk_{LETTERS}", (*PARTITION, "sequence_number")),
    ("delete_attempts", ""): ("dead_letter_attempt", "pk_dead_letter_attempt", (*PARTITION, "sequence_number")),
    ("delete_ledger_rows", ""): ("batch_ledger", "pk_batch_ledger", (*PARTITION, "commit_number")),
    ("delete_retracted", ""): ("retracted_row", "pk_retracted_row", (*PARTITION, "commit_number")),
    ("mark_staged", ""): ("staged_event", "ix_staged_event_staged", ("stream_id", "staged_at")),
    ("delete_staged", ""): ("staged_event", "ix_staged_event_staged", ("stream_id", "staged_at")),
    ("delete_diffs", ""): ("replay_diff", "pk_replay_diff", ("task_id",)),
    ("forget_states", "s"): ("replay_state", "pk_replay_state", ("task_id",)),
    ("delete_parts", ""): ("task_part", "pk_task_part", ("task_id",)),
    ("read_parts", "p"): ("task_part", "pk_task_part", ("task_id",)),
    ("delete_failures", ""): ("aggregation_failure", "ix_aggregation_failure_at", ("failed_at",)),
    ("delete_tasks", ""): ("task", "ix_task_requested", ("stream_id", "requested_at")),
    ("find_changes", "l"): ("batch_ledger", "ix_batch_ledger_change", (*PARTITION, "first_sequence_number")),
    ("read_ledger_ends", "d"): (LETTERS, OPEN, PARTITION),
    ("read_ledger_ends", "s"): (LETTERS, f"ix_{LETTERS}_settled", PARTITION),
    ("read_ledger_ends", "r"): (LETTERS, f"ix_{LETTERS}_replayed", PARTITION),
    ("read_replay_diffs", "d"): ("replay_diff", "pk_replay_diff", ("task_id", "partition_id", "sequence_number")),
}


def texts_of(name: str) -> set[str]:
    """Return the texts of a statement, with and without its filters."""
    query = load_queries("sqlserver")[name]
    return {query.text_without(missing) for missing in (frozenset(), query.optional)}


@holds_for(SEEKS)
def test_a_statement_seeks_in_its_index(use: tuple[str, str]) -> None:
    table, name, columns = SEEKS[use]
    index = indexes()[table][name]
    for text in texts_of(use[0]):
        assert re.search(rf"hubledger\.{table}{use[1] and ' AS ' + use[1]}\b", text)
        assert sought(text, use[1], index) == columns
        condition = index.condition and f"{use[1]}.{index.condition.strip()}"
        assert condition in " ".join(text.split()), f"the condition of {name}"


def test_the_page_names_each_statement_with_its_indexes() -> None:
    wanted: dict[str, set[str]] = {verb: {"ix_TABLE_place"} for verb in BY_PLACE}
    for (name, _), (_, index, _) in SEEKS.items():
        wanted.setdefault(name, set()).add(index)
    page = (ROOT / "docs" / "sqlserver.md").read_text(encoding="utf-8")
    table = page.partition("\n## Statements and their indexes\n")[2].partition("\n## ")[0]
    shown: dict[str, set[str]] = {}
    for indexes_of, statements in re.findall(r"^\| (.+) \| (`.+) \|$", table, re.M):
        for name in re.findall(r"`(\w+)`", statements):
            shown.setdefault(name, set()).update(re.findall(r"`(\w+)`", indexes_of))
    assert {name: shown[name] for name in shown if name not in OF_WINDOWS} == wanted
    assert shown.keys() >= OF_WINDOWS.keys()


def test_an_index_covers_what_decides_which_rows_are_looked_up() -> None:
    change = indexes()["batch_ledger"]["ix_batch_ledger_change"]
    condition = load_queries("sqlserver")["find_changes"].text.partition("\n WHERE ")[2]
    assert set(re.findall(r"\bl\.(\w+)", condition)) - {"commit_number"} <= {*change.keys, *change.included}


BY_PLACE: Mapping[RowVerb, tuple[str, ...]] = {
    "select_placed": (*PARTITION, "sequence_number"),
    "count_states": (*PARTITION, "sequence_number"),
    "count_rows": (*PARTITION, "sequence_number"),
    "next_partition": PARTITION,
    "next_number": (*PARTITION, "sequence_number"),
}
STATES = [each for each in ROW_CLASSES if row_table(each).key]


@holds_for(product(BY_PLACE, STATES))
def test_states_of_a_range_are_sought_by_the_place_of_their_events(use: tuple[RowVerb, type]) -> None:
    verb, row_class = use
    name = row_table(row_class).name
    assert sought(rows_query(of_rows(verb, row_class)).text, "t", indexes()[name][f"ix_{name}_place"]) == BY_PLACE[verb]


LEVELS = [level for one in load_aggregates() for level in one.levels]


@holds_for(LEVELS)
def test_windows_are_sought_by_the_keys_of_the_staged_ones_and_never_scanned(one: Aggregate) -> None:
    """A hash join would read the whole table of windows for each portion."""
    (key,), (staged,) = indexes()[one.name].values(), indexes()[one.staged].values()
    verbs: tuple[RowVerb, ...] = ("replace_windows", "add_windows")
    texts = [rows_query(of_rows(verb, one.of)).text for verb in verbs]
    statements = [each for text in texts for each in text.removesuffix(";").split(";")]
    assert len(statements) == 3
    for text in statements:
        assert text.endswith("\nOPTION (LOOP JOIN, FORCE ORDER)")
        assert text.partition("\n  FROM ")[2].startswith(f"hubledger.{one.staged} AS g\n")
        assert sought(text, "g", staged) == ("staging_id", "slice")
        assert sought(text, "a", key) == key.keys


def test_a_column_in_an_expression_is_not_sought() -> None:
    """The texts that this test was made for: they read all earlier letters for each letter."""
    index = indexes()[LETTERS][OPEN]
    place = "o.stream_id = d.stream_id AND o.partition_id = d.partition_id AND"
    assert sought(f"{place} (o.partition_key + N'.') COLLATE x = d.partition_key + N'.'", "o", index) == OF_KEY[:2]
    assert sought(f"{place} o.key_hash = d.key_hash AND o.sequence_number < 7", "o", index) == index.keys
    assert sought("o.stream_id = 1 AND o.partition_id > '0' AND o.key_hash = 0x00", "o", index) == OF_KEY[:2]
    assert sought("o.partition_id = '0'", "o", index) == ()


def test_no_page_is_sorted_by_an_expression_of_its_rows() -> None:
    """Such a sort reads all rows for each page."""
    sorting = re.compile(r"ORDER BY [^;)]*\b(?:LEN|CAST|CONVERT|ISNULL|COALESCE)\(")
    pages = {name: query.text for name, query in load_queries("sqlserver").items() if "TOP (@most)" in query.text}
    assert [name for name, text in pages.items() if sorting.search(text)] == []


def test_a_list_of_keys_leads_the_join_so_that_each_of_them_is_one_seek() -> None:
    """A list is taken for 50 rows, whatever its length: the server would read a large table whole, and hash it."""
    for name in ("begin_chunk", "read_parts", "settle_letters"):
        text = load_queries("sqlserver")[name].text
        assert text.partition("\n  FROM ")[2].startswith("OPENJSON("), name
        assert text.endswith("\nOPTION (LOOP JOIN, FORCE ORDER);"), name


def test_each_letter_of_a_key_is_found_by_one_seek_and_not_by_a_walk_over_all_earlier_ones() -> None:
    assert load_queries("sqlserver")["free_without_order"].text.endswith("\nOPTION (LOOP JOIN, FORCE ORDER);")
    for name in ("find_open_letters", "free_letters"):
        text = load_queries("sqlserver")[name].text
        assert re.search(r"APPLY \(\s+SELECT TOP \(1\) .* ORDER BY o\.sequence_number DESC\) AS \w", text, re.S)
        assert text.endswith("\nOPTION (LOOP JOIN, FORCE ORDER);")


TABLE_LOCK = 5_000  # locks that one statement holds in one index, at which SQL Server locks the table
KEY_AND_PAGE, OLD_AND_NEW = 2, 2
OF_PIECE: Mapping[str, Any] = {one.name: one.default for one in fields(PurgeKind) if one.name.endswith("_of_piece")}
BOUNDED = re.compile(r"\b(?:UPDATE|DELETE) TOP \(@most\)")
LIMITS = {  # the most rows that a statement changes; `most` of the others comes with their calls
    **dict.fromkeys(("claim_letters", "free_without_order", "forget_states"), ROWS_AT_ONCE),
    **dict.fromkeys(("mark_staged", "delete_staged", "delete_retracted", "delete_diffs"), OF_PIECE["rows_of_piece"]),
    **dict.fromkeys(("delete_parts", "delete_failures", "delete_tasks"), OF_PIECE["rows_of_piece"]),
    **dict.fromkeys(("delete_ledger_rows", "delete_attempts"), OF_PIECE["rows_of_piece"]),
    "delete_settled_letters": OF_PIECE["letters_of_piece"],
    "move_letters": TRANSACTION_LIMIT,
}
OF_WINDOWS: Mapping[RowVerb, int] = {
    "replace_windows": PORTION,
    "add_windows": PORTION,
    "remove_staged": ROWS_AT_ONCE,
    "remove_windows": ROWS_AT_ONCE,
    "remove_subject_windows": ROWS_AT_ONCE,
    "remove_subject_staged": ROWS_AT_ONCE,
}


def locks_of_row(statement: str) -> Mapping[str, int]:
    (use,) = [one for one in uses_of(statement) if one.verb != "SELECT"]
    found = list(indexes()[use.table].values())
    if use.verb != "UPDATE":
        return {one.name: KEY_AND_PAGE for one in found}
    head = re.split(r"\n\s+(?:FROM|WHERE) ", statement.partition("SET ")[2])[0]
    columns = set(
        re.findall(r"(?:^|,)\s*\[?(\w+)\]? = ", re.sub(r"\([^()]*\)|CASE\b.*?\bEND\b", "x", head, flags=re.S))
    )
    assert columns
    return {one.name: _of_update(one, columns, is_table=one is found[0]) for one in found}


def _of_update(index: Index, columns: set[str], *, is_table: bool) -> int:
    if columns & {*index.keys, *index.filters}:
        return OLD_AND_NEW
    return KEY_AND_PAGE if is_table or columns & set(index.included) else 0


def most_locks(text: str) -> int:
    return max(max(locks_of_row(one).values()) for one in text.split(";") if one.strip())


@holds_for([*LIMITS, *OF_WINDOWS])
def test_a_bounded_statement_stays_below_the_number_of_locks_at_which_the_table_is_locked(name: Any) -> None:
    if name in LIMITS:
        assert LIMITS[name] * most_locks(load_queries("sqlserver")[name].text) < TABLE_LOCK
    else:
        levels = [level.of for one in load_aggregates() for level in one.levels]
        texts = [rows_query(of_rows(name, level)).text for level in levels]
        assert OF_WINDOWS[name] * max(map(most_locks, texts)) < TABLE_LOCK


def test_every_bounded_statement_has_its_limit_here_which_a_script_of_the_store_sends() -> None:
    bounded = {name for name, query in load_queries("sqlserver").items() if BOUNDED.search(query.text)}
    assert bounded <= LIMITS.keys()
    texts = {verb: rows_query(of_rows(verb, load_aggregates()[0].of)).text for verb in OF_WINDOWS}
    found = {verb for verb, text in texts.items() if BOUNDED.search(text)}
    assert found == {verb for verb in OF_WINDOWS if verb.startswith("remove_")}
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "core").glob("*/store.py"))
    assert source.count('"most": ROWS_AT_ONCE') + source.count("most=ROWS_AT_ONCE") >= 3


def test_the_indexes_that_a_statement_changes_are_seen() -> None:
    letter = "event_hub_dead_letter"
    claimed = locks_of_row(load_queries("sqlserver")["claim_letters"].text)
    changed = {name.removeprefix(f"ix_{letter}_") for name, locks in claimed.items() if locks}
    assert changed == {f"pk_{letter}", "due", "status", "cause", "held", "open", "settled"}
    assert set(locks_of_row(f"UPDATE d\n   SET error = 'x'\n  FROM hubledger.{letter} AS d").values()) == {0, 2}
    assert max(locks_of_row(f"DELETE FROM hubledger.{letter}\n WHERE stream_id = 1").values()) == KEY_AND_PAGE
