"""The pages of the app and its rooms: files, and the guides that show the documentation in the app."""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from hashlib import sha256
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from core.api.operation import Answer

if TYPE_CHECKING:
    from markdown_it.token import Token


_PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>{title} · Hubledger</title>
  <link rel="icon" href="icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="ops.css">
  <script type="module" src="theme.js"></script>
</head>
<body>
  <header>
    <a class="brand" href="../ops"><img src="icon.svg" alt="" width="26" height="26"><span>Hubledger</span></a>
    <a class="whole" href="../ops">← Overview</a>
    <details class="guides"><summary>All guides</summary><nav aria-label="Guides">{nav}</nav></details>
  </header>
  <main id="main">{contents}<article class="card guide-text">
{text}</article></main>
</body>
</html>
"""
_SECTION = re.compile(r'<h2 id="(.*?)">(.*?)</h2>(?:\n<p><em>([^\n]*)</em></p>)?(.*?)(?=<h2 |\Z)', re.DOTALL)


def guide(path: Path, names: Collection[str]) -> str:
    """Return a page of Markdown as HTML. `names` has the names of all guides, without their suffix.

    A link to another guide leads to it, one to an address of the web leads there, and any other is its text alone.
    A link that has the name of a guide's file as its text gets the title of the guide, and of its section. A first line
    of a section in italics is its plain title, before its heading. Its words after a colon group the list of sections.
    """
    from markdown_it import MarkdownIt  # takes 30 ms, and no other request needs it

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(path.read_text(encoding="utf-8"))
    for heading, line in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", slug(line.content))
    titles = {name: _titles(path.with_name(f"{name}.md")) for name in names}
    for token in tokens:
        token.children = list(_linked(token.children or (), titles))
    nav = "".join(
        f'<a href="{name}.html"{" aria-current=page" if name == path.stem else ""}>{escape(titles[name][""])}</a>'
        for name in names
    )
    text = parser.renderer.render(tokens, parser.options, {})
    text = re.sub(r"(?<=[ >])--[a-z][a-z-]*", r'<span class="whole">\g<0></span>', text)  # an option stays in one line
    listed, last = "", ""
    for anchor, name, title, _ in _SECTION.findall(text):
        words, _, when = title.partition(": ")
        listed += f'<li class="when">{when.capitalize()}</li>' if when not in ("", last) else ""
        listed += f'<li><a href="#{anchor}">{_label(words or name, words and name)}</a></li>'
        last = when
    contents = f'<nav class="card sections" aria-label="Sections"><ul>{listed}</ul></nav>\n  ' if listed else ""
    return _PAGE.format(title=escape(titles[path.stem][""]), nav=nav, contents=contents, text=_SECTION.sub(_fold, text))


def _fold(found: re.Match[str]) -> str:
    """Return a section that is folded on a phone, below its title."""
    anchor, name, title, text = found.groups()
    head = _label(title, name) if title else name
    return f'<details class="folded section"><summary>{head}</summary><h2 id="{anchor}">{head}</h2>{text}</details>'


def _label(title: str, name: str) -> str:
    title = re.sub("</?code>", "", title)
    return f"{title} <small>{name}</small>" if name else title


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def _titles(path: Path) -> Mapping[str, str]:
    """Return the title of a page at "", and each of its other headings at its anchor."""
    title, *others = re.findall(r"^#{1,4} (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"": title, **{slug(one): one.replace("`", "") for one in others}}


def _linked(tokens: Iterable["Token"], titles: Mapping[str, Mapping[str, str]]) -> Iterable["Token"]:
    """Give the parts of a line with links and pictures that work. A picture that is not served is its words."""
    opened: list[tuple[str | None, str]] = []  # where the link leads, and the words in place of the name of a file
    for token in tokens:
        if token.type == "link_open":
            href: str | None = str(token.attrs.get("href", ""))
            file, hash, anchor = str(href).partition("#")
            name, words = file.removesuffix(".md"), ""
            if file and not str(href).startswith(("https://", "http://")):
                href = f"{name}.html{hash}{anchor}" if name != file and name in titles else None
                words = (
                    ": ".join(titles[name].get(one, one) for one in ("", anchor)[: 1 + bool(anchor)]) if href else ""
                )
            opened.append((href, words))
            if href is not None:
                token.attrs = {"href": href, **({"rel": "noopener"} if href.startswith("http") else {})}
                yield token
        elif token.type == "link_close":
            if opened.pop()[0] is not None:
                yield token
        elif token.type == "image":
            folder, _, file = str(token.attrs.get("src", "")).rpartition("/")
            if folder == "images" and file.endswith(".png"):
                token.attrs = {**token.attrs, "src": file, "loading": "lazy"}
                yield token
            else:
                yield from token.children or ()
        else:
            if token.type == "text" and opened and opened[-1][1] and token.content.endswith(".md"):
                token.content = opened[-1][1]
            yield token


MEDIA = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


@cache
def page(path: Path) -> Answer:
    """Return a page, or a file of it. The files of a page, also those of the room, have addresses below `ops/`."""
    return _static_answer(path.read_bytes(), MEDIA[path.suffix])


@cache
def guide_page(path: Path, names: tuple[str, ...]) -> Answer:
    """Return a guide. `names` has the names of all guides."""
    return _static_answer(guide(path, names).encode(), MEDIA[".html"])


def _static_answer(body: bytes, media: str) -> Answer:
    headers = {
        **revalidated(body),
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    return Answer(body, headers=headers, media=media)


def revalidated(body: bytes) -> dict[str, str]:
    """Return the headers with which a browser asks each time if it has the newest octets."""
    return {"ETag": f'"{sha256(body).hexdigest()[:20]}"', "Cache-Control": "no-cache"}
