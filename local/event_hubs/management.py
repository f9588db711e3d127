"""Requests to the nodes $cbs and $management, and their answers (AMQP management, working draft 9)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local.event_hubs.codec import (
    NULL,
    Array,
    DecodeError,
    Described,
    Int,
    Raw,
    Symbol,
    Timestamp,
    ULong,
    decode,
    encode,
)
from local.event_hubs.errors import AmqpError, MalformedMessage, NotEmulated
from local.event_hubs.hubs import Hub
from local.event_hubs.sections import APPLICATION_PROPERTIES, PROPERTIES, VALUE, items, sections

_HUB_TYPE, _PARTITION_TYPE = "com.microsoft:eventhub", "com.microsoft:partition"
_STATUS = {"amqp:not-found": 404, "amqp:unauthorized-access": 401, "amqp:not-implemented": 501}
_BAD_REQUEST = 400
_PUT_TOKEN = "put-token"


@dataclass(frozen=True, slots=True)
class Request:
    """A request. Its message id stays encoded, because the answer must repeat the very type."""

    message_id: Raw
    reply_to: str | None
    properties: dict[Any, Any]
    value: Any

    @property
    def token(self) -> str | None:
        """The token in the request. Some clients send it here, and not to $cbs."""
        token = self.properties.get("security_token")
        return token.decode(errors="replace") if isinstance(token, bytes) else token if isinstance(token, str) else None


def read_request(message: bytes) -> Request:
    """Read the request in a message. Raises MalformedMessage."""
    try:
        bodies = {section.code: section.body for section in sections(message)}
        fields = items(message, bodies[PROPERTIES]) if PROPERTIES in bodies else []
        fields += [Raw(NULL)] * (5 - len(fields))
        value = decode(message, bodies[VALUE])[0] if VALUE in bodies else None
        given = decode(message, bodies[APPLICATION_PROPERTIES])[0] if APPLICATION_PROPERTIES in bodies else None
        reply_to = decode(fields[4])[0]
    except DecodeError as error:
        raise MalformedMessage(str(error)) from error
    return Request(fields[0], reply_to if isinstance(reply_to, str) else None, given or {}, value)


def response(request: Request, status: int, description: str, value: Any = None, **further: Symbol) -> bytes:
    """Encode the answer to a request, with further properties."""
    parts = {
        PROPERTIES: [None] * 5 + [request.message_id],
        APPLICATION_PROPERTIES: {"status-code": Int(status), "status-description": description, **further},
        VALUE: value,
    }
    return b"".join(encode(Described(ULong(code), part)) for code, part in parts.items())


def refusal(request: Request, error: AmqpError) -> bytes:
    """Encode the refusal of a request.

    The refusal of a token has no error-condition, because azure-eventhub would hide the description.
    """
    is_of_token = request.properties.get("operation") == _PUT_TOKEN
    further = {} if is_of_token else {"error-condition": Symbol(error.condition)}
    return response(request, _STATUS.get(error.condition, _BAD_REQUEST), error.description, **further)


def read_entity(request: Request, find: Callable[[str], Hub]) -> dict[str, Any]:
    """Return the properties of the hub or partition that a request to $management names.

    Raises AmqpError for an unknown entity, NotEmulated for an operation that is not READ.
    """
    wanted = request.properties
    operation, entity = wanted.get("operation"), wanted.get("type")
    if operation != "READ" or entity not in (_HUB_TYPE, _PARTITION_TYPE):
        raise NotEmulated(f"the management operation {operation} of {entity}")
    hub = find(str(wanted.get("name")))
    if entity == _HUB_TYPE:
        return {
            "name": hub.name,
            "type": _HUB_TYPE,
            "created_at": Timestamp(hub.created_at),
            "partition_count": Int(len(hub.partitions)),
            "partition_ids": Array(hub.partitions),
        }
    partition = hub.partition(str(wanted.get("partition")))
    empty = partition.first_sequence == partition.next_sequence
    return {
        "name": hub.name,
        "type": _PARTITION_TYPE,
        "partition": partition.partition_id,
        "begin_sequence_number": -1 if empty else partition.first_sequence,
        "last_enqueued_sequence_number": partition.last_sequence,
        "last_enqueued_offset": str(partition.last_offset),
        "last_enqueued_time_utc": Timestamp(partition.last_enqueued_at),
        "is_partition_empty": empty,
    }
