"""The body of an event as JSON: it comes in Avro, and its schema has an id in the folder `schemas`.

Encoders of Azure's registry write an id into the content type. Kafka producers write a zero byte and a number in four
bytes before the value. Without these, the application property `schema_id` has the number. A file is named by its
number, 7.avsc, or by both, 7-ID.avsc.
"""

from io import BytesIO
from pathlib import Path

import msgspec
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import load_schema

from hubledger import Event, PoisonEvent, kafka_header

FRAMED = 5  # bytes before the value: a zero, and the id
_FILES = [(*file.stem.lower().partition("-")[::2], file) for file in Path(__file__).with_name("schemas").glob("*.avsc")]
READ = [
    (int(number), id_, parse_schema(load_schema(file)))
    for number, id_, file in sorted(_FILES, key=lambda each: int(each[0]))
]
SCHEMAS = {name: schema for number, id_, schema in READ for name in ((number, id_) if id_ else (number,))}
HAS_IDS = any(id_ for _, id_, _ in READ)  # without one, the content type of an event need not be read
NEWEST = READ[-1][2]  # a field that an older schema lacks gets its default
_encode = msgspec.json.Encoder(decimal_format="number").encode


def json_of(event: Event) -> bytes:
    """Return the JSON of a body. Raises PoisonEvent."""
    if not event.body:
        raise PoisonEvent("the body is empty")
    schema, octets = _parts(event)
    if not isinstance(schema, int | str) or schema not in SCHEMAS:
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
    """Return the id of the schema, and the value."""
    if HAS_IDS:
        sent = event.system_properties.get("content-type") or kafka_header(event, "content-type")
        text = str(sent, "ascii", "replace") if isinstance(sent, bytes) else str(sent)
        kind, _, id_ = text.lower().partition("+")
        if kind == "avro/binary" and id_:
            return id_, event.body
    if event.body[:1] == b"\0" and len(event.body) > FRAMED:
        return int.from_bytes(event.body[1:FRAMED], "big"), event.body[FRAMED:]
    return event.properties.get("schema_id"), event.body
