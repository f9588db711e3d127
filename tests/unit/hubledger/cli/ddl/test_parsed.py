"""hubledger/cli/ddl/parsed.py: the T-SQL that people write is read, or named with its line."""

from hubledger.cli.ddl.parsed import read_server
from hubledger.cli.ddl.schema import Schema, SchemaScript
from tests.offenders import holds_for

BEFORE = SchemaScript("1.sql", "CREATE TABLE hubledger.t (a int NOT NULL, CONSTRAINT pk_t PRIMARY KEY (a))")


def after(text: str) -> Schema:
    return read_server([BEFORE, SchemaScript("2.sql", text)])


def columns_after(text: str) -> str:
    """Return the columns of the table, with ! for those that are required and = for those that fill themselves."""
    table = after(text).tables["t"]
    marks = {
        name: ("!" if one.is_required else "") + ("=" if one.fills_itself else "")
        for name, one in table.columns.items()
    }
    return ", ".join(f"{name} {one.type}{marks[name]}" for name, one in table.columns.items())


ADDS_B = (
    "ALTER TABLE hubledger.t ADD b int",
    "alter table [hubledger].[t] add [b] INT null;",
    "IF COL_LENGTH('hubledger.t', 'b') IS NULL ALTER TABLE hubledger.t ADD b int",
    "IF COL_LENGTH('hubledger.t', 'b') IS NULL\nBEGIN\n  ALTER TABLE hubledger.t ADD b int\nEND",
    "BEGIN TRY\n ALTER TABLE hubledger.t ADD b int;\nEND TRY\nBEGIN CATCH\n THROW;\nEND CATCH",
    "EXEC(N'ALTER TABLE hubledger.t ADD b int')",
    "EXECUTE sp_executesql N'ALTER TABLE hubledger.t ADD b int';",
    "-- GO; 'quote\n/* ALTER TABLE hubledger.t ADD z int; ' */ ALTER TABLE hubledger.t ADD b int -- end",
    "SET NOCOUNT ON\nDECLARE @a int = 1\nUPDATE hubledger.t SET a = 2\nALTER TABLE hubledger.t ADD b int",
    "UPDATE hubledger.t SET a = CASE WHEN a = 1 THEN 2 ELSE 3 END WHERE a < 9;ALTER TABLE hubledger.t ADD b int",
    "INSERT INTO hubledger.t EXEC hubledger.p; GRANT ALTER ON hubledger.t TO x; ALTER TABLE hubledger.t ADD b int",
    "WHILE 1 = 1 BEGIN DELETE TOP (9) FROM hubledger.t; END\nALTER TABLE hubledger.t ADD b int",
    "PRINT 'x'\nALTER TABLE hubledger.t ADD b int",
    "ALTER TABLE hubledger.t ADD b int, c int; ALTER TABLE hubledger.t DROP COLUMN IF EXISTS c",
    "ALTER TABLE hubledger.t ADD b nvarchar(9) NOT NULL; ALTER TABLE hubledger.t ALTER COLUMN b int",
    "ALTER TABLE hubledger.t ADD b int; ALTER TABLE hubledger.t REBUILD WITH (DATA_COMPRESSION = PAGE)",
    "ALTER TABLE hubledger.t ADD b int\nALTER TABLE hubledger.t WITH CHECK ADD CONSTRAINT c CHECK (b > 1)",
    "ALTER TABLE hubledger.t ADD b int; ALTER TABLE hubledger.t\n    SET (LOCK_ESCALATION = AUTO);",
    "ALTER TABLE hubledger.t ADD b int; CREATE TABLE #t (a bit); CREATE TYPE hubledger.l AS TABLE (x int)",
    "ALTER TABLE hubledger.t ADD b int; EXEC(N'CREATE OR ALTER PROC hubledger.p AS ALTER TABLE hubledger.t ADD z int')",
)


@holds_for(ADDS_B)
def test_a_column_that_is_added_in_any_form_is_read(text: str) -> None:
    assert (after(text).unread, columns_after(text)) == ((), "a integer!, b integer")


FORMS = {
    "ALTER TABLE hubledger.t ADD b int NOT NULL CONSTRAINT d DEFAULT (0) WITH VALUES, c datetime2": (
        "a integer!, b integer!=, c datetime2"
    ),
    "ALTER TABLE hubledger.t ADD b AS (a + 1), c int IDENTITY(1, 1)": "a integer!, b computed=, c integer=",
    "ALTER TABLE hubledger.t ALTER COLUMN a nvarchar (MAX) NOT NULL": "a nvarchar(max)!",
    "DROP TABLE hubledger.t; CREATE TABLE hubledger.t ([order] bit NOT NULL PRIMARY KEY NONCLUSTERED)": "order bit!",
    "DROP TABLE hubledger.t; CREATE TABLE hubledger.t (x varchar(3) DEFAULT ';)') ON [PRIMARY]": "x varchar(3)=",
}


@holds_for(FORMS)
def test_a_form_of_columns_is_read(text: str) -> None:
    assert (after(text).unread, columns_after(text)) == ((), FORMS[text])


def test_keys_and_indexes_are_read_whether_clustered_filtered_or_dropped() -> None:
    key = "ALTER TABLE hubledger.t DROP CONSTRAINT pk_t"
    assert after(key).tables["t"].key == ()
    again = f"{key};\nALTER TABLE hubledger.t ADD CONSTRAINT pk_t PRIMARY KEY CLUSTERED (b ASC, a DESC);"
    assert after(again).tables["t"].key == ("b", "a")
    made = (
        "CREATE UNIQUE NONCLUSTERED INDEX [ix_a] ON hubledger.t (a) INCLUDE (b) WHERE a > 1;"
        "CREATE CLUSTERED COLUMNSTORE INDEX ix_b ON hubledger.t; CREATE INDEX ix_c ON hubledger.t (a);"
        "DROP INDEX IF EXISTS ix_c ON hubledger.t; ALTER INDEX ix_a ON hubledger.t REBUILD;"
    )
    assert (after(made).unread, sorted(after(made).indexes)) == ((), ["ix_a", "ix_b"])


UNREAD = {
    "\nEXEC sp_rename 'hubledger.t', 'b';": 2,
    "DECLARE @s nvarchar(99) = N'x';\n\nEXEC(@s);": 3,
    "EXEC('ALTER TABLE hubledger.t ' + 'ADD b int')": 1,
    "CREATE TABLE hubledger.u (a int);\n PRINT 'a quote that does not end": 1,
    "ALTER TABLE hubledger.t ADD b int\n\n\nINCOMPREHENSIBLE (1)": 1,
    "\n\nEXEC(N'\nALTER TABLE hubledger.t ADD\n\n   CONSTRAINT')": 4,
    "CREATE TABLE hubledger.u (a int, INDEX ix (a))": 1,
}


@holds_for(UNREAD)
def test_a_statement_that_is_not_understood_is_named_with_its_line_and_its_tables_are_unclear(text: str) -> None:
    (unread,) = after(text).unread
    assert unread.startswith(f"2.sql:{UNREAD[text]}: not understood, compare by hand: ")
    assert {"t", "u", "s"} & after(text).unclear


def test_a_word_of_sqlcmd_is_named_because_a_migration_is_one_batch() -> None:
    found = after(
        "CREATE TABLE hubledger.u (a int)\r\nGO\r\nALTER TABLE hubledger.t ADD b int\r\n  go 2\r\n".replace("\r", "")
    )
    assert [one.partition(" is")[0] for one in found.unread] == ["2.sql:2: GO", "2.sql:4: GO"]
    assert "b" in found.tables["t"].columns
