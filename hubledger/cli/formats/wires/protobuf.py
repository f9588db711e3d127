"""The body of an event as JSON: it comes in Protobuf, as a message of the file `message.desc`.

A field that the message does not have is skipped, and one that is missing has its default.
"""

from pathlib import Path

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

from hubledger import Event, PoisonEvent

NAME = "Message"  # of the message in the file
_FILE = Path(__file__).with_name("message.desc").read_bytes()
_POOL = descriptor_pool.DescriptorPool()
for _each in descriptor_pb2.FileDescriptorSet.FromString(_FILE).file:
    _POOL.Add(_each)
_DESCRIPTOR = _POOL.FindMessageTypeByName(NAME)
Message = message_factory.GetMessageClass(_DESCRIPTOR)
_WHOLE = [each.name for each in _DESCRIPTOR.fields if each.cpp_type in (each.CPPTYPE_INT64, each.CPPTYPE_UINT64)]


def json_of(event: Event) -> bytes:
    """Return the JSON of a body. Raises PoisonEvent."""
    if not event.body:
        raise PoisonEvent("the body is empty")
    try:
        message = Message.FromString(event.body)
        fields = json_format.MessageToDict(
            message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
    except (DecodeError, json_format.Error, ValueError, TypeError, RecursionError) as error:
        raise PoisonEvent(f"the body is no {NAME}: {error}") from error
    # JSON of Protobuf writes integers of 64 bits as texts; here they are numbers.
    return msgspec.json.encode(fields | {name: _number(fields[name]) for name in _WHOLE if name in fields})


def _number(value: str | list[str]) -> int | list[int]:
    return [int(each) for each in value] if isinstance(value, list) else int(value)
