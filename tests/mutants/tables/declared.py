"""Mutants of the tables of classes: lengths, keys, rights, and the next migration of a room."""

from tests.mutants.mutant import in_file

DDL, ROOM = "tests/unit/hubledger/cli/ddl", "tests/sql/test_room_tables.py"

MUTANTS = (
    *in_file(
        "core/store/columns.py",
        "tests/contract/test_commit.py",
        ("a text of ASCII may have other letters", "isinstance(value, str) and not value.isascii()", "value is None"),
    ),
    *in_file(
        "core/model/rows.py",
        f"{DDL}/test_diff.py",
        ("a letter in a key has one byte", "text.length if text.ascii else 2 * text.length", "text.length"),
    ),
    *in_file(
        "hubledger/cli/ddl/rows.py",
        f"{DDL}/test_diff.py",
        (
            "a new table of states has no index by place",
            'index = f"\\n{place_index_text(row_class, engine)}" if table.key else ""',
            'index = ""',
        ),
        ("a key without a length is declared", "if kind is str and name not in texts]", "if kind is None]"),
    ),
    *in_file(
        "hubledger/cli/ddl/rows.py",
        ROOM,
        (
            "appended tables are not compressed",
            'return ");" if is_state else ") WITH (DATA_COMPRESSION = PAGE);"',
            'return ");"',
        ),
        (
            "fields that may be None take no NULL",
            'return written if type(None) in types_of(hint) else f"{written} NOT NULL"',
            'return f"{written} NOT NULL"',
        ),
    ),
    *in_file(
        "hubledger/cli/ddl/types.py",
        ROOM,
        ("a word of SQL has no brackets", "return name if is_plain(name) else quoted(name)", "return name"),
        (
            "a text compares as the database does",
            "else text.length}) {BY_CODE_POINT}",
            "else text.length})",
        ),
    ),
    *in_file(
        "hubledger/cli/ddl/room.py",
        "tests/sql/test_rights.py",
        ("the app may not change states", "SELECT, INSERT, UPDATE{', DELETE'", "SELECT, INSERT{', DELETE'"),
        ("jobs may not stage windows", '"SELECT, INSERT", level.staged, _JOB', '"SELECT", level.staged, _JOB'),
    ),
    *in_file(
        "hubledger/cli/ddl/compare.py",
        f"{DDL}/test_diff.py",
        ("a column that is never None is added", "    if each.is_required:\n", "    if each is None:\n"),
        ("a text is cut to its new length", "    if has < had:\n", "    if has is None:\n"),
        ("a key is made longer", "elif each.name in wanted.key or not wanted.of_rows:", "elif not wanted.of_rows:"),
        (
            "a longer text loses its collation",
            'f" COLLATE {there.collation}" if there.collation',
            '"" if there.collation',
        ),
        ("a column with a default is missed", " and not column.fills_itself", ""),
        ("a changed key is not seen", "if [name.lower() for name in wanted.key] != list(standing.key):", "if False:"),
    ),
    *in_file(
        "hubledger/cli/ddl/diff.py",
        f"{DDL}/test_diff.py",
        ("a table that is not understood is compared", "and name not in standing.unclear:", "and name:"),
        ("lines of a person are lost", "return wanted if not others else", "return wanted if True else"),
        (
            "classes of other rooms are made here",
            "return room is None or room.folder.resolve()",
            "return room or room_folder.resolve()",
        ),
        ("a column comes before an index", "key=lambda one: one.comes_last", "key=lambda one: not one.comes_last"),
    ),
    *in_file(
        "hubledger/cli/ddl/parsed.py",
        f"{DDL}/test_parsed.py",
        ("a statement in a text is left out", "            if inner is None:\n", "            if True:\n"),
        (
            "what is not understood is left out",
            "            reading.leave(place, before + one.line, one.text)",
            "            pass",
        ),
        (
            "the body of a procedure counts",
            "            return  # a module is alone",
            "            pass  # a module is alone",
        ),
        ("a key stays when its constraint is dropped", "replace(table, key=()) if gone else table", "table"),
    ),
    *in_file(
        "hubledger/cli/ddl/statements.py",
        f"{DDL}/test_parsed.py",
        (
            "a statement needs a semicolon before it",
            "return first.text.upper() not in GRANTS and before.text",
            "return False and before.text",
        ),
        ("PRINT takes the rest of a script", "        COMMANDS = set()", "        COMMANDS = TSQL.Tokenizer.COMMANDS"),
    ),
)
