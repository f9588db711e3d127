"""No bounded statement locks a whole table: its rows, and the indexes that it changes, give the number of its locks."""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from core.aggregation.tick import PORTION
from core.model.commits import ROWS_AT_ONCE
from core.model.letters import TRANSACTION_LIMIT
from core.purge.task import PurgeKind
from core.store.queries import load_queries
from core.store.script import RowVerb, of_rows
from core.store.sqlserver.statements import rows_query
from core.transforms.loading import load_aggregates
from local.explain import uses_of
from tests.offenders import holds_for
from tests.sql.indexes import Index, indexes
from tests.sql.verbs import sent_by_verbs

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
}


def locks_of_row(statement: str) -> Mapping[str, int]:
    """Return the locks that a statement takes for one row in each index of the table that it changes."""
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


def statements_of(text: str) -> list[str]:
    return [one for one in text.split(";") if one.strip()]


@holds_for(LIMITS)
def test_a_bounded_statement_stays_below_the_number_of_locks_at_which_the_table_is_locked(name: str) -> None:
    for statement in statements_of(load_queries("sqlserver")[name].text):
        assert LIMITS[name] * max(locks_of_row(statement).values()) < TABLE_LOCK


@holds_for(OF_WINDOWS)
def test_the_windows_of_a_portion_are_locked_and_not_their_table(verb: RowVerb) -> None:
    for level in (level for one in load_aggregates() for level in one.levels):
        for statement in statements_of(rows_query(of_rows(verb, level.of)).text):
            assert OF_WINDOWS[verb] * max(locks_of_row(statement).values()) < TABLE_LOCK


def test_every_bounded_statement_has_its_limit_here() -> None:
    bounded = {name for name, query in load_queries("sqlserver").items() if BOUNDED.search(query.text)}
    assert bounded <= LIMITS.keys()
    texts = {verb: rows_query(of_rows(verb, load_aggregates()[0].of)).text for verb in OF_WINDOWS}
    assert {verb for verb, text in texts.items() if BOUNDED.search(text)} == {"remove_staged", "remove_windows"}


def test_where_the_store_itself_decides_how_many_rows_it_sends_the_constant() -> None:
    """The numbers of the other statements come with their calls."""
    steps = [step for one in sent_by_verbs().values() for step in one.script.steps if "most" in step.values]
    own = ("free_without_order", "forget_states", "remove_staged")
    sent = {name: {each.values["most"] for each in steps if str(each.statement).startswith(name)} for name in own}
    assert sent == {name: {ROWS_AT_ONCE} for name in own}


def test_the_indexes_that_a_statement_changes_are_seen() -> None:
    letter = "event_hub_dead_letter"
    claimed = locks_of_row(load_queries("sqlserver")["claim_letters"].text)
    changed = {name.removeprefix(f"ix_{letter}_") for name, locks in claimed.items() if locks}
    assert changed == {f"pk_{letter}", "due", "status", "cause", "held", "open", "settled"}
    assert set(locks_of_row(f"UPDATE d\n   SET error = 'x'\n  FROM hubledger.{letter} AS d").values()) == {0, 2}
    assert max(locks_of_row(f"DELETE FROM hubledger.{letter}\n WHERE stream_id = 1").values()) == KEY_AND_PAGE
