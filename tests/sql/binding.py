"""Find the statements of a batch that bind what the same batch makes.

SQL Server compiles a batch as a whole before it runs any of it. A statement over a table that does not exist yet waits
(deferred name resolution), but a column that a table does not have yet is error 207, and a type that does not exist is
error 2715. Microsoft's rules for batches: "A table cannot be changed and then the new columns referenced in the same
batch", and the statement that creates a view, a function, a procedure, a trigger or a schema begins its batch
("Batches", learn.microsoft.com, ms175502). A server resolves some names late, for example the key of an index: no
statement of ours relies on that. The text of an EXEC is a separate batch, which is compiled when its turn comes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlfluff.core import Linter
from sqlfluff.core.parser import BaseSegment

from tests.sql.statements import without_comments, without_markers

NAMES = ("naked_identifier", "quoted_identifier", "data_type_identifier")
COLUMNS = ("column_definition", "computed_column_definition")
MAKES = re.compile(
    r"\b(ALTER\s+TABLE|EXEC|EXECUTE|CREATE\s+(OR\s+ALTER\s+)?(TYPE|VIEW|FUNCTION|PROC\w*|TRIGGER|SCHEMA))\b",
    re.IGNORECASE,
)
ALONE = re.compile(r"CREATE\s+(OR\s+ALTER\s+)?(VIEW|FUNCTION|PROC|PROCEDURE|TRIGGER|SCHEMA)\b", re.IGNORECASE)
TEXT = re.compile(r"N?'((?:[^']|'')*)'")


@dataclass(frozen=True)
class Made:
    """A column of a table, or a type (without a table), that a batch makes."""

    table: str
    name: str

    def is_named_in(self, names: frozenset[str]) -> bool:
        return self.name in names and (not self.table or self.table in names)


@dataclass(frozen=True)
class Statement:
    """A statement: its beginning, the names in it, what it makes, and the texts that it runs as batches."""

    text: str
    names: frozenset[str]
    makes: frozenset[Made]
    runs: list[str]


def early(batch: str) -> list[str]:
    """Return the statements of a batch that SQL Server would bind too early, each with the name."""
    if not MAKES.search(without_comments(batch)):
        return []
    statements = list(parsed(batch))
    found = [
        f"{one.text}: {made.name} is made by the same batch"
        for one in statements
        for made in frozenset().union(*(other.makes for other in statements if other is not one))
        if made.is_named_in(one.names)
    ]
    found += [f"{one.text}: begins no batch" for one in statements[1:] if ALONE.match(one.text)]
    return found + [fault for one in statements for text in one.runs for fault in early(text)]


def parsed(batch: str) -> Iterator[Statement]:
    """Give every statement, those inside of IF and BEGIN too; ValueError for a batch that cannot be parsed."""
    tree = Linter(dialect="tsql").parse_string(without_markers(batch))
    if tree.violations or tree.tree is None:
        raise ValueError(f"{tree.violations}: {batch}")
    for segment in tree.tree.recursive_crawl("statement"):
        own = list(own_segments(segment))
        words = " ".join(one.raw for one in own if one.is_code and not one.is_type("literal"))
        yield Statement(words[:80], names_of(own), frozenset(makes(segment, own)), texts_of(own))


def own_segments(statement: BaseSegment) -> Iterator[BaseSegment]:
    """Give the words of a statement without those of the statements inside it."""
    for segment in statement.segments:
        if not segment.segments:
            yield segment
        elif not segment.is_type("statement"):
            yield from own_segments(segment)


def names_of(segments: list[BaseSegment]) -> frozenset[str]:
    """Return the names among segments, as SQL Server compares them: without brackets, whatever their case."""
    return frozenset(one.raw.strip('[]"').lower() for one in segments if one.is_type(*NAMES))


def makes(statement: BaseSegment, own: list[BaseSegment]) -> Iterator[Made]:
    """Give the columns and the type that a statement makes, itself or by a text that it runs."""
    for altering in statement.recursive_crawl("alter_table_statement", no_recursive_seg_type="statement"):
        table = last_name(next(altering.recursive_crawl("table_reference")))
        for column in altering.recursive_crawl(*COLUMNS):
            yield Made(table, first_name(column))
    for creating in statement.recursive_crawl("create_type_statement", no_recursive_seg_type="statement"):
        yield Made("", last_name(next(creating.recursive_crawl("object_reference"))))
    if "sp_rename" in names_of(own):
        old, new, *_ = literals(own)
        yield Made(old.lower().split(".")[-2], new.lower())
    for text in texts_of(own):
        for one in parsed(text):
            yield from one.makes


def texts_of(own: list[BaseSegment]) -> list[str]:
    """Return the texts that a statement runs as separate batches; the text in a variable is not seen."""
    words = [one.raw.upper() for one in own if one.is_code]
    runs = words[:2] in (["EXEC", "("], ["EXECUTE", "("]) or "sp_executesql" in names_of(own)
    return literals(own)[:1] if runs else []


def literals(own: list[BaseSegment]) -> list[str]:
    """Return the quoted texts of a statement, as the server unquotes them."""
    return [found[1].replace("''", "'") for one in own if (found := TEXT.fullmatch(one.raw))]


def first_name(segment: BaseSegment) -> str:
    return next(one.raw.strip('[]"').lower() for one in segment.raw_segments if one.is_type(*NAMES))


def last_name(segment: BaseSegment) -> str:
    return [one.raw.strip('[]"').lower() for one in segment.raw_segments if one.is_type(*NAMES)][-1]
