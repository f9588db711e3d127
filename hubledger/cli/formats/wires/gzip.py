"""The body of an event as JSON: it comes compressed by gzip, or as it is.

The content encoding of an event says which, or the first two bytes of the body.
"""

import zlib

from hubledger import Event, PoisonEvent

MOST, GZIP = 4_000_000, 31  # bytes of a body, because 1 MB can hold 1 GB of zeros; the form that zlib reads


def json_of(event: Event) -> bytes:
    """Return the JSON of a body. Raises PoisonEvent."""
    if not event.body:
        raise PoisonEvent("the body is empty")
    if event.body[:2] != b"\x1f\x8b" and str(event.system_properties.get("content-encoding")).lower() != "gzip":
        return event.body
    gzip = zlib.decompressobj(GZIP)
    try:
        whole = gzip.decompress(event.body, MOST)
    except zlib.error as error:
        raise PoisonEvent(f"the body is no gzip file: {error}") from error
    if not gzip.eof or gzip.unused_data:
        raise PoisonEvent(f"the body is not one gzip file of at most {MOST} bytes")
    return whole
