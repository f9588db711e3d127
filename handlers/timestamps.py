"""Make azure.functions read times fast: docs/adr/0003 says why and how it is held."""

import inspect
import re
from datetime import UTC, datetime
from typing import Any

from azure.functions import meta

_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]00:00)?", re.ASCII)
_PARAMETERS = ["cls", "datetime_str"]
_CONVERTER: Any = meta._BaseConverter  # private: touched here only, and only while it looks as it is known to look


def read_times_fast() -> bool:
    """Replace the worker's strptime cascade by fromisoformat; False, and nothing changed, when it is not as known.

    azure.functions 1.26 tries up to 24 formats for each event, 0.1 ms. A stamp that fromisoformat cannot read the same
    way still takes the original way. Holds for the process, whichever worker runs in it; calling it twice is harmless.
    """
    original = _CONVERTER.__dict__.get("_parse_datetime")
    if getattr(original, "fast", False):
        return True
    if not isinstance(original, classmethod) or list(inspect.signature(original.__func__).parameters) != _PARAMETERS:
        return False
    fast = _fast_parser(original)
    _CONVERTER._parse_datetime = fast
    return True


def _fast_parser(original: classmethod) -> Any:
    slow = original.__func__

    def parse(cls: Any, datetime_str: str | None) -> datetime | None:
        if datetime_str is None or not _plain(datetime_str):
            return slow(cls, datetime_str)
        try:
            moment = datetime.fromisoformat(datetime_str)
        except ValueError:
            return slow(cls, datetime_str)
        return moment if moment.tzinfo is None or moment.tzinfo is UTC else slow(cls, datetime_str)

    method: Any = classmethod(parse)
    method.fast, method.original = True, original
    return method


def _plain(text: str) -> bool:
    """Whether a stamp has the one form in which both readers agree: YYYY-MM-DDTHH:MM:SS and what follows."""
    return _FORM.fullmatch(text) is not None
