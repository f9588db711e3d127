import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from html import unescape
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from core.api.operation import Answer, Call, operation
from core.api.pages import guide, slug
from core.api.route import OPEN, Route
from core.model.events import PartitionId, SequenceNumber
from core.model.shapes import Answered, Nothing, Shape, shape_of, written
from handlers.api import OPERATIONS, OWN
from handlers.operations.description import GUIDES, openapi, ops_file
from handlers.operations.description import FilePath as OurPath
from handlers.web.openapi import describe
from tests.fakes.builders import EPOCH


class FilePath(Shape):
    """A path of a room, under a name that a path of the app has too."""

    invoice: str


@operation("An invoice", "invoices")
def show_invoice(call: Call[FilePath, Nothing, Nothing]) -> Answered:
    return Answered()


def test_a_path_of_a_room_may_have_the_name_of_a_path_of_the_app() -> None:
    own = {route: OPERATIONS[route] for route in OWN}
    route = Route("GET", "invoices/{invoice}", OPEN, "apps.shop.show_invoice")
    described = describe({**own, route: show_invoice})
    (shown,) = described["paths"]["/invoices/{invoice}"]["get"]["parameters"]
    (file,) = described["paths"]["/ops/{file}"]["get"]["parameters"]
    assert (shown["name"], file["name"]) == ("invoice", "file")
    assert OurPath.__name__ == FilePath.__name__
    added = described["components"]["schemas"].keys() - describe(own)["components"]["schemas"].keys()
    assert added == {"Answered"}


def patterns(within: Any) -> Iterator[str]:
    """Yield each pattern of a JSON schema."""
    if isinstance(within, dict):
        if isinstance(within.get("pattern"), str):
            yield within["pattern"]
        for each in within.values():
            yield from patterns(each)
    elif isinstance(within, list):
        for each in within:
            yield from patterns(each)


def test_a_pattern_ends_at_the_end_of_the_text_and_is_described_as_ecma_has_it() -> None:
    shapes = [shape for one in OPERATIONS.values() for shape in (one.path, one.query, one.body)]
    ours = {found for shape in shapes for found in patterns(msgspec.json.schema(shape))}
    assert len(ours) > 5
    assert [one for one in ours if one.endswith("$") or not one.endswith("\\Z")] == []  # $ is also before a newline
    described = set(patterns(describe(OPERATIONS)))
    assert {one.replace("\\Z", "$") for one in ours} <= described
    assert [one for one in described if "\\Z" in one] == []


def test_a_second_request_for_the_description_makes_no_new_one() -> None:
    unused: Any = None  # no operation of a room runs
    call = Call(Nothing(), Nothing(), Nothing(), "anybody", EPOCH, OPERATIONS, unused)
    assert openapi.run(call) is openapi.run(call)


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str], str]:
    def make(text: str) -> str:
        (path := tmp_path / "operator.md").write_text(f"{text}\n", encoding="utf-8")
        (tmp_path / "runbook.md").write_text("# Runbook\n\n## The `lag` of it\n", encoding="utf-8")
        return guide(path, ("operator", "runbook"))

    return make


WHENS = (": act now", ": act now", "", ": later", ": act now")


def test_headings_have_the_anchors_of_github_and_tables_are_tables(made: Callable[[str], str]) -> None:
    page = made("# The page\n\n## A partition's `stop`, and more\n\n| a | b |\n|---|---|\n| 1 | `--x` |\n")
    assert "<title>The page · Hubledger</title>" in page
    assert '<h2 id="a-partitions-stop-and-more">' in page
    assert '<td><code><span class="whole">--x</span></code></td>' in page
    assert slug("What `az` does: 3 things – now") == "what-az-does-3-things--now"
    assert '<li><a href="#a-partitions-stop-and-more">A partition\'s stop, and more</a></li>' in unescape(page)
    titled = made("# The page\n\n## lag\n\n*Rows are `late`: act now*\n\nMore.\n")
    assert '<li class="when">Act now</li><li><a href="#lag">Rows are late <small>lag</small></a></li>' in titled
    assert '<h2 id="lag">Rows are late: act now <small>lag</small></h2>\n<p>More.</p>' in titled
    many = made("# The page\n" + "".join(f"\n## s{at}\n\n*S{when}*\n\nM\n" for at, when in enumerate(WHENS)))
    assert re.findall('class="when">(.*?)<', many) == ["Act now", "Later", "Act now"], "none for two of one urgency"


