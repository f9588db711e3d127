import pytest

from core.store.queries import Engine, Param, Query, parse_queries, queries_of, server_text, sqlite_text

TWO = """\
-- name: first_one
-- What it does,
-- in two lines.
-- params: a int, b nvarchar(4000)
SELECT :a
  FROM t WHERE b = :b;

-- name: second_one
-- Nothing to bind.
-- params:
SELECT 1; -- a remark
"""
TYPED = """\
-- name: typed
-- What it does.
-- params: a int, b nvarchar(4000), c datetime2(6), d rows (x, y, a), e bit
-- answers: x varchar(128), y bigint
SELECT :a, :b, :c, :x, :y, :e;
-- sqlserver:
SELECT @a, @b, @c, @e FROM OPENJSON(@d) WITH (x int '$[0]', y int '$[1]', a int '$[2]') AS d;
"""
FILTERED = """\
-- name: filtered
-- What it does.
-- params: a int, b int, c int
SELECT a
  FROM t
 WHERE a = :a
   AND +b = :b  -- if given
   AND c = :c  -- if given
   AND c < :a;
"""
PARTED = "-- part: listed\n-- The columns.\na.b,\n       a.c;\n\n" + "".join(
    f"-- name: {name}\n-- Read.\n-- params: stream_id int\nSELECT {{listed}}\n  FROM a\n WHERE s = :stream_id;\n\n"
    for name in ("first", "second")
)


def parsed(text: str, engine: Engine = "sqlite") -> list[Query]:
    return [query for _, query in parse_queries(text, "bad.sql", engine)]


def test_a_file_holds_statements_with_name_purpose_and_params() -> None:
    declared = (Param("a", "int"), Param("b", "nvarchar(4000)"))
    texts = {"sqlite": "SELECT :a\n  FROM t WHERE b = :b;", "sqlserver": "SELECT @a\n  FROM hubledger.t WHERE b = @b;"}
    for engine in ("sqlite", "sqlserver"):
        assert parsed(TWO, engine) == [
            Query("first_one", "What it does, in two lines.", declared, texts[engine]),
            Query("second_one", "Nothing to bind.", (), "SELECT 1; -- a remark"),
        ]


def test_parameters_and_answers_have_types_and_a_second_body_is_sent_to_the_server_as_it_is() -> None:
    (query,), (on_server,) = parsed(TYPED), parsed(TYPED, "sqlserver")
    kinds = {"a": "int", "b": "nvarchar(4000)", "c": "datetime2(6)", "d": "rows", "e": "bit"}
    of_many = {"d": ("x", "y", "a")}
    declared = tuple(Param(name, kind, of_many.get(name, ())) for name, kind in kinds.items())
    assert query.declared == on_server.declared == declared
    assert query.params == ("a", "b", "c", "x", "y", "e")
    assert query.answers == (Param("x", "varchar(128)"), Param("y", "bigint"))
    assert query.text == "SELECT :a, :b, :c, :x, :y, :e;"
    assert on_server.text == TYPED.partition("-- sqlserver:\n")[2].strip()


def test_a_line_of_an_optional_parameter_is_left_out_when_the_parameter_is_missing() -> None:
    (query,) = parsed(FILTERED)
    assert query.optional == {"b", "c"}
    assert query.text_without(set()) == query.text
    assert query.text_without({"b"}) == query.text.replace("   AND +b = :b  -- if given\n", "")
    assert query.text_without({"a", "b", "c"}) == "SELECT a\n  FROM t\n WHERE a = :a\n   AND c < :a;"


def test_a_part_stands_in_each_statement_that_names_it() -> None:
    texts = {query.text for query in parsed(PARTED)}
    assert texts == {"SELECT a.b,\n       a.c\n  FROM a\n WHERE s = :stream_id;"}


