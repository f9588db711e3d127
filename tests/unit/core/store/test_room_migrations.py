"""core/store/migrations.py on SQLite: our sequence and those of rooms, rows that change hands, and what is refused."""

from contextlib import closing
from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrations import load_migrations, migrations_of
from core.store.sqlite.schema import migrate_sqlite, open_checked, open_database
from core.transforms.rooms import Room
from tests.fakes.own_room import TEXTS, own_room
from tests.fakes.rooms import EXAMPLES, migrate_examples

OURS = list(load_migrations("sqlite"))
BEFORE = OURS[:25]  # the migrations of release 0.1, which knew no rooms
SINCE = OURS[25:]
NEWEST = OURS[-1].version
LIST_OF_BEFORE = """
    CREATE TABLE schema_migration (
        version    INTEGER NOT NULL,
        name       TEXT NOT NULL,
        applied_at TEXT NOT NULL,
        CONSTRAINT pk_schema_migration PRIMARY KEY (version)
    ) STRICT
"""
STREAM = (
    "INSERT INTO event_stream (event_hub, consumer_group, incarnation, anchored_at)"
    " VALUES ('namespace/telemetry', 'hubledger', 1, '2026')"
)
HOME = "INSERT INTO home VALUES ('home-1', 'Europe/Berlin', 1, 1, '0', 7, 1)"
SECOND = {**TEXTS, "0002_more.sql": "ALTER TABLE parcel ADD COLUMN weight INTEGER"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def sql(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(open_database(path, 5.0)) as connection:
        return list(connection.execute(statement))


def make_release_01(path: Path, *more: str, names: tuple[str, ...] = ()) -> None:
    """Make a store as release 0.1 left it; `names` are migrations that its owner added to our folder."""
    with closing(open_database(path, 5.0)) as connection:
        connection.execute(LIST_OF_BEFORE)
        for one in BEFORE:
            connection.executescript(one.text)
        rows = [(one.version, one.name, "2026") for one in BEFORE]
        rows += [(len(BEFORE) + place, name, "2026") for place, name in enumerate(names, 1)]
        connection.executemany("INSERT INTO schema_migration (version, name, applied_at) VALUES (?, ?, ?)", rows)
        for statement in more:
            connection.execute(statement)


def listed(path: Path, app: str) -> list[tuple[object, ...]]:
    return sql(path, f"SELECT version, name FROM schema_migration WHERE app = '{app}' ORDER BY version")


def tables(path: Path) -> set[object]:
    return {name for (name,) in sql(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}


def opens(path: Path, *rooms: Room) -> None:
    open_checked(path, 5.0, rooms).close()


def test_ours_run_first_then_those_of_each_room_in_its_order(tmp_path: Path, path: Path) -> None:
    orders, sales = own_room(tmp_path, SECOND), own_room(tmp_path, {"0001_orders.sql": "SELECT 1"}, "apps.sales")
    told: list[str] = []
    applied = migrate_sqlite(path, [orders, sales], told.append)
    assert applied == [*OURS, *migrations_of(orders, "sqlite"), *migrations_of(sales, "sqlite")]
    assert told[-3:] == [
        "applied apps.orders 0001 orders",
        "applied apps.orders 0002 more",
        "applied apps.sales 0001 orders",
    ]
    assert listed(path, "apps.orders") == [(1, "orders"), (2, "more")]
    assert migrate_sqlite(path, [orders, sales], told.append) == []
    opens(path, orders, sales)


def test_a_later_migration_of_a_room_is_applied_alone(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path)])
    assert [one.title for one in migrate_sqlite(path, [own_room(tmp_path, SECOND)])] == ["apps.orders 0002 more"]


def test_a_store_that_lacks_a_migration_of_a_room_is_not_opened(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path)])
    later = own_room(tmp_path, SECOND)
    with pytest.raises(SchemaMismatch, match=r"lacks migration apps\.orders 0002 more: run `python -m core\.store\.mi"):
        opens(path, later)
    opens(path)


def test_a_migration_of_a_room_may_lack_the_last_semicolon(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path, SECOND)])
    assert sql(path, "SELECT weight FROM parcel") == []


def test_a_migration_of_a_room_that_fails_is_named_and_leaves_nothing_of_the_run(tmp_path: Path, path: Path) -> None:
    room = own_room(tmp_path, {**TEXTS, "0002_wrong.sql": "CREATE TABLE parcel (a TEXT);"})
    with pytest.raises(StoreUnavailable, match=r"apps\.orders 0002 wrong failed, and nothing of this run stays: "):
        migrate_sqlite(path, [room])
    assert tables(path) == set()


