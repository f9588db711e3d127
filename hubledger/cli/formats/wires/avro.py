"""The body of an event as JSON: it comes in Avro, after a zero byte and the id of its schema in four bytes.

Without these, the application property `schema_id` has the id. The folder `schemas` has a file for each id.
"""

from io import BytesIO
from pathlib import Path

import msgspec
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import load_schema

from hubledger import Event, PoisonEvent

FRAMED = 5  # bytes before the value: a zero, and the id
_FILES = sorted(Path(__file__).with_name("schemas").glob("*.avsc"))
SCHEMAS = {int(file.stem): parse_schema(load_schema(file)) for file in _FILES}
NEWEST = SCHEMAS[max(SCHEMAS)]  # a field that an older schema lacks gets its default
_encode = msgspec.json.Encoder(decimal_format="number").encode


def json_of(event: Event) -> bytes:
    """Return the JSON of a body. Raises PoisonEvent."""
    if not event.body:
        raise PoisonEvent("the body is empty")
    schema, octets = _parts(event)
    if schema not in SCHEMAS:
        raise PoisonEvent(f"there is no schema {schema} in the folder schemas")
    stream = BytesIO(octets)
    try:
        value = _encode(schemaless_reader(stream, SCHEMAS[schema], NEWEST))
    except Exception as error:
        raise PoisonEvent(f"the body is no value of schema {schema}: {error!r}") from error
    if stream.read(1):
        raise PoisonEvent(f"the body goes on after a value of schema {schema}")
    return value


def _parts(event: Event) -> tuple[object, bytes]:
    if event.body[:1] == b"\0" and len(event.body) > FRAMED:
        return int.from_bytes(event.body[1:FRAMED], "big"), event.body[FRAMED:]
    return event.properties.get("schema_id"), event.body