NO_FORM = "a query needs a name, a line of purpose and its par"
NO_PARAM = ".* is not a parameter: a name, a type, and columns in bracke"
REFUSED = {
    "no purpose": ("-- name: x\n-- params:\nSELECT 1;\n", f"1: {NO_FORM}"),
    "no params": ("-- name: x\n-- What it does.\nSELECT 1;\n", f"1: {NO_FORM}"),
    "no name": ("-- name:\n-- What it does.\n-- params:\nSELECT 1;\n", f"1: {NO_FORM}"),
    "a name of two words": ("-- name: two words\n-- What it does.\n-- params:\nSELECT 1;\n", f"1: {NO_FORM}"),
    "after others": (f"{TWO}\n-- name: x\n-- params:\nSELECT 1;\n", f"13: {NO_FORM}"),
    **{
        f"the parameter {text}": (TWO + TYPED.replace("a int, b", f"a int, {text}, b"), f"12: {NO_PARAM}")
        for text in ("f", "flag", "f int b", "(x)", "f decimal(38, 10) (x) y", "@f int", "a-b", "f rows")
    },
    "one too many": (TWO.replace("b = :b", "b = :b AND d = :d"), "1: its header does not declare d$"),
    "one undeclared": (TWO.replace(", b nvarchar(4000)", ""), "1: its header does not declare b$"),
    "one undeclared in two bodies": (
        TYPED.replace("SELECT :a", "SELECT :f, :a").replace("T @a", "T @f, @a"),
        "1: its header does not declare f$",
    ),
    "two unused": (TWO.replace("-- params:\n", "-- params: d int, c int\n"), "8: its text does not use c, d$"),
    "one unused in two bodies": (TYPED.replace(":y, :e", ":y").replace("@c, @e", "@c"), "1: its text does not use e$"),
    "an unknown body": (f"{TWO}-- oracle:\nSELECT 2;\n", "8: -- oracle: is not a mark$"),
    "a mark": (TWO.replace("b = :b;", "rows(:b) AS n (x)"), "1: .* is not a mark$"),
    "no part": (PARTED.replace("part: listed", "part: others"), "6: the file has no part named listed"),
}


