"""core/api/pages.py: a page of docs/ as HTML, whose links work and whose text is text."""

from html import unescape
from pathlib import Path

from core.api.pages import guide, slug

NAMES = ("operator", "runbook")


def made(folder: Path, text: str) -> str:
    path = folder / "operator.md"
    path.write_text(text, encoding="utf-8")
    return guide(path, NAMES)


def test_headings_have_the_anchors_of_github_and_tables_are_tables(tmp_path: Path) -> None:
    page = made(tmp_path, "# The page\n\n## A partition's `stop`, and more\n\n| a | b |\n|---|---|\n| 1 | `x` |\n")
    assert "<title>The page · Hubledger</title>" in page
    assert '<h2 id="a-partitions-stop-and-more">' in page
    assert "<td><code>x</code></td>" in page
    assert '<li><a href="#a-partitions-stop-and-more">A partition\'s stop, and more</a></li>' in unescape(page)


def test_links_lead_to_guides_and_out_and_others_are_their_text(tmp_path: Path) -> None:
    inside = made(tmp_path, "[a](runbook.md#lag) [b](runbook.md) [d](#the-page) [e](deploy.md#x) [f](../core/a.py)")
    assert '<a href="runbook.html#lag">a</a> <a href="runbook.html">b</a> <a href="#the-page">d</a> e f' in inside
    outside = made(tmp_path, "[c](https://example.com/x.html) ![picture of it](images/a.png)")
    assert '<a href="https://example.com/x.html" rel="noopener">c</a> picture of it' in outside
    assert "<img" not in outside.split("<article")[1]


def test_markup_and_scripts_are_text(tmp_path: Path) -> None:
    page = made(tmp_path, "# <script>a</script>\n\n<img src=x onerror=b> [x](javascript:c) [y](data:text/html,d) {e}\n")
    article = page.split("<article")[1]
    assert "<script" not in article
    assert "<img" not in article
    assert "href" not in article
    assert "<title>&lt;script&gt;a&lt;/script&gt; · Hubledger</title>" in page
    assert "{e}" in article


def test_an_anchor_keeps_letters_digits_and_hyphens() -> None:
    assert slug("What `az` does: 3 things – now") == "what-az-does-3-things--now"
