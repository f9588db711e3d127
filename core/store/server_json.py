"""JSON that every T-SQL server reads alike: OPENJSON of some leaves the escapes in a text as they are, and cuts it.

So no text that is sent holds one: quotes, backslashes and control characters are folded into noncharacters, which
Unicode keeps for such inner use and no text may hold; the statement unfolds them again, by TRANSLATE. U+0000 is
refused, for the texts of some servers cannot hold it.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson

from core.store.records import day_text, server_instant_text

LONGEST = 4_000  # UTF-16 units of a text that OPENJSON gives on every server
PLACES = 10  # of a decimal, as OPENJSON is asked for it
PLAIN = '"\\' + "".join(map(chr, range(0x01, 0x20)))
FOLDED = "".join(map(chr, range(0xFDD0, 0xFDF0))) + "\ufffe"
_FOLD = str.maketrans(PLAIN, FOLDED)
_REFUSED = re.compile("[\x00\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")
_NONCHARACTER = re.compile(rb"\xef\xb7[\x90-\xaf]|\xef\xbf[\xbe\xbf]")


def rows_json(rows: Sequence[Sequence[Any]]) -> tuple[str, bool]:
    """An array of arrays, and whether its texts are folded: most hold nothing that needs it.

    Raises ValueError or orjson.JSONEncodeError for what cannot be sent.
    """
    written = orjson.dumps(rows, default=_written, option=orjson.OPT_PASSTHROUGH_DATETIME)
    if _NONCHARACTER.search(written):
        raise ValueError("a text holds a noncharacter of Unicode")
    escaped = b"\\" in written
    if escaped or max(map(len, written.split(b'"'))) > LONGEST:
        _refuse_long_texts(rows)
    if not escaped:
        return written.decode(), False
    folded = [[_folded(value) if isinstance(value, str) else value for value in row] for row in rows]
    return orjson.dumps(folded, default=_written, option=orjson.OPT_PASSTHROUGH_DATETIME).decode(), True


def storable_json(rows: Iterable[Sequence[Any]]) -> str:
    """The same, always folded and never refused: a text loses what cannot be sent, and its end where it is too long."""
    storable = [[_storable(value) if isinstance(value, str) else value for value in row] for row in rows]
    return orjson.dumps(storable).decode()


def can_stand(key: Sequence[Any]) -> bool:
    """Whether a row of this key can have been written."""
    try:
        orjson.dumps(key, default=_written, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except (orjson.JSONEncodeError, ValueError):
        return False
    texts = [value for value in key if isinstance(value, str)]
    return not any(_REFUSED.search(text) or _units(text) > LONGEST for text in texts)


def _written(value: object) -> str:
    """As T-SQL reads it; TypeError for what it does not."""
    if isinstance(value, Decimal):
        return _decimal_text(value)
    if isinstance(value, datetime):
        return server_instant_text(value)
    if isinstance(value, date):
        return day_text(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _decimal_text(value: Decimal) -> str:
    """Exact, and refused where the server would round."""
    text = f"{value:f}"
    if not value.is_finite() or len(text.partition(".")[2].rstrip("0")) > PLACES:
        raise ValueError(f"{text} is not a number of {PLACES} decimal places at most")
    return text


def _refuse_long_texts(rows: Sequence[Sequence[Any]]) -> None:
    for row in rows:
        for value in row:
            if isinstance(value, str) and _units(value) > LONGEST:
                raise ValueError(f"a text of {_units(value)} characters is longer than {LONGEST}")


def _folded(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a text holds U+0000")
    return text.translate(_FOLD)


def _storable(text: str) -> str:
    kept = _REFUSED.sub("\ufffd", text)
    if _units(kept) > LONGEST:
        kept = kept.encode("utf-16-le")[: 2 * LONGEST - 2].decode("utf-16-le", "ignore") + "…"
    return kept.translate(_FOLD)


def _units(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)
