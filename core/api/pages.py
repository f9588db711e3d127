"""Pages: files that change only with the app, served with a policy that lets them load nothing from elsewhere."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from core.api.guides import guide
from core.api.operation import Answer

MEDIA = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


@cache
def page(path: Path) -> Answer:
    """Return a page, or a file of it. The files of a page, also those of the room, have addresses below `ops/`."""
    return _answer(path.read_bytes(), MEDIA[path.suffix])


@cache
def guide_page(path: Path, names: tuple[str, ...]) -> Answer:
    """Return a guide; `names` are those of all guides."""
    return _answer(guide(path, names).encode(), MEDIA[".html"])


def _answer(body: bytes, media: str) -> Answer:
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