@pytest.mark.parametrize("engine", ["sqlite", "sqlserver"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_does_not_keep_the_form_is_refused_with_its_file_and_line(case: str, engine: Engine) -> None:
    text, message = REFUSED[case]
    with pytest.raises(ValueError, match=rf"^bad\.sql:{message}"):
        parsed(text, engine)


def test_a_second_statement_of_one_name_is_refused_with_its_file_and_line() -> None:
    texts = {"one.sql": TWO, "two.sql": TWO.replace("first_one", "third_one")}
    with pytest.raises(ValueError, match=r"^two\.sql:8: a second statement named second_one$"):
        queries_of(texts, "sqlite")


TYPES = {"day": "varchar(10)", "why": "nvarchar(4000)"}

# Of each rule: the body, SQLite's text (None: the body as it is) and SQL Server's.
RULES = {
    "a parameter has the sign of its engine": (
        "SELECT ':x', a.b FROM t AS a WHERE a.c = :some_one AND a.d = '00:00';",
        None,
        "SELECT '@x', a.b FROM hubledger.t AS a WHERE a.c = @some_one AND a.d = '00:00';",
    ),
    "a table has its schema on the server, and a name of WITH is no table, but a longer one may be": (
        "WITH few AS (SELECT 1 FROM t), more AS (SELECT 2 FROM few) INSERT INTO u (a) SELECT 1 FROM more JOIN more_of;",
        None,
        "WITH few AS (SELECT 1 FROM hubledger.t), more AS (SELECT 2 FROM few)"
        " INSERT INTO hubledger.u (a) SELECT 1 FROM more JOIN hubledger.more_of;",
    ),
    "a limit is the TOP of its own SELECT": (
        "SELECT a, (SELECT b FROM u ORDER BY b\n LIMIT 1) AS c\n  FROM t\n WHERE a IN (SELECT 2)\n LIMIT :most;",
        None,
        "SELECT TOP (@most) a, (SELECT TOP (1) b FROM hubledger.u ORDER BY b) AS c\n  FROM hubledger.t\n"
        " WHERE a IN (SELECT 2);",
    ),
    "the first rows to delete are found by their key, or by TOP": (
        "DELETE FROM t\n WHERE a = :a\n   AND NOT EXISTS (\n       SELECT 1 FROM u AS x WHERE x.a = :a)\n"
        " ORDER BY b LIMIT :most BY a, c;",
        "DELETE FROM t\n WHERE (a, c) IN (\n       SELECT a, c FROM t\n        WHERE a = :a\n"
        "          AND NOT EXISTS (\n              SELECT 1 FROM u AS x WHERE x.a = :a)\n"
        "        ORDER BY b LIMIT :most);",
        "DELETE TOP (@most) FROM hubledger.t\n WHERE a = @a\n   AND NOT EXISTS (\n"
        "       SELECT 1 FROM hubledger.u AS x WHERE x.a = @a);",
    ),
    "so are the first rows to update, which need no order": (
        "UPDATE t\n   SET a = :a\n WHERE b = :b\n LIMIT :most BY rowid;",
        "UPDATE t\n   SET a = :a\n WHERE (rowid) IN (\n       SELECT rowid FROM t\n        WHERE b = :b\n"
        "        LIMIT :most);",
        "UPDATE TOP (@most) hubledger.t\n   SET a = @a\n WHERE b = @b;",
    ),
    "a delete puts out what was there": (
        "DELETE FROM t\n WHERE b = :b\nRETURNING c;",
        None,
        "DELETE FROM hubledger.t\nOUTPUT deleted.c\n WHERE b = @b;",
    ),
    "the table of an update with another name follows its values": (
        "UPDATE t AS x\n   SET a = x.b\n WHERE x.c = :c\nRETURNING a;",
        None,
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
        "SELECT CONVERT(varchar(33), MIN(t.at), 126) AS at, SUM(CONVERT(bigint, t.n)), CONVERT(date, :day, 23);",
        "SELECT MIN(t.at) AS at, SUM(t.n), :day;",
        "SELECT CONVERT(varchar(33), MIN(t.at), 126) AS at, SUM(CONVERT(bigint, t.n)), CONVERT(date, @day, 23);",
    ),
    "only the server locks, collates and tells kinds of texts apart": (
        "SELECT N'a' FROM t AS x WITH (UPDLOCK, HOLDLOCK) WHERE a = b COLLATE Latin1_General_100_BIN2;",
        "SELECT 'a' FROM t AS x WHERE a = b;",
        "SELECT N'a' FROM hubledger.t AS x WITH (UPDLOCK, HOLDLOCK) WHERE a = b COLLATE Latin1_General_100_BIN2;",
    ),
    "only the text for SQLite names an index": (
        "SELECT 1 + 2 FROM t AS d INDEXED BY ix_t WHERE +d.a = 1 AND (+d.b = 2)  -- +: by its index\n ORDER BY +d.c;",
        None,
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
        None,
        "SELECT CASE WHEN DATALENGTH(@why) > 0 THEN @why END, NULLIF(@day, '');",
    ),
    "a line may be of one engine, and a number that the script keeps is a variable of the server": (
        "UPDATE t\n   SET @a = a = a + 1\nRETURNING a;  -- sqlite only\n"
        "; IF @@ROWCOUNT = 1 SELECT 2;  -- sqlserver only",
        "UPDATE t\n   SET a = a + 1\nRETURNING a;",
        "UPDATE hubledger.t\n   SET @a = a = a + 1\n; IF @@ROWCOUNT = 1 SELECT 2;",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_body_becomes_the_text_of_each_engine(rule: str) -> None:
    body, sqlite, server = RULES[rule]
    assert (sqlite_text(body), server_text(body, TYPES)) == (sqlite or body, server)


def test_a_duplicate_of_a_race_is_caught_on_the_server() -> None:
    assert server_text("INSERT INTO t (a)\nSELECT :a;", TYPES, race="made by another at the same moment") == (
        "BEGIN TRY\n    INSERT INTO hubledger.t (a)\n    SELECT @a;\nEND TRY\n"
        "BEGIN CATCH\n    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- made by another at the same moment\n"
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
        "SELECT 1 WHERE exact(:p);",
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