@pytest.mark.parametrize("ending", ["COMMIT;", "ROLLBACK;", "BEGIN;", "END TRANSACTION;"])
def test_a_migration_that_ends_the_transaction_is_refused_and_leaves_nothing(
    tmp_path: Path, path: Path, ending: str
) -> None:
    with pytest.raises(
        StoreUnavailable, match=r"orders 0001 orders failed, and nothing of this run stays: .*transaction"
    ):
        migrate_sqlite(path, [own_room(tmp_path, {"0001_orders.sql": f"CREATE TABLE parcel (a TEXT);\n{ending}\n"})])
    assert tables(path) == set()


class TestAReleaseWithoutRooms:
    def test_is_upgraded_with_its_rows(self, path: Path) -> None:
        make_release_01(path, STREAM, HOME)
        told: list[str] = []
        assert [one.title for one in migrate_sqlite(path, EXAMPLES, told.append)] == [
            *(one.title for one in SINCE),
            "examples.home_security 0001 home_security",
            "examples.home_security 0002 collations",
            "examples.home_security 0003 states_by_place",
            "examples.flight_info 0001 flight_info",
            "examples.flight_info 0002 collations",
            "examples.flight_info 0003 states_by_place",
        ]
        assert told[0] == "recorded 0026 examples_apart, which is only for a database without a stream"
        assert sql(path, "SELECT home_id FROM home") == [("home-1",)]
        assert "home_activity_staging" in tables(path)
        assert listed(path, "hubledger") == [(one.version, one.name) for one in OURS]
        opens(path, *EXAMPLES)

    def test_must_be_migrated_before_this_code_opens_it(self, path: Path) -> None:
        make_release_01(path, STREAM)
        with pytest.raises(SchemaMismatch, match=r"is at schema 25 of \d+: run `python -m core\.store\.migrate`"):
            opens(path)

    def test_still_opens_a_store_with_rooms_and_would_write_to_its_list(self, tmp_path: Path, path: Path) -> None:
        """These are its statements: it refuses a newer migration whose name begins with breaking_, and no other."""
        migrate_sqlite(path, [own_room(tmp_path)])
        newest, newer = (
            "SELECT MAX(version) FROM schema_migration",
            "SELECT name FROM schema_migration WHERE version > 25",
        )
        names = [(one.name,) for one in SINCE]
        assert sql(path, newest) == [(NEWEST,)]
        assert sql(path, newer) == names
        sql(path, "INSERT INTO schema_migration (version, name, applied_at, app) VALUES (99, 'a', '', 'apps.orders')")
        assert (sql(path, newest), sql(path, newer)) == ([(99,)], [*names, ("a",)])
        sql(path, f"INSERT INTO schema_migration (version, name, applied_at) VALUES ({NEWEST + 1}, 'b', '')")
        assert listed(path, "hubledger")[-1] == (NEWEST + 1, "b")

    def test_without_a_stream_loses_the_tables_of_examples_that_no_room_names(self, path: Path) -> None:
        make_release_01(path)
        migrate_sqlite(path, EXAMPLES[:1])
        assert {"home", "sensor_reading", "home_activity_day"} <= tables(path)
        assert not {name for name in tables(path) if str(name).startswith("flight")}


