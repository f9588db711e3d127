"""Mutants of the check of transforms: purity, the modules that it reads, missing tables, and the trials in tests."""

from tests.mutants.mutant import in_file

CONTRACT = "tests/unit/core/transforms/contract"

MUTANTS = (
    *in_file(
        "core/transforms/contract/purity.py",
        f"{CONTRACT}/test_purity.py",
        ("a function changes a value of a class", " or self._is_of_class(function.value)", ""),
        ("a function changes a default of an argument", "self._kept | shared", "self._kept"),
        ("a name of the module is taken for a builtin", "(*self._locals, self._bound)", "self._locals"),
        ("a module beside is taken for one of Python", '"." * node.level + (node.module or "")', 'node.module or ""'),
        ("the order of a joined set is pure", 'function.attr == "join"', "False"),
    ),
    *in_file(
        "core/transforms/contract/whole.py",
        f"{CONTRACT}/test_whole.py",
        ("a relative import is not read", '"." * node.level + (node.module or "")', 'node.module or ""'),
        ("a finding has no line", "{lines.file}:{line}: {fault}", "{lines.file}: {fault}"),
    ),
    *in_file(
        "core/transforms/contract/rows.py",
        f"{CONTRACT}/test_form.py",
        ("an optional key is accepted", "if _NONE in get_args(hints[name]):", "if False:"),
    ),
    *in_file(
        "core/store/misfits.py",
        "tests/unit/core/store/test_misfits.py tests/unit/core/store/test_sqlite_database.py",
        ("a column without a value is accepted", "if there[name].needs_value:", "if False:"),
        ("a missing column is accepted", "if name.lower() not in there)", "if False)"),
    ),
    *in_file(
        "handlers/app.py",
        "tests/unit/handlers/test_app.py",
        (
            "the app opens without a table",
            "open_database(connection, transform.row_classes)",
            "open_database(connection)",
        ),
    ),
    *in_file(
        "core/worker/work.py",
        "tests/unit/core/worker/test_work.py",
        (
            "a worker opens without a table",
            "open_database(settings.store_connection, transform.row_classes)",
            "open_database(settings.store_connection)",
        ),
    ),
    *in_file(
        "local/trials/replay_identity.py",
        "tests/unit/local/trials/test_replay_identity.py",
        ("a trial compares no rows", "            if one != other:", "            if False:"),
    ),
    *in_file(
        "local/trials/any_body.py",
        "tests/unit/local/trials/test_any_body.py",
        ("no field of a message is damaged", '("octets", "octets", "field")', '("octets", "octets")'),
    ),
)
