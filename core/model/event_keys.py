"""The key of an event, by which events are held, found, replayed and erased: its partition key, unless the room's
`key_of(event)` or the setting `EVENT_KEY` names a different one."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from uuid import UUID

from msgspec import structs

from core.errors import SettingsRefused
from core.model.events import Event
from core.model.property_values import Unread
from core.model.transforms import KeyOf, Transform

FORMS = "system:NAME, property:NAME or kafka"


def fault_of_choice(choice: str) -> str | None:
    """Return why a value of EVENT_KEY names no key, or None when it does."""
    kind, colon, name = choice.partition(":")
    known = choice in ("", "kafka") or (kind in ("system", "property") and bool(colon and name) and len(choice) <= 400)
    return None if known else f"EVENT_KEY must be {FORMS}, not {choice!r}"


def with_key(transform: Transform, choice: str) -> Transform:
    """Return the transform with the key that EVENT_KEY chooses. Raises SettingsRefused where its room has one too."""
    if not choice:
        return transform
    if transform.key_of is not None:
        raise SettingsRefused(["EVENT_KEY is set, and the room has key_of(): remove one of them"])
    kind, _, name = choice.partition(":")
    if kind == "kafka":
        return replace(transform, key_of=_kafka, key_name=choice)
    return replace(transform, key_of=partial(_system if kind == "system" else _property, name), key_name=choice)


def under_key(event: Event, key_of: KeyOf | None) -> Event:
    """Return the event with the key that a function gives it. Without a readable key the event stays unchanged: its
    partition key is used, and `settle` counts it."""
    if key_of is None:
        return event
    try:
        key = key_of(event)
    except (Exception, SystemExit, GeneratorExit):  # noqa: BLE001 - any error of a room's function
        return event
    return structs.replace(event, own_key=key) if isinstance(key, str) and key else event


def keying(convert: Callable[..., Event], key_of: KeyOf | None) -> Callable[..., Event]:
    """Return a converter of events that also gives each event its key."""
    return convert if key_of is None else lambda found: under_key(convert(found), key_of)


def text_as_key(value: object) -> str | None:
    """Return a text or a number as a key. Bytes and uuids, which only the worker has, take the form of the trigger."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return str(value) if isinstance(value, str | int | UUID) and not isinstance(value, bool) else None


def _system(name: str, event: Event) -> str | None:
    return text_as_key(event.system_properties.get(name))


def _property(name: str, event: Event) -> str | None:
    return None if isinstance(event.properties, Unread) else text_as_key(event.properties.get(name))


def _kafka(event: Event) -> str | None:
    """Return the key of a Kafka producer as a text, or in base64 when it is not UTF-8."""
    key = kafka_key(event)
    try:
        return key if key is None else key.decode()
    except UnicodeDecodeError:
        return b64encode(key or b"").decode()


def kafka_key(event: Event) -> bytes | None:
    """Return the key that a Kafka producer gave an event, or None."""
    return _octets(event.sent_annotations.get("x-opt-kafka-key"))


def kafka_header(event: Event, name: str) -> bytes | None:
    """Return the header of a Kafka producer that has this name, or None. Raises PoisonEvent for unread properties.

    The worker has it as bytes and the trigger in base64, which does not differ from a text. So a text is read as
    base64, or as UTF-8 where it is none, in both.
    """
    return _octets(event.properties.get(name))


def _octets(sent: object) -> bytes | None:
    if not isinstance(sent, str):
        return sent if isinstance(sent, bytes) else None
    try:
        return b64decode(sent, validate=True)
    except ValueError:
        return sent.encode("utf-8", "replace")
