"""core/transforms/contract/purity.py: a line that is not pure is found, and a pure one is not."""

import ast

from core.transforms.contract.purity import findings
from tests.offenders import holds_for

HEAD = """import datetime as dt, os, os.path, random, socket, time, urllib.parse, urllib.request, uuid
from collections import Counter
from datetime import UTC, date, datetime
from itertools import count
from os import environ
from pathlib import Path
from time import monotonic as now
import numpy as np
import requests
from datetime import datetime as moment
from typing import TYPE_CHECKING
from . import platform
from .secrets import token
if TYPE_CHECKING: import subprocess
KINDS = {"a": 1}
SEEN = set()
COUNTER = count()
TOTAL = 0
class Kept:
    names: dict = {}
    def add(one): return one
def open_late(one): return one
def hash(one): return one
"""
LINE = HEAD.count("\n") + 2
IMPURE = {
    "datetime.now(UTC)": "datetime.datetime.now reads the clock",
    "dt.datetime.utcnow()": "datetime.datetime.utcnow reads the clock",
    "moment.now()": "datetime.datetime.now reads the clock",
    "date.today()": "datetime.date.today reads the clock",
    "time.time()": "time.time reads the clock",
    "time.sleep(1)": "time.sleep reads the clock",
    "now()": "time.monotonic reads the clock",
    "sorted([1], key=lambda one: random.random())": "random.random reads chance",
    "np.random.rand()": "numpy.random.rand reads chance",
    "uuid.uuid4()": "uuid.uuid4 reads chance",
    "uuid.uuid1()": "uuid.uuid1 reads chance",
    "os.environ['ZONE']": "os.environ reads the environment",
    "environ.get('ZONE')": "os.environ.get reads the environment",
    "os.path.exists('x')": "os.path.exists reads the environment",
    "open('x')": "open reads I/O",
    "Path('x').read_text()": "read_text() is I/O",
    "socket.create_connection(('x', 1))": "socket.create_connection reads I/O",
    "requests.get('x')": "requests.get reads I/O",
    "urllib.request.urlopen('x')": "urllib.request.urlopen reads I/O",
    "id(event)": "id reads the process",
    "datetime.fromtimestamp(5)": "fromtimestamp() without a zone",
    "event.enqueued_at.astimezone()": "astimezone() without a zone",
    "global TOTAL; TOTAL = 1": "global TOTAL: an event would depend",
    "SEEN.add(event.body)": "SEEN.add(): an event would depend",
    "KINDS[event.body] = 1": "KINDS is written",
    "KINDS['a'] += 1": "KINDS is written",
    "del KINDS['a']": "KINDS is written",
    "KINDS.setdefault('b', {}).update(c=1)": "KINDS.setdefault(): an event would depend",
    "Kept.last = event": "Kept is written",
    "Kept.names['a'] = 1": "Kept is written",
    "Kept.names.update(a=1)": "Kept.update(): an event would depend",
    "def inner(seen=[]): seen.append(1)": "seen.append(): an event would depend",
    "def inner(one, *, seen={}): seen[one] = 1": "seen is written",
    "(lambda: time.time())()": "time.time reads the clock",
    "next(COUNTER)": "next(COUNTER): an event would depend",
    "[one for one in {1, 2}]": "a loop reads the order of a set",
    "tuple(set(event.body))": "tuple() reads the order of a set",
    "', '.join(set(event.body))": "join() reads the order of a set",
    "for one in {b for b in event.body}: pass": "a loop reads the order of a set",
}
PURE = [
    "datetime.fromisoformat('2026-01-01').astimezone(UTC)", "datetime.fromtimestamp(5, UTC)", "urllib.parse.quote('x')",
    "uuid.UUID(int=5)", "uuid.uuid5(uuid.NAMESPACE_DNS, 'x')", "seen = set(); seen.add(1)",
    "KINDS['a']; KINDS.get('b')",
    "own = {}; own['a'] = 1; own.update(b=2)", "SEEN = set(); SEEN.add(1)", "sorted(one for one in {1, 2})",
    "sum([one for one in {1, 2}])", "{one for one in {1, 2}}", "1 in {1, 2}", "time = 5; time + 1", "id = 5; id + 1",
    "next(iter([1]))", "random: object = None", "references.find(Kept, 'time')", "Counter(event.body).update([1])",
    "platform.name()", "token()", "Kept.add(1)", "hash('x')", "x: 'subprocess.Popen' = event",
    "def inner(seen=[]): return [*seen, 1]", "def inner(seen=[]): seen = list(seen); seen.append(1)",
    "def time(): return 5\n    time()", "try: pass\n    except KeyError as time: time.args",
    "match event:\n        case {'t': time, **random}: time + random.x",
    "event.time.time()", "open = event.open; open('x')", "(lambda random: random.x)(event)",
]  # fmt: skip


def found_in(statement: str) -> list[tuple[int, str]]:
    text = f"{HEAD}def transform(event, references):\n    {statement}\n"
    return findings(text, ast.parse(text))


@holds_for(IMPURE)
def test_a_statement_that_is_not_pure_is_found_with_its_line(statement: str) -> None:
    ((line, fault),) = found_in(statement)
    assert line == LINE
    assert fault.startswith(IMPURE[statement]), fault


@holds_for(PURE)
def test_a_pure_statement_is_not_found(statement: str) -> None:
    assert found_in(statement) == [], found_in(statement)


@holds_for(IMPURE)
def test_a_comment_with_a_reason_accepts_a_finding_of_its_line_only(statement: str) -> None:
    assert found_in(f"{statement}  # pure: a test says so") == []
    assert len(found_in(f"{statement}  # pure:")) == 1
    assert len(found_in(f"pass  # pure: this line\n    {statement}")) == 1


def test_a_statement_of_many_lines_is_accepted_on_any_of_them() -> None:
    assert found_in("SEEN.add(\n        event.body  # pure: a cache\n    )") == []


def test_a_form_feed_ends_no_line() -> None:
    assert found_in("'\x0c\u2028'; SEEN.add(1)  # pure: a test says so") == []


def test_values_of_the_module_are_made_by_the_module_itself_and_by_no_function() -> None:
    text = f"{HEAD}KINDS['b'] = 2\nSEEN.update('ab')\nSTARTED = datetime.now(UTC)\n"
    ((line, _),) = findings(text, ast.parse(text))
    assert line == text.count("\n")


def test_a_nested_function_and_a_class_are_read_and_their_own_hash_is_not() -> None:
    nested = "def inner():\n        nonlocal event\n        event = time.time()"
    assert [line for line, _ in found_in(nested)] == [LINE + 1, LINE + 2]
    of_class = "class One:\n        made_at = datetime.now()\n        def __hash__(self): return id('x')"
    assert [line for line, _ in found_in(of_class)] == [LINE + 1]
    assert [line for line, _ in found_in("def inner(at=time.time()): return at")] == [LINE]
