"""The body of an event as JSON: a CloudEvent, with its attributes in the application properties or around its data.

Beside the fields of its data, the JSON has the attributes: `ce_id`, `ce_source`, `ce_type`, `ce_time`. Data that is no
object is the field `data`. Attributes in Kafka's headers are texts.
"""

import re
from base64 import b64decode
from typing import Any

import msgspec

from hubledger import Event, PoisonEvent, fault_of_body, kafka_header

STRUCTURED = "application/cloudevents"  # the beginning of the content type of a body that has the attributes
NEEDED = ("specversion", "id", "source", "type")
_NAME = re.compile("(cloudEvents[:_]|ce_)([a-z0-9]+)")
_JSON = re.compile(r"(?:[\w.-]+/(?:[\w.-]+\+)?json\s*(?:;.*)?)?", re.IGNORECASE)
_fields, _text = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode, msgspec.json.Decoder(str).decode
_value = msgspec.json.Decoder(msgspec.Raw).decode
_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)


def json_of(event: Event) -> bytes:
    """Return the JSON of an event. Raises PoisonEvent."""
    kind, data = event.system_properties.get("content-type"), event.body
    kind = str(kind or (kafka_header(event, "content-type") or b"").decode("utf-8", "replace"))
    found = {} if kind.lower().startswith(STRUCTURED) else _attributes(event)
    if not found and not data:
        raise PoisonEvent("the body is empty")
    if not found:
        found, kind, data = _parts(data)
    if lacking := [name for name in NEEDED if name not in found]:
        raise PoisonEvent(f"the CloudEvent has no {', '.join(lacking)}")
    if not _JSON.fullmatch(str(kind or "")):
        raise PoisonEvent(f"the data is {kind}, and no JSON")
    about = {f"ce_{name}": value for name, value in found.items()}
    try:
        fields = {} if not data else _fields(data) if data.lstrip()[:1] == b"{" else {"data": _value(data)}
    except _ERRORS as error:
        raise PoisonEvent(f"the data is no JSON: {fault_of_body(data, error)}") from error
    return msgspec.json.encode(about | fields | about)


def _attributes(event: Event) -> dict[str, Any]:
    """Return the attributes in the properties of an event, by their names."""
    found: dict[str, Any] = {}
    for name, value in event.properties.items():
        if parts := _NAME.fullmatch(name):
            is_kafka = parts[1] == "ce_"
            found[parts[2]] = (kafka_header(event, name) or b"").decode("utf-8", "replace") if is_kafka else value
    return found


def _parts(body: bytes) -> tuple[dict[str, Any], Any, bytes]:
    """Return the attributes, the content type and the data of a body that has all of them."""
    try:
        found: dict[str, Any] = _fields(body)
    except _ERRORS as error:
        raise PoisonEvent(f"the body is no CloudEvent: {fault_of_body(body, error)}") from error
    data, encoded = bytes(found.pop("data", b"")), found.pop("data_base64", None)
    try:
        data = data if encoded is None else b64decode(_text(encoded), validate=True)
        return found, _text(found["datacontenttype"]) if "datacontenttype" in found else None, data
    except _ERRORS as error:
        raise PoisonEvent(f"the data is no JSON: {error}") from error
