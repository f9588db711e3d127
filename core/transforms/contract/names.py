"""Names that SQL can hold. The names of columns are quoted everywhere, and those of tables nowhere."""

import re

from core.model.rows import OURS

LONGEST = 128  # characters of a name in SQL Server
LONGEST_TABLE = LONGEST - len("@rows_of_")  # the variable that holds a table's rows
LONGEST_COLUMN = LONGEST - len(OURS)  # the name under which a job of Spark reads an instant
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# https://learn.microsoft.com/sql/t-sql/language-elements/reserved-keywords-transact-sql
# https://www.sqlite.org/lang_keywords.html
_WORDS = """
add all alter and any as asc authorization autoincrement backup begin between break browse bulk by cascade case cast
check checkpoint close clustered coalesce collate column commit compute constraint contains containstable continue
convert create cross current current_date current_time current_timestamp current_user cursor database dbcc deallocate
declare default deferrable delete deny desc disk distinct distributed double drop dump else end errlvl escape except
exec execute exists exit external fetch file fillfactor for foreign freetext freetexttable from full function goto
grant group having holdlock identity identity_insert identitycol if in index inner insert intersect into is isnull
join key kill left like limit lineno load merge national nocheck nonclustered not nothing notnull null nullif of off
offsets on open opendatasource openquery openrowset openxml option or order outer over percent pivot plan precision
primary print proc procedure public raise raiserror read readtext reconfigure references replication restore restrict
return returning revert revoke right rollback rowcount rowguidcol rule save schema securityaudit select
semantickeyphrasetable semanticsimilaritydetailstable semanticsimilaritytable session_user set setuser shutdown some
statistics system_user table tablesample textsize then to top tran transaction trigger truncate try_convert tsequal
union unique unpivot update updatetext use user using values varying view waitfor when where while with within
writetext
"""
_RESERVED = frozenset(_WORDS.split())
_STATEMENTS = ("excluded", "json_each")  # of SQLite: the row of an upsert, and the function that reads JSON


def is_plain(name: str) -> bool:
    """Return True for a name that both engines take without brackets."""
    return _TABLE.fullmatch(name) is not None and name.lower() not in _RESERVED


def fault_of_table(name: str) -> str | None:
    """Return the fault of the name of a table; None for one that both engines take without quotes."""
    if not _TABLE.fullmatch(name):
        return (
            f"the table name {name!r} has other characters than letters of ASCII, digits and _, or begins with a digit"
        )
    if len(name) > LONGEST_TABLE:
        return f"the table name {name} is longer than {LONGEST_TABLE} characters"
    if name.lower() in _RESERVED:
        return f"the table name {name} is a word of SQL: use a different one"
    if name.lower().startswith(OURS) or name.lower() in _STATEMENTS:
        return f"the table name {name} has a meaning in statements of Hubledger: use a different one"
    return f"the table name {name} is one of SQLite's own" if name.lower().startswith("sqlite_") else None


def fault_of_column(name: str) -> str | None:
    """Return the fault of the name of a column; None for one that both engines take in brackets."""
    if name.lower().startswith(OURS):
        return f"the names of columns of Hubledger begin with {OURS}"
    return f"the name is longer than {LONGEST_COLUMN} characters" if len(name) > LONGEST_COLUMN else None