class TestAMigrationThatItsOwnerKeptInOurFolder:
    def test_is_handed_over_to_the_room_that_has_it(self, tmp_path: Path, path: Path) -> None:
        make_release_01(path, STREAM, "CREATE TABLE parcel (parcel_id TEXT)", names=("orders", "more"))
        room, told = own_room(tmp_path, SECOND), list[str]()
        with pytest.raises(SchemaMismatch, match="is at schema 25 of"):
            opens(path, room)
        assert migrate_sqlite(path, [room], told.append) == SINCE
        assert told[:2] == [
            "handed 0026 orders over: it is apps.orders 0001 orders now",
            "handed 0027 more over: it is apps.orders 0002 more now",
        ]
        assert listed(path, "apps.orders") == [(1, "orders"), (2, "more")]
        assert listed(path, "hubledger") == [(one.version, one.name) for one in OURS]
        opens(path, room)

    def test_is_handed_over_from_each_number_that_a_newer_release_has_too(self, tmp_path: Path, path: Path) -> None:
        names = tuple(f"own_{place}" for place in range(1, len(SINCE) + 2))  # the last one is beyond ours
        make_release_01(path, STREAM, names=names)
        room = own_room(tmp_path, {f"{place:04}_{name}.sql": "SELECT 1;" for place, name in enumerate(names, 1)})
        assert migrate_sqlite(path, [room]) == SINCE
        assert listed(path, "apps.orders") == list(enumerate(names, 1))
        assert listed(path, "hubledger") == [(one.version, one.name) for one in OURS]
        opens(path, room)

    @pytest.mark.parametrize("count", range(1, len(SINCE) + 1))
    def test_is_refused_at_each_number_that_a_newer_release_has_too(self, path: Path, count: int) -> None:
        """Its owner took the first of the later migrations, and kept his own after them."""
        make_release_01(path, names=(*(one.name for one in SINCE[: count - 1]), "theirs"))
        for attempt in (lambda: opens(path), lambda: migrate_sqlite(path)):
            with pytest.raises(SchemaMismatch, match=rf"has migration {25 + count:04} theirs, .*move its file"):
                attempt()

    @pytest.mark.parametrize("names", [("theirs",), ("orders", "theirs")])
    def test_is_refused_until_a_room_has_it(self, tmp_path: Path, path: Path, names: tuple[str, ...]) -> None:
        make_release_01(path, names=names)
        wanted = rf"has migration 00{25 + len(names)} theirs, .*move its file to apps/NAME/migrations"
        for attempt in (lambda: opens(path, own_room(tmp_path)), lambda: migrate_sqlite(path, [own_room(tmp_path)])):
            with pytest.raises(SchemaMismatch, match=wanted):
                attempt()
        assert sql(path, "SELECT MAX(version) FROM schema_migration") == [(25 + len(names),)]
        assert "app" not in {name for (name,) in sql(path, "SELECT name FROM pragma_table_info('schema_migration')")}

    def test_is_refused_after_ours_until_a_room_has_it(self, tmp_path: Path, path: Path) -> None:
        names = tuple(f"own_{place}" for place in range(1, len(SINCE) + 1))
        make_release_01(path, names=(*names, "theirs"))
        room = own_room(tmp_path, {f"{place:04}_{name}.sql": "SELECT 1;" for place, name in enumerate(names, 1)})
        for attempt in (lambda: opens(path, room), lambda: migrate_sqlite(path, [room])):
            with pytest.raises(SchemaMismatch, match=rf"has migration {NEWEST + 1:04} theirs, .*move its file"):
                attempt()
        assert sql(path, "SELECT MAX(version) FROM schema_migration") == [(NEWEST + 1,)]

    def test_is_one_of_a_newer_release_when_the_store_has_all_of_ours(self, tmp_path: Path, path: Path) -> None:
        migrate_sqlite(path)
        sql(path, f"INSERT INTO schema_migration VALUES ({NEWEST + 1}, 'newer', '2027', 'hubledger')")
        assert migrate_sqlite(path) == []
        opens(path)

    def test_is_handed_over_once(self, tmp_path: Path, path: Path) -> None:
        make_release_01(path, "CREATE TABLE parcel (parcel_id TEXT)", names=("orders", "orders"))
        with pytest.raises(SchemaMismatch, match="0027 orders, which is not one of Hubledger"):
            migrate_sqlite(path, [own_room(tmp_path)])

    def test_goes_to_its_own_room_when_the_rooms_of_all_apps_are_named(self, tmp_path: Path, path: Path) -> None:
        make_release_01(path, "CREATE TABLE parcel (parcel_id TEXT)", names=("orders", "sales"))
        orders, sales = own_room(tmp_path), own_room(tmp_path, {"0001_sales.sql": "SELECT 1;"}, "apps.sales")
        for alone in (orders, sales):
            with pytest.raises(SchemaMismatch, match=r"not one of Hubledger: move its file .*, and name that room"):
                migrate_sqlite(path, [alone])
        migrate_sqlite(path, [orders, sales])
        assert (listed(path, "apps.orders"), listed(path, "apps.sales")) == ([(1, "orders")], [(1, "sales")])
        for alone in (orders, sales):
            assert migrate_sqlite(path, [alone]) == []
            opens(path, alone)


class TestARoomOfNewerCode:
    def test_is_refused_when_its_migration_breaks_this_code(self, tmp_path: Path, path: Path) -> None:
        migrate_sqlite(path, [own_room(tmp_path)])
        sql(path, "INSERT INTO schema_migration VALUES (99, 'breaking_x', '2027', 'apps.orders')")
        for attempt in (opens, lambda path, room: migrate_sqlite(path, [room])):
            with pytest.raises(SchemaMismatch, match=r"apps\.orders 0099 breaking_x, .* up to 0001 .*newer code"):
                attempt(path, own_room(tmp_path))
        opens(path)  # for a different transform

    def test_is_worked_on_when_its_migration_only_adds(self, tmp_path: Path, path: Path) -> None:
        migrate_sqlite(path, [own_room(tmp_path)])
        sql(path, "INSERT INTO schema_migration VALUES (99, 'more', '2027', 'apps.orders')")
        opens(path, own_room(tmp_path))


