import json
import signal
from pathlib import Path

import pytest

from local.programs import APP
from local.recount.recount import recount
from local.stack.app_totals import get, read_books
from tests.acceptance.started import HUB, READY, Process, line_of, start, working
from tests.acceptance.upgrade.git import add_migration
from tests.checkout import copy_checkout
from tests.patience import ended

pytestmark = pytest.mark.soak
FEED = ("--gather", "0.1", "--homes", "200", "--lanes", "2", "--events", "endless", "--rate", "250")


def test_an_upgrade_and_a_rollback_under_load_account_for_each_event_once(tmp_path: Path) -> None:
    new, record, hosts = copy_checkout(tmp_path / "next", ("docs/", "tests/")), tmp_path / "record.db", list[Process]()
    add_migration(new, "v0.3.0")
    with working(tmp_path, 4) as app:

        def host(folder: Path) -> Process:
            """Start the app of a release. The state of its host is that of the app before it."""
            log = f"{tmp_path}/{len(hosts)}.log"
            options = ("--app", ".", "--port", "0", "--log", log, "--state", f"{tmp_path}/host.db")
            settings = app.settings(TRANSFORM="examples.home_security")
            hosts.append(
                start("local.functions_host", *options, settings=settings, alone=True, cwd=folder, stderr=None)
            )
            app.address = line_of(hosts[-1], READY).removeprefix(READY)
            return hosts[-1]

        def progress() -> None:
            before = sum(app.accounted().values())
            app.until(lambda: sum(app.accounted().values()) >= before + 250)

        def ingests() -> None:
            log = tmp_path / f"{len(hosts) - 1}.log"
            app.until(lambda: log.exists() and log.read_text().count('"action": "ingest"') > 2)

        def versions() -> int:
            return int(app.engine.sql("SELECT COUNT(*) FROM schema_migration")[0][0])

        feed = start("local.feed", "--connection", app.emulator.connection_string, "--record", str(record), *FEED)
        try:
            old, before = host(APP), versions()
            progress()
            migrating = start("core.store.migrate", settings=app.settings(TRANSFORM="examples.home_security"), cwd=new)
            assert ended(migrating, 60)[0].splitlines()[-1] == "the store is up to date"
            assert versions() > before, "the releases have the same schema"
            progress()
            assert old.poll() is None
            newest = host(new)
            ingests()  # beside the old one
            progress()
            old.kill()
            progress()
            newest.kill()
            for _ in range(2):  # the old app on the new schema, killed under load and started again
                old = host(APP)
                progress()
                if len(hosts) == 3:
                    old.kill()
            host(new)
            ingests()
            old.terminate()
            ended(old, 60)
            feed.send_signal(signal.SIGTERM)
            ended(feed, 60)
            # every letter is settled, too: it is retried while the lag ends
            app.until(lambda: read_books(app.address).in_hub == read_books(app.address).accounted)
            books, audit = read_books(app.address), json.loads(get(app.address, "/api/ledger/audit"))
        finally:
            for one in (feed, *hosts):
                one.kill()
                one.communicate()
        assert (books.balanced, audit["balanced"], audit["faults"]) == (True, True, [])
        assert recount(app.engine.path, record) == []
        in_hub = {id: last + 1 for id, last in app.emulator.end_of(HUB).items()}
        assert app.accounted() == in_hub
        assert sum(in_hub.values()) == books.accounted
