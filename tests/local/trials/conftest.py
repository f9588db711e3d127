from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.written_modules import written_modules

HEAD = """import json, os, time
from datetime import date, datetime, UTC
from core.errors import PoisonEvent
from examples.home_security.transform import Home, HomeAlert, SensorReading
VERSION = 'planted/1'
SEEN = []
AT = datetime(2026, 1, 1, tzinfo=UTC)
def reading(text, ppm=None): return (SensorReading('home-1', text, 'kind', None, ppm, AT),)
def references(event): return [__import__('core.model.rows').model.rows.ReferenceKey(Home, ('home-1',))]
def transform(event, references):
    text = event.body.decode('latin-1')
"""

Plant = Callable[[str], str]


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    with written_modules(tmp_path) as modules:
        yield lambda statement: modules.write(f"{HEAD}    {statement}\n")