def test_a_migration_that_was_renamed_is_refused_with_its_old_name(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path)])
    renamed = own_room(tmp_path / "b", {"0001_parcels.sql": "SELECT 1;"})
    with pytest.raises(SchemaMismatch, match=r"orders 0001 orders, but its file is named 0001_parcels\.sql: "):
        migrate_sqlite(path, [renamed])


def test_a_room_without_migrations_needs_none(tmp_path: Path, path: Path) -> None:
    assert migrate_sqlite(path, [Room("apps.bare", tmp_path)]) == OURS
    opens(path, Room("apps.bare", tmp_path))


FAULTS = {
    "a number twice": ({"0001_a.sql": "", "0001_b.sql": ""}, r"sqlite/0001_b\.sql: a second migration 0001 beside a; "),
    "a gap": ({"0001_a.sql": "", "0003_b.sql": ""}, r"sqlite/0003_b\.sql: migration 0002 is missing"),
    "no first": ({"0099_a.sql": ""}, r"sqlite/0099_a\.sql: migration 0001 is missing"),
    "zero": ({"0000_a.sql": ""}, r"sqlite/0000_a\.sql: migration 0001 is missing"),
    "no number": ({"orders.sql": ""}, r"sqlite/orders\.sql: a migration is a file NNNN_name\.sql"),
    "few digits": ({"001_a.sql": ""}, r"sqlite/001_a\.sql: a migration is a file NNNN_name\.sql"),
    "a blank": ({"0001_a b.sql": ""}, r"sqlite/0001_a b\.sql: a migration is a file NNNN_name\.sql"),
    "a copy of an editor": ({"0001_a.sql~": ""}, r"sqlite/0001_a\.sql~: a migration is a file NNNN_name\.sql"),
    "a long name": ({f"0001_{'a' * 101}.sql": ""}, "its name has at most 100 characters"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_file_that_breaks_the_rules_is_named(tmp_path: Path, path: Path, case: str) -> None:
    texts, why = FAULTS[case]
    with pytest.raises(SchemaMismatch, match=why) as caught:
        migrate_sqlite(path, [own_room(tmp_path, texts)])
    assert "\n" not in str(caught.value)


def test_both_engines_have_the_same_files(tmp_path: Path, path: Path) -> None:
    with pytest.raises(SchemaMismatch, match=r"migrations has no folder sqlserver: write each migration"):
        migrate_sqlite(path, [own_room(tmp_path / "a", engines=("sqlite",))])
    own_room(tmp_path / "b", SECOND, engines=("sqlserver",))
    with pytest.raises(SchemaMismatch, match=r"migrations has 0002_more\.sql for one engine only"):
        migrate_sqlite(path, [own_room(tmp_path / "b", TEXTS, engines=("sqlite",))])


def test_the_name_of_a_room_fits_its_column(tmp_path: Path, path: Path) -> None:
    room = own_room(tmp_path)
    with pytest.raises(SchemaMismatch, match="has more than 200 characters"):
        migrate_sqlite(path, [Room("apps." + "a" * 196, room.folder)])
    assert migrate_sqlite(path, [Room("apps." + "a" * 195, room.folder)])[-1].name == "orders"


def columns(path: Path) -> dict[str, set[tuple[object, ...]]]:
    """Return the tables of the examples, with the name, type, need of a value and place in the key of each column."""
    found = sql(
        path,
        "SELECT m.name, c.name, c.type, c.[notnull], c.pk FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c"
        " WHERE m.type = 'table' AND (m.name LIKE 'home%' OR m.name LIKE 'flight%' OR m.name = 'sensor_reading')",
    )
    of: dict[str, set[tuple[object, ...]]] = {}
    for table, *column in found:
        of.setdefault(str(table), set()).add(tuple(column))
    return of


def indexes(path: Path) -> set[tuple[object, ...]]:
    text = (
        "SELECT name, tbl_name, REPLACE(REPLACE(sql, ' IF NOT EXISTS', ''), char(10) || '   ', '') FROM sqlite_master"
    )
    return set(sql(path, f"{text} WHERE type = 'index' AND sql IS NOT NULL"))


def test_a_new_store_has_the_tables_and_indexes_that_an_old_one_has(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    make_release_01(old, STREAM)
    migrate_examples(new)
    expected = columns(old)
    del expected["home_activity_staging"]  # only used by code before 0.1
    assert columns(new) == expected
    assert len(expected) == 13
    migrate_examples(old)
    assert indexes(new) == {one for one in indexes(old) if one[1] != "home_activity_staging"}
    assert columns(old) == expected | {"home_activity_staging": columns(old)["home_activity_staging"]}
