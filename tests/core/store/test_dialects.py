"""core/store/queries.py: one body becomes the text of each engine, rule by rule."""

import pytest

from core.store.queries import server_text, sqlite_text

TYPES = {"day": "varchar(10)", "why": "nvarchar(4000)"}

# Of each rule: the body, SQLite's text and SQL Server's.
RULES = {
    "a parameter has the sign of its engine": (
        "SELECT ':x', a.b FROM t AS a WHERE a.c = :some_one AND a.d = '00:00';",
        "SELECT ':x', a.b FROM t AS a WHERE a.c = :some_one AND a.d = '00:00';",
        "SELECT '@x', a.b FROM hubledger.t AS a WHERE a.c = @some_one AND a.d = '00:00';",
    ),
    "a table has its schema on the server": (
        "INSERT INTO t (a) SELECT b.a FROM u AS b INNER JOIN v ON v.a = b.a WHERE EXISTS (SELECT 1 FROM w);",
        "INSERT INTO t (a) SELECT b.a FROM u AS b INNER JOIN v ON v.a = b.a WHERE EXISTS (SELECT 1 FROM w);",
        "INSERT INTO hubledger.t (a) SELECT b.a FROM hubledger.u AS b INNER JOIN hubledger.v ON v.a = b.a"
        " WHERE EXISTS (SELECT 1 FROM hubledger.w);",
    ),
    "a name of WITH is no table, but a longer one may be": (
        "WITH few AS (SELECT 1 FROM t), more AS (SELECT 2 FROM few) SELECT 1 FROM more JOIN more_of_it;",
        "WITH few AS (SELECT 1 FROM t), more AS (SELECT 2 FROM few) SELECT 1 FROM more JOIN more_of_it;",
        "WITH few AS (SELECT 1 FROM hubledger.t), more AS (SELECT 2 FROM few)"
        " SELECT 1 FROM more JOIN hubledger.more_of_it;",
    ),
    "a limit is the TOP of its own SELECT": (
        "SELECT a, (SELECT b FROM u ORDER BY b\n LIMIT 1) AS c\n  FROM t\n WHERE a IN (SELECT 2)\n LIMIT :most;",
        "SELECT a, (SELECT b FROM u ORDER BY b\n LIMIT 1) AS c\n  FROM t\n WHERE a IN (SELECT 2)\n LIMIT :most;",
        "SELECT TOP (@most) a, (SELECT TOP (1) b FROM hubledger.u ORDER BY b) AS c\n  FROM hubledger.t\n"
        " WHERE a IN (SELECT 2);",
    ),
    "the first rows to delete are found by their key, or by TOP": (
        "DELETE FROM t\n WHERE a = :a\n   AND NOT EXISTS (\n       SELECT 1 FROM u AS x WHERE x.a = :a)\n"
        " ORDER BY b LIMIT :most BY a, c;",
        "DELETE FROM t\n WHERE (a, c) IN (\n       SELECT a, c FROM t\n        WHERE a = :a\n"
        "          AND NOT EXISTS (\n"
        "              SELECT 1 FROM u AS x WHERE x.a = :a)\n        ORDER BY b LIMIT :most);",
        "DELETE TOP (@most) FROM hubledger.t\n WHERE a = @a\n   AND NOT EXISTS (\n"
        "       SELECT 1 FROM hubledger.u AS x WHERE x.a = @a);",
    ),
    "so are the first rows to update, which need no order": (
        "UPDATE t\n   SET a = :a\n WHERE b = :b\n LIMIT :most BY rowid;",
        "UPDATE t\n   SET a = :a\n WHERE (rowid) IN (\n       SELECT rowid FROM t\n        WHERE b = :b\n"
        "        LIMIT :most);",
        "UPDATE TOP (@most) hubledger.t\n   SET a = @a\n WHERE b = @b;",
    ),
    "an update puts its columns out before the condition": (
        "UPDATE t\n   SET a = :a\n WHERE b = :b\nRETURNING c, d;",
        "UPDATE t\n   SET a = :a\n WHERE b = :b\nRETURNING c, d;",
        "UPDATE hubledger.t\n   SET a = @a\nOUTPUT inserted.c, inserted.d\n WHERE b = @b;",
    ),
    "a delete puts out what was there": (
        "DELETE FROM t\n WHERE b = :b\nRETURNING c;",
        "DELETE FROM t\n WHERE b = :b\nRETURNING c;",
        "DELETE FROM hubledger.t\nOUTPUT deleted.c\n WHERE b = @b;",
    ),
    "the table of an update with another name follows its values": (
        "UPDATE t AS x\n   SET a = x.b\n WHERE x.c = :c\nRETURNING a;",
        "UPDATE t AS x\n   SET a = x.b\n WHERE x.c = :c\nRETURNING a;",
        "UPDATE x\n   SET a = x.b\nOUTPUT inserted.a\n  FROM hubledger.t AS x\n WHERE x.c = @c;",
    ),
    "rows are an array of arrays": (
        "SELECT n.b, n.a FROM rows(:p) AS n (a int, b varchar(40)) WHERE n.a > 1 AND m.a = 1;",
        "SELECT n.value ->> 1, n.value ->> 0 FROM json_each(:p) AS n WHERE n.value ->> 0 > 1 AND m.a = 1;",
        "SELECT n.b, n.a FROM OPENJSON(@p) WITH (a int '$[0]', b varchar(40) '$[1]') AS n WHERE n.a > 1 AND m.a = 1;",
    ),
    "a list is an array of values": (
        "SELECT 1 WHERE 2 IN (SELECT n.a FROM list(:p) AS n (a varchar(10)));",
        "SELECT 1 WHERE 2 IN (SELECT n.value FROM json_each(:p) AS n);",
        "SELECT 1 WHERE 2 IN (SELECT n.a FROM OPENJSON(@p) WITH (a varchar(10) '$') AS n);",
    ),
    "only the server converts": (
        "SELECT CONVERT(varchar(33), t.at, 126) AS at, CONVERT(varchar(33), MIN(t.at), 126) AS first_at,\n"
        "       SUM(CONVERT(bigint, t.n)), CONVERT(date, NULLIF(:day, ''), 23);",
        "SELECT t.at, MIN(t.at) AS first_at,\n       SUM(t.n), NULLIF(:day, '');",
        "SELECT CONVERT(varchar(33), t.at, 126) AS at, CONVERT(varchar(33), MIN(t.at), 126) AS first_at,\n"
        "       SUM(CONVERT(bigint, t.n)), CONVERT(date, NULLIF(@day, ''), 23);",
    ),
    "only the server locks, collates and tells kinds of texts apart": (
        "SELECT N'a' FROM t AS x WITH (UPDLOCK, HOLDLOCK) WHERE a = b COLLATE Latin1_General_100_BIN2;",
        "SELECT 'a' FROM t AS x WHERE a = b;",
        "SELECT N'a' FROM hubledger.t AS x WITH (UPDLOCK, HOLDLOCK) WHERE a = b COLLATE Latin1_General_100_BIN2;",
    ),
    "only the text for SQLite names an index": (
        "SELECT 1 + 2 FROM t AS d INDEXED BY ix_t WHERE +d.a = 1 AND (+d.b = 2)  -- +: by its index\n ORDER BY +d.c;",
        "SELECT 1 + 2 FROM t AS d INDEXED BY ix_t WHERE +d.a = 1 AND (+d.b = 2)  -- +: by its index\n ORDER BY +d.c;",
        "SELECT 1 + 2 FROM hubledger.t AS d WHERE d.a = 1 AND (d.b = 2)\n ORDER BY d.c;",
    ),
    "functions have the names of the engine": (
        "SELECT LEN(a), DATALENGTH(a), SUBSTRING(a, 1, 2), CHARINDEX(',' || a, :p), JSON_VALUE(t.a, '$.b'),"
        " SYSUTCDATETIME();",
        "SELECT LENGTH(a), LENGTH(a), SUBSTR(a, 1, 2), INSTR(:p, ',' || a), t.a ->> 'b', store_time();",
        "SELECT LEN(a), DATALENGTH(a), SUBSTRING(a, 1, 2), CHARINDEX(',' + a, @p), JSON_VALUE(t.a, '$.b'),"
        " SYSUTCDATETIME();",
    ),
    "blanks count in an exact comparison": (
        "SELECT 1 WHERE exact(+d.a = :p)  -- if given\n;",
        "SELECT 1 WHERE +d.a = :p  -- if given\n;",
        "SELECT 1 WHERE d.a + N'.' = @p + N'.' COLLATE Latin1_General_100_BIN2  -- if given\n;",
    ),
    "a text of people may be blank, and a day is not": (
        "SELECT NULLIF(:why, ''), NULLIF(:day, '');",
        "SELECT NULLIF(:why, ''), NULLIF(:day, '');",
        "SELECT CASE WHEN DATALENGTH(@why) > 0 THEN @why END, NULLIF(@day, '');",
    ),
    "a line may be of one engine": (
        "UPDATE t\n   SET a = 1\nRETURNING a;  -- sqlite only\n; IF @@ROWCOUNT = 1 SELECT 2;  -- sqlserver only",
        "UPDATE t\n   SET a = 1\nRETURNING a;",
        "UPDATE hubledger.t\n   SET a = 1\n; IF @@ROWCOUNT = 1 SELECT 2;",
    ),
    "a number that the script keeps is a variable of the server": (
        "UPDATE t\n   SET @a = a = a + 1\nRETURNING a;  -- sqlite only",
        "UPDATE t\n   SET a = a + 1\nRETURNING a;",
        "UPDATE hubledger.t\n   SET @a = a = a + 1;",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_body_becomes_the_text_of_each_engine(rule: str) -> None:
    body, sqlite, server = RULES[rule]
    assert sqlite_text(body) == sqlite
    assert server_text(body, TYPES) == server


def test_a_duplicate_of_a_race_is_caught_on_the_server() -> None:
    assert server_text("INSERT INTO t (a)\nSELECT :a;", TYPES, race="made by another at the same moment") == (
        "BEGIN TRY\n"
        "    INSERT INTO hubledger.t (a)\n"
        "    SELECT @a;\n"
        "END TRY\n"
        "BEGIN CATCH\n"
        "    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- made by another at the same moment\n"
        "END CATCH;"
    )


@pytest.mark.parametrize(
    "body",
    [
        "SELECT 1 FROM rows(:p);",
        "SELECT 1 FROM rows(p) AS n (a int);",
        "SELECT 1 FROM rows(:p) AS n (a);",
        "SELECT 1 FROM list(:p) AS n (a int, b int);",
        "SELECT 1 WHERE exact(a, :p);",
        "SELECT 1;  -- server only",
        "DELETE FROM t WHERE a = 1 LIMIT :most BY a;",
        "SELECT 1;\n-- server:\nSELECT 2;",
    ],
)
def test_a_mark_that_is_wrong_is_refused(body: str) -> None:
    for text_of in (sqlite_text, lambda text: server_text(text, TYPES)):
        with pytest.raises(ValueError, match=r" is not a mark$"):
            text_of(body)


@pytest.mark.parametrize("body", ["DELETE FROM t WHERE a IN (SELECT 1)\n LIMIT :most;", "SELECT 1 IN (b LIMIT :most);"])
def test_a_limit_without_a_select_is_refused(body: str) -> None:
    with pytest.raises(ValueError, match=r"^LIMIT :most has no SELECT$"):
        server_text(body, TYPES)
