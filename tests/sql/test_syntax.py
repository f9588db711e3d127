"""Every T-SQL batch passes a parser, and the parser is seen to refuse what is broken."""

from collections.abc import Mapping
from functools import cache

import pytest

from tests.sql.gates import Faults, gates
from tests.sql.statements import every_batch

GATES = gates()
NONE_HERE = pytest.param("", marks=pytest.mark.skip("no T-SQL parser is installed: make scriptdom, or pip sqlfluff"))
each_gate = pytest.mark.parametrize("gate", list(GATES) or [NONE_HERE])

DAMAGE = {  # the name of a batch, a part of it, and the part broken
    "a parenthesis that is not closed": ("query sum_ranges", "COUNT(*) AS commits", "COUNT(* AS commits"),
    "a misspelt INSERT": ("query record_migration", "INSERT INTO", "INSRT INTO"),
    "a missing comma": ("query record_migration", "@version, @name", "@version @name"),
    "ON CONFLICT, which is SQLite's": ("query record_migration", "@text_hash)", "@text_hash) ON CONFLICT DO NOTHING"),
    "a text that does not end": ("migration 0001 hubledger", "'batch', 'retry'", "'batch, 'retry'"),
}


@cache
def faults(gate: str) -> Faults:
    """Of everything at once: a parser starts slowly."""
    return GATES[gate]({**every_batch(), **damaged()})


def damaged() -> Mapping[str, str]:
    return {name: every_batch()[of].replace(whole, torn) for name, (of, whole, torn) in DAMAGE.items()}


@each_gate
def test_every_statement_passes_the_gate(gate: str) -> None:
    found = faults(gate)
    assert {name: found[name] for name in every_batch() if name in found} == {}


@each_gate
def test_a_broken_statement_does_not_pass_the_gate(gate: str) -> None:
    assert DAMAGE.keys() - faults(gate).keys() == set()
