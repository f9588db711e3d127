"""A new user, in a copy of the checkout: docs/your-own-events.md prints what it shows, and mistakes are mended.

Each command that mends five mistakes stands in an output before it, in the README, or in docs/your-own-events.md.
"""

import re
import sqlite3
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.tutorial.page import Command, steps_of
from tests.acceptance.tutorial.reader import USUAL_PORT, Reader, in_a_copy
from tests.acceptance.upgrade.git import GIT
from tests.patience import allowed
from tests.repo.product import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "your-own-events.md").read_text(encoding="utf-8")
HUBLEDGER = "bin/hubledger"
NEW = f"{HUBLEDGER} new shop --from shop.jsonl --key order_id"
ADA, PAID = '"order_id": "O-1", "customer": "Ada"', '"payment_id": "P-1", "amount": 19.99'
SAMPLE = f"""\
{{"type": "order", {ADA}, "total": 19.99, "placed_at": "2026-03-01T09:12:04Z"}}
{{"type": "order", "order_id": "O-2", "customer": "Béla", "total": 5.5, "placed_at": "2026-03-01T09:30:41Z"}}
{{"type": "payment", "order_id": "O-1", {PAID}, "paid_at": "2026-03-01T09:14:00Z"}}
{{"type": "order", "order_id": "O-3",
no JSON at all
"""
GOOD = '{"type": "order", "order_id": "O-4", "customer": "Chen", "total": 7.25, "placed_at": "2026-03-01T10:00:00Z"}'
MALFORMED, WRONG, ADDED, WITHOUT_KEY = (
    '{"type": "order", "order_id": "O-5", "customer": "Dora"',
    GOOD.replace("O-4", "O-6").replace("7.25", '"12,50"'),
    GOOD.replace("O-4", "O-7").replace("}", ', "coupon": "SPRING"}'),
    '{"type": "payment", "payment_id": "P-9", "amount": 12.5, "paid_at": "2026-03-01T10:02:00Z"}',
)
MISTAKES = "\n".join([GOOD, MALFORMED, WRONG, ADDED, WITHOUT_KEY, GOOD]) + "\n"
MENDED = (
    ('VERSION = "shop/1"', 'VERSION = "shop/2"'),
    ("import msgspec\n", "import re\n\nimport msgspec\n"),
    ("paid_at: datetime | None\n", "paid_at: datetime | None\n    coupon: Annotated[str | None, Text(9)] = None\n"),
    ("order_id: Annotated[Name, Meta(max_length=200)]\n", 'order_id: Annotated[Name, Meta(max_length=200)] = "none"\n'),
    ("    paid_at: Instant | None = None\n", "    paid_at: Instant | None = None\n    coupon: str | None = None\n"),
    ("_utc(body.paid_at),\n", "_utc(body.paid_at),\n        body.coupon,\n"),
    ("return _decoded(body)", "return _decoded(re.sub(rb'(\"\\d+),(\\d+\")', rb'\\1.\\2', body))"),
)  # fmt: skip
READY = re.compile(r"^ready: http://localhost:\d+(/api/ops) ", re.M)


def answers(reader: Reader, path: str) -> bool:
    with urllib.request.urlopen(f"http://localhost:{reader.port}{path}", timeout=allowed(10)) as answer:
        return bool(answer.status == 200)


@pytest.mark.skipif(GIT is None, reason="git is missing: apt-get install git")
def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path) -> None:
    reader = in_a_copy(tmp_path / "my-app")
    try:
        for step in steps_of(PAGE):
            reader.take(step)
            if isinstance(step, Command) and step.is_endless:
                addresses = re.findall(rf"<http://localhost:{USUAL_PORT}(/[^>]+)>", PAGE)
                assert [one for one in addresses if not answers(reader, one)] == []
    finally:
        reader.stop()
    assert "\n".join(reader.differing) == ""


class Walk:
    """A person who types only what was named."""

    def __init__(self, reader: Reader) -> None:
        self.reader, self.shown, self._taken = reader, "", set[str]()

    def take(self, line: str, named: str = "", by: str = "") -> str:
        assert line in self._taken or (named or line) in (by or self.shown), f"nothing names {named or line!r}"
        self._taken.add(line)
        output = self.reader.run(f"COLUMNS=160 {line}")
        self.shown += output
        return output

    def begin(self, line: str, named: str = "") -> str:
        """Start a command that does not end, and return its output when its page is ready."""
        assert (named or line) in self.shown, f"nothing names {named or line!r}"
        self.reader.begin(f"KEEP=1 {line}")
        until = time.monotonic() + allowed(120)
        while not READY.search(self.reader.shown) and time.monotonic() < until:
            time.sleep(0.2)
        found = READY.search(self.reader.shown)
        assert found, self.reader.shown
        assert answers(self.reader, found[1])
        self.shown += self.reader.shown
        return self.reader.shown


def test_five_mistakes_are_seen_explained_and_mended_without_a_guess(tmp_path: Path) -> None:
    reader = in_a_copy(tmp_path / "my-app")
    walk, folder = Walk(reader), reader.folder
    (folder / "shop.jsonl").write_text(SAMPLE, encoding="utf-8")
    (folder / "mistakes.jsonl").write_text(MISTAKES, encoding="utf-8")
    try:
        a_room(walk)
        causes = the_causes(walk)
        a_mended_app(walk, folder / "apps" / "shop")
        settle(walk, causes)
        (store,) = (folder / ".local-run" / "demo").glob("run-*/hubledger.db")
        nothing_is_lost(walk, store)
    finally:
        reader.stop()


