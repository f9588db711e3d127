"""Links from a batch to the producers of its events, by the W3C trace context in their properties."""

from collections.abc import Iterable

from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from core.model.events import Event

LINKS = 32  # of a span; Application Insights cuts a property after 8,192 characters, which is 90 links
NAMES = ("traceparent", "Diagnostic-Id")  # of the conventions, and of the Azure SDKs
LENGTH = 55  # octets of version 00; a longer text is no trace context that we know
_NOWHERE, _READER = Context(), TraceContextTextMapPropagator()


def producer_links(events: Iterable[Event]) -> tuple[tuple[Link, ...], int]:
    """Return a link to each producer's span, at most LINKS, and the number of spans that were left out.

    A text that is no trace context is ignored, whoever sent it. `tracestate` is not read: its sender chooses its size.
    """
    texts = dict.fromkeys(text for event in events if (text := _text_of(event.properties)) is not None)
    links: list[Link] = []
    for seen, text in enumerate(texts):
        if len(links) == LINKS:
            return tuple(links), len(texts) - seen
        if (context := _context_of(text)) is not None:
            links.append(Link(context))
    return tuple(links), 0


def _text_of(properties: object) -> str | None:
    if type(properties) is not dict:  # properties that cannot be read raise at any access
        return None
    for name in NAMES:
        value = properties.get(name)
        if type(value) is str and len(value) == LENGTH:
            return value
    return None


def _context_of(text: str) -> SpanContext | None:
    found = get_current_span(_READER.extract({"traceparent": text}, _NOWHERE)).get_span_context()
    return found if found.is_valid else None