def test_links_lead_to_guides_and_out_and_others_are_their_text(made: Callable[[str], str]) -> None:
    inside = made(
        "# The page\n\n[a](runbook.md#the-lag-of-it) [b](runbook.md) [d](#the-page) [e](deploy.md#x) [f](../core/a.py)"
    )
    assert (
        '<a href="runbook.html#the-lag-of-it">a</a> <a href="runbook.html">b</a> <a href="#the-page">d</a> e f'
        in inside
    )
    outside = made(
        "# The page\n\n[c](https://example.com/x.html) ![picture of it](images/a.svg) ![b](https://example.com/b.png)"
    )
    assert '<a href="https://example.com/x.html" rel="noopener">c</a> picture of it b' in outside
    assert "<img" not in outside.split("<article")[1]


def test_a_link_by_the_name_of_a_file_gets_the_title_of_the_guide_and_of_its_section(
    made: Callable[[str], str],
) -> None:
    page = made(
        "# The page\n\n[runbook.md](runbook.md), [runbook.md](runbook.md#the-lag-of-it), [deploy.md](deploy.md)"
    )
    assert (
        '<a href="runbook.html">Runbook</a>, <a href="runbook.html#the-lag-of-it">Runbook: The lag of it</a>, deploy.md'
        in page
    )
    assert '<a href="operator.html" aria-current=page>The page</a><a href="runbook.html">Runbook</a>' in page


def test_every_guide_has_its_pictures_and_links_by_title_that_open_a_section_of_a_guide() -> None:
    unused: Any = None

    def served(name: str) -> tuple[str, bytes]:
        answer = ops_file.run(Call(OurPath(name), Nothing(), Nothing(), "anybody", EPOCH, OPERATIONS, unused))
        assert isinstance(answer, Answer)
        assert isinstance(answer.body, bytes)
        return answer.media, answer.body

    pages = {name: served(name)[1].decode() for name in GUIDES}
    anchors = {name: {"", *re.findall(r'<h\d id="([^"]*)"', text)} for name, text in pages.items()}
    links = [
        (name, *one)
        for name, text in pages.items()
        for one in re.findall(r'<a href="([^"#]*)#?([^"]*)"[^>]*>(.*?)</a>', text)
    ]
    inner = [one for one in links if not one[1].startswith(("https://", "../"))]
    assert len(inner) > 300
    assert [one for one in inner if one[2] not in anchors.get(one[1] or one[0], ())] == []
    assert [one for one in links if re.fullmatch(r"[\w-]+\.md", one[3])] == []
    pictures = {file for text in pages.values() for file in re.findall(r'<img src="([^"]+\.png)" alt="[^"]', text)}
    assert len(pictures) == 8
    for file in pictures:
        media, body = served(file)
        assert (media, body[1:4]) == ("image/png", b"PNG")


def test_markup_and_scripts_are_text(made: Callable[[str], str]) -> None:
    page = made("# <script>a</script>\n\n<img src=x onerror=b> [x](javascript:c) [y](data:text/html,d) {e}\n")
    article = page.split("<article")[1]
    assert [tag for tag in ("<script", "<img", "href") if tag in article] == []
    assert "<title>&lt;script&gt;a&lt;/script&gt; · Hubledger</title>" in page
    assert "{e}" in article


@dataclass(frozen=True)
class Letter:
    partition_id: PartitionId
    number: SequenceNumber
    waits_for: SequenceNumber | None
    status: Literal["open", "done"]
    failed_at: datetime | None
    secret: str
    error: str


_Letter: Any = shape_of(Letter, hidden=("secret",), error=str | None)


class LetterAnswer(_Letter):
    """A letter."""


LETTER = Letter(PartitionId("1"), SequenceNumber(2**60), None, "open", EPOCH, "s", "e")


def test_an_answer_has_the_fields_of_its_value_in_its_order_with_numbers_and_words_as_strings() -> None:
    fields = {one.name: one.type for one in msgspec.structs.fields(LetterAnswer)}
    assert list(fields) == ["partition_id", "number", "waits_for", "status", "failed_at", "error"]
    assert list(fields.values()) == [str, str, str | None, str, datetime | None, str | None]
    answer = written(LetterAnswer, LETTER, error=None)
    assert msgspec.to_builtins(answer) == {
        "partition_id": "1", "number": str(2**60), "waits_for": None, "status": "open",
        "failed_at": "2026-01-01T00:00:00Z", "error": None,
    }  # fmt: skip
    assert written(LetterAnswer, LETTER).error == "e"