def a_room(walk: Walk) -> None:
    assert "docs/your-own-events.md" in README
    walk.take(NEW, NEW.replace("shop", "orders"), PAGE)
    assert "Left out: 2 lines of shop.jsonl" in walk.shown
    assert "2 values (order, payment)" in walk.shown
    (example,) = re.findall(r"give each a row class of its own, as in (\S+\.py)\.", walk.shown)
    assert (ROOT / example).exists()
    options = re.findall(r'(--field "[^"]+") keeps it exactly', walk.shown)
    assert len(options) == 2
    again = f"rm -r apps/shop && {NEW} {' '.join(options)}"
    made = walk.take(again, "rm -r apps/shop, and run the same command with it")
    assert re.search(r"total +total +decimal\?", made)
    tried = walk.take(f"{HUBLEDGER} try --transform apps.shop")
    assert "events 3, with rows 3, filtered 0, letters 0" in tried


def the_causes(walk: Walk) -> dict[str, str]:
    tried = walk.take(f"{HUBLEDGER} try mistakes.jsonl --transform apps.shop", "bin/hubledger try bad.jsonl", PAGE)
    assert "unknown field `coupon`: add it to the body, or ignore it" in tried
    demo = walk.begin("make demo TRANSFORM=apps.shop EVENTS_FROM=mistakes.jsonl EVENTS=6")
    assert "each of 6 events is accounted for exactly once (3 written, 3 dead-lettered)" in demo
    status = walk.take(f"{HUBLEDGER} status")
    assert re.search(r"letters open +3 \(exhausted 3\)", status)
    assert "coupon in 1 event" in status
    walk.take(f"{HUBLEDGER} letters causes --status exhausted", f"Next: {HUBLEDGER} letters causes --status exhausted")
    listed = re.findall(r"^ PoisonEvent.* +1 +1 +([0-9a-f]{16}) +(\d+) / (\d+) +poison", walk.shown, re.M)
    assert len(listed) == 3
    assert "Next: bin/hubledger letters show {1} {2} --body text\n".format(*listed[0]) in walk.shown
    found = {}
    for cause, partition, number in listed:
        letter = walk.take(f"{HUBLEDGER} letters show {partition} {number} --body text", f"{partition} / {number}")
        found[letter.rstrip().splitlines()[-1]] = cause
    assert set(found) == {MALFORMED, WRONG, WITHOUT_KEY}
    return found


def a_mended_app(walk: Walk, room: Path) -> None:
    text = (room / "transform.py").read_text(encoding="utf-8")
    for old, new in MENDED:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (room / "transform.py").write_text(text, encoding="utf-8")
    assert "apps/shop/README.md\n" in walk.shown
    trial = f"{HUBLEDGER} try mistakes.jsonl --transform apps.shop"
    assert "add a migration (`bin/hubledger migrate-diff --transform NAME`" in walk.take(trial)
    readme = (room / "README.md").read_text(encoding="utf-8")
    diff = walk.take(f"{HUBLEDGER} migrate-diff --transform apps.shop", by=readme)
    assert "ALTER TABLE shop_event ADD COLUMN coupon" in diff
    assert "apps.shop, shop/2: events 6, with rows 5, filtered 0, letters 1" in walk.take(trial)
    walk.reader.stop()
    walk.shown += walk.reader.shown
    walk.begin("make serve", "make serve starts it again, with the transform as it is then")


def settle(walk: Walk, causes: dict[str, str]) -> None:
    retry = f"{HUBLEDGER} letters retry --cause"
    walk.take(f"{retry} {causes[WRONG]} --reason 'a comma is a point'", f"{retry} ")
    walk.take(f"{retry} {causes[WRONG]} --reason 'a comma is a point' --yes", "give --yes")
    resolved = walk.take(f"{retry} {causes[WITHOUT_KEY]} --reason 'it has no order' --yes", "give --yes")
    assert "1 resolved, 0 failed again" in resolved
    discard = f"{HUBLEDGER} letters discard --cause {causes[MALFORMED]} --reason 'cut off' --yes"
    assert "done: moved 1 of 1 letter" in walk.take(discard, f"{HUBLEDGER} letters discard --cause ")
    dry = walk.take(f"{HUBLEDGER} replay start --reason coupon", f"{HUBLEDGER} replay start")
    assert "coupon: - → SPRING" in dry
    walk.take(f"{HUBLEDGER} replay start --reason coupon --for-real --yes", "the same command with --for-real")


def nothing_is_lost(walk: Walk, store: Path) -> None:
    status = walk.take(f"{HUBLEDGER} status")
    assert re.search(r"accounted +6 of 6 ", status)
    assert re.search(r"letters open +0 ", status)
    assert "Next:" not in status
    assert "exit code" not in walk.take(f"{HUBLEDGER} health", "bin/hubledger health", README)
    with closing(sqlite3.connect(store)) as connection:
        rows = connection.execute("SELECT order_id, customer, total, amount, coupon FROM shop_event ORDER BY 1, 5")
        assert rows.fetchall() == [
            *[("O-4", "Chen", "7.25", None, None)] * 2,
            ("O-6", "Chen", "12.50", None, None),
            ("O-7", "Chen", "7.25", None, "SPRING"),
            ("none", None, None, "12.5", None),
        ]
        assert connection.execute("SELECT COUNT(*) FROM shop_state").fetchall() == [(4,)]
        kept = connection.execute("SELECT status, CAST(body AS TEXT) FROM event_hub_dead_letter ORDER BY 1, 2")
        assert kept.fetchall() == [("discarded", MALFORMED), ("resolved", WRONG), ("resolved", WITHOUT_KEY)]
