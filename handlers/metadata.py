"""Read the trigger metadata of a batch although a property of one event is JSON that the worker cannot read."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import azure.functions as func

from core.model.values import Unread

PROPERTIES = "PropertiesArray"
_UNREADABLE = (ValueError, RecursionError)
_RAW = "_EventHubEvent__trigger_metadata"  # private: the texts before the worker reads them
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)


def read_metadata(event: func.EventHubEvent) -> Mapping[str, Any]:
    """Return the metadata that an event shares with its batch.

    The worker's JSON reader refuses NaN and deep nesting, so that one such property would fail every try of the batch.
    Then the properties of each event are read alone, and those that cannot be read are Unread.
    """
    try:
        return event.metadata or {}
    except _UNREADABLE:
        raw: Mapping[str, Any] | None = getattr(event, _RAW, None)
        if raw is None or PROPERTIES not in raw:
            raise
        read = {name: datum.python_value for name, datum in raw.items() if name != PROPERTIES}
        return {**read, PROPERTIES: [_properties(text) for text in elements_of(raw[PROPERTIES].value)]}


def elements_of(array: str) -> Iterator[str]:
    """Yield the texts of the elements of a JSON array, at any depth of nesting."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(array):
        mark = token[0]
        if mark in "[{":
            depth += 1
            start = token.end() if depth == 1 else start
        elif mark in "]}":
            depth -= 1
        if (mark == "," and depth == 1) or (mark == "]" and depth == 0):
            if element := array[start : token.start()].strip():
                yield element
            start = token.end()


def _properties(text: str) -> Any:
    try:
        return json.loads(text)
    except _UNREADABLE:
        return Unread("json", text)
