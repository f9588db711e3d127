"""Find mentions of a subject in a text. Letters, staged events, diffs and texts of operators have one definition.

A mention is the subject as a word: no letter, digit, underscore or hyphen stands next to it, and no dot or at sign
joins it to a further word. So `ann-7` is not in `ann-70`, and `anna` is not in `anna.smith`. A text has its own
words and those that remain when its escapes are read: `%20` and `+` of addresses, `\\u00eb` and `\\\\` of JSON, and
`&amp;` of HTML, up to three times one in the other. Both are composed (NFC) before they are compared, so `e` with
a diaeresis is one letter or two. A body is UTF-8, or UTF-16 with a byte order mark. In a binary body a subject counts
wherever its octets stand. What is compressed, encrypted or in Base64 mentions nobody.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from urllib.parse import unquote_plus

ERASED_WORD = "erased"
MOST_WORDS = 4  # of a subject of which only the hash is known
_BEFORE, _AFTER = r"(?<![\w-])(?<!\w[.@])", r"(?![\w-])(?![.@]\w)"
_RUN = re.compile(r"[A-JL-Za-z0-9]{2,}")  # a K may be the sign of Kelvin in the text
_TOKEN = re.compile(rf"{_BEFORE}\+?(\w(?:[\w.@-]*\w)?){_AFTER}")  # a number of a phone begins with a plus
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
DEPTH = 3  # escapes within escapes
MOST_NEEDLES = 50

_BINARY = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f\ufffd]")  # U+FFFD stands for octets that are not UTF-8
_PRINTED = re.compile(rb"[^\0-\x1f\x7f]+")

Mentions = Callable[[Iterable[str | bytes]], bool]


def body_text(body: bytes) -> str:
    """Return the text of a body, without a byte order mark."""
    return body.decode("utf-16", "replace") if body[:2] in _UTF_16 else body.decode("utf-8-sig", "replace")


def views_of(text: str) -> Iterator[str]:
    """Yield a text, and the texts that remain when its escapes are read."""
    seen, new = {text}, [text]
    yield text
    for _ in range(DEPTH):
        read = {view for one in new for view in _unescaped_of(one)} - seen
        yield from sorted(read)
        seen, new = seen | read, sorted(read)


def mention_of(subjects: Sequence[str]) -> Mentions:
    """Return a function that tells whether any of some texts and bodies mentions a subject."""
    pattern, octets = _pattern(subjects), [one.encode("utf-8", "replace") for one in subjects]

    def mentions(texts: Iterable[str | bytes]) -> bool:
        for given in texts:
            text = body_text(given) if isinstance(given, bytes) else given
            if any(pattern.search(composed(view)) for view in views_of(text)):
                return True
            if isinstance(given, bytes) and _BINARY.search(text) and any(one in given for one in octets):
                return True
        return False

    return mentions


def without_subjects(text: str, subjects: Sequence[str]) -> str:
    """Return a text in which `erased` stands for each subject, and for a text that mentions one in escapes."""
    if not text or not subjects:
        return text
    pattern = _pattern(subjects)
    left = pattern.sub(ERASED_WORD, composed(text)) if pattern.search(composed(text)) else text
    return ERASED_WORD if any(pattern.search(composed(view)) for view in views_of(left)) else left


def needles_of(subjects: Sequence[str]) -> tuple[str, ...]:
    """Return runs of ASCII letters and digits: each text that mentions a subject has at least one of them.

    Empty with too many subjects, or with a subject without such a run: then any text may mention one.
    """
    found = {max(_RUN.findall(composed(subject)), key=len, default="") for subject in subjects}
    return tuple(sorted(found)) if all(found) and len(found) <= MOST_NEEDLES else ()


def candidates_of(*texts: str) -> set[str]:
    """Return the parts of texts that may be a subject of which only the hash is known: up to four words in a row."""
    found: set[str] = set()
    for text in texts:
        for view in views_of(text):
            words = list(_TOKEN.finditer(composed(view)))
            for at, first in enumerate(words):
                starts, run = {first.start(), first.start(1)}, words[at : at + MOST_WORDS]
                found.update(first.string[start : last.end()] for last in run for start in starts)
            found.add(composed(view))
    return found


def sized_texts(body: bytes) -> Iterator[str]:
    """Yield the texts in a binary body. Before each text stands an octet with its length, as in Avro, CBOR, MessagePack
    and Protobuf."""
    if not _BINARY.search(body_text(body)):
        return
    for run in _PRINTED.finditer(body):
        for at in range(max(run.start(), 1), run.end()):
            octet = body[at - 1]
            for length in {octet, octet >> 1, octet - 0x60, octet - 0xA0}:
                if 0 < length <= run.end() - at:
                    yield composed(body[at : at + length].decode("utf-8", "replace"))


def _pattern(subjects: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted({composed(one) for one in subjects}, key=len, reverse=True)
    return re.compile(f"{_BEFORE}(?:{'|'.join(map(re.escape, longest_first))}){_AFTER}")


def composed(text: str) -> str:
    """Return a text in the composed form of Unicode, in which mentions are compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _unescaped_of(text: str) -> Iterator[str]:
    if "%" in text or "+" in text:
        yield unquote_plus(text)
    if "\\" in text:
        yield (
            _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2]), text)
            .encode("utf-16", "surrogatepass")
            .decode("utf-16", "replace")
        )
    if "&" in text:
        yield unescape(text)
