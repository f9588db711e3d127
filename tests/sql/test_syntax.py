"""Every T-SQL batch, those of the tests too, passes a parser, and the parser is seen to refuse what is broken."""

from collections.abc import Mapping
from functools import cache

import pytest

from tests.sql.by_hand import by_hand
from tests.sql.gates import Faults, gates
from tests.sql.statements import every_batch

GATES = gates()
NONE_HERE = pytest.param("", marks=pytest.mark.skip("no T-SQL parser is installed: make scriptdom, or pip sqlfluff"))
each_gate = pytest.mark.parametrize("gate", list(GATES) or [NONE_HERE])

COMMIT = "commit later nothing letters"
DAMAGE = {
    "a parenthesis that is not closed": ("query sum_ranges", "COUNT(*) AS commits", "COUNT(* AS commits"),
    "a parenthesis too many": (COMMIT, "2), l.body_kept", "2)), l.body_kept"),
    "a misspelt SELECT": ("query find_stream", "SELECT TOP (1)", "SELCT TOP (1)"),
    "a misspelt INSERT": ("query record_migration", "INSERT INTO", "INSRT INTO"),
    "a misspelt UPDATE": (COMMIT, "UPDATE hubledger", "UPDAT hubledger"),
    "a misspelt WHERE": (COMMIT, "WHERE stream_id = @stream_id AND", "WHRE stream_id = @stream_id AND"),
    "a missing comma between columns": (
        "migration examples.home_security 0001 home_security",
        "home_id         nvarchar(32)",
        "x int home_id int",
    ),
    "a missing comma between values": ("query record_migration", "@version, @name", "@version @name"),
    "an unknown clause": ("query read_checkpoint", "WHERE c.stream_id", "PROVIDED c.stream_id"),
    "LIMIT, which is SQLite's": ("query find_stream", "ORDER BY e.incarnation DESC", "ORDER BY e.incarnation LIMIT 1"),
    "ON CONFLICT, which is SQLite's": ("query record_migration", "@text_hash)", "@text_hash) ON CONFLICT DO NOTHING"),
    "RETURNING, which is SQLite's": (COMMIT, "sequence_number = @expected", "sequence_number = @expected RETURNING x"),
    "TRY without CATCH": ("query open_stream", "END CATCH", "END"),
    "a text that does not end": ("migration 0001 hubledger", "'batch', 'retry'", "'batch, 'retry'"),
}
# sqlfluff takes an unknown word for an alias, and does not pair TRY with CATCH; ScriptDom sees all.
UNSEEN = {
    "sqlfluff": {
        "a misspelt WHERE",
        "an unknown clause",
        "LIMIT, which is SQLite's",
        "RETURNING, which is SQLite's",
        "TRY without CATCH",
    }
}


@cache
def faults(gate: str) -> Faults:
    """Of everything at once: a parser starts slowly."""
    return GATES[gate]({**every_batch(), **by_hand(), **damaged()})


def damaged() -> Mapping[str, str]:
    broken = {}
    for damage, (name, whole, torn) in DAMAGE.items():
        assert whole in every_batch()[name], damage
        broken[damage] = every_batch()[name].replace(whole, torn)
    return broken


@each_gate
def test_every_statement_passes_the_gate(gate: str) -> None:
    found = faults(gate)
    assert {name: found[name] for name in {**every_batch(), **by_hand()} if name in found} == {}


@each_gate
def test_a_broken_statement_does_not_pass_the_gate(gate: str) -> None:
    assert DAMAGE.keys() - faults(gate).keys() == UNSEEN.get(gate, set())
