"""Mutants of the way of a user's room: packages, hooks, and what belongs to an example."""

from tests.mutants.mutant import in_file

ROOM, PACKAGE = "tests/infra/test_room.py", "tests/unit/jobs/test_package.py"

MUTANTS = (
    *in_file(
        "core/transforms/rooms.py",
        PACKAGE,
        (
            "a job finds no room in its archive",
            "or _has_modules(folder / AGGREGATES)",
            "or (folder / AGGREGATES).is_dir()",
        ),
    ),
    *in_file(
        "core/transforms/__init__.py",
        "tests/unit/core/transforms/test_rooms.py tests/unit/handlers/test_app.py",
        (
            "a broken aggregate stops the first commit",
            "        load_aggregates(row_classes)  # commits",
            "        pass  # commits",
        ),
    ),
    *in_file(
        "core/remote/spark/package.py",
        PACKAGE,
        ("the tests of a room reach the jobs", 'if TESTS not in name.split("/")}', "}"),
        (
            "a module that needs SQL reaches the jobs",
            "place not in found and (app / place).is_file()",
            "place not in found and False",
        ),
    ),
    *in_file(
        "infra/hooks/room.py",
        ROOM,
        ("a GO reaches the server", "_GO.split(path.read_text", "(lambda text: [text])(path.read_text"),
        ("an event that becomes no row proves an app", "transform).written:", "transform) is not None:"),
        ("an environment without a room is refused", "environment.get(NAME) or DEFAULT_TRANSFORM", "environment[NAME]"),
    ),
    *in_file(
        "infra/hooks/database.py",
        "tests/infra/test_database.py",
        ("the rights of a room are not granted", "for batch in rights_of(room):", "for batch in rights_of(room)[:0]:"),
    ),
    *in_file(
        "core/aggregation/store/commits.py",
        "tests/contract/test_aggregation.py",
        (
            "the staging of every aggregate is cleared",
            "load_aggregates(self.row_classes) for",
            "load_aggregates() for",
        ),
    ),
    *in_file(
        "local/explain.py",
        "tests/sql/test_rights.py",
        (
            "the rights of an example are asked of every app",
            "and all(use.table in known for use in uses_of(query.text))",
            "and known",
        ),
    ),
)
