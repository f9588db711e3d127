"""The idempotent producers of a partition: the epoch of each, and its last batches, so that none is stored twice.

A producer numbers its events, and a batch must begin after the last one. The same batch again is a duplicate.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from local.event_hubs.codec import DecodeError, Int, Short, Symbol, decode, encode
from local.event_hubs.errors import AmqpError, MalformedMessage
from local.event_hubs.events import Publication, key_of

CAPABILITY = "com.microsoft:idempotent-producer"
_ID, _EPOCH, _NUMBER = (f"com.microsoft:producer-{name}" for name in ("id", "epoch", "sequence-number"))
_LIMITS = {_ID: 2**63 - 1, _EPOCH: 2**15 - 1, _NUMBER: 2**31 - 1}
_REMEMBERED = 5  # batches of a producer, as in Kafka
_BEFORE_THE_FIRST = 0

Batch = tuple[int, int]  # the numbers of its first and last event


class Claim(NamedTuple):
    """The values that a peer gives for itself, with its link or with a message, or None where it gives none."""

    producer_id: int | None
    epoch: int | None
    number: int | None


@dataclass(frozen=True, slots=True)
class Producer:
    """The state of a producer: its epoch, and its last batches, at least one."""

    epoch: int
    batches: tuple[Batch, ...] = ((_BEFORE_THE_FIRST, _BEFORE_THE_FIRST),)

    @property
    def last(self) -> int:
        """The number of the last event, 0 before the first."""
        return self.batches[-1][1]


class Producers:
    """The producers of a partition by id. Changes are staged, as events are, until they are appended or dropped."""

    def __init__(self) -> None:
        self._known: dict[int, Producer] = {}
        self.staged: dict[int, Producer] = {}

    def load(self, known: Mapping[int, Producer]) -> None:
        self._known.update(known)

    def append_staged(self) -> None:
        self._known.update(self.staged)
        self.staged = {}

    def drop_staged(self) -> None:
        self.staged = {}

    def register(self, claim: Claim) -> Claim:
        """Return the complete claim of a producer whose link is attached: a new one where the peer names none.

        A higher epoch begins a new one, in which numbers begin anew or after the given one. So does none, but its given
        number must be the last one. Raises AmqpError for an unknown id, a lower epoch and such a number.
        """
        if claim.producer_id is None:
            return self._begin(secrets.randbits(48), claim.epoch or 0, claim.number)
        known = self._find(claim.producer_id)
        epoch = known.epoch + 1 if claim.epoch is None else claim.epoch
        _refuse_lower(epoch, known)
        if claim.epoch is None and claim.number is not None:
            _refuse_out_of_order(_number_after(claim.number, 1), known)
        if epoch > known.epoch:
            return self._begin(claim.producer_id, epoch, claim.number)
        return Claim(claim.producer_id, epoch, known.last if claim.number is None else claim.number)

    def is_new(self, publication: Publication, link: Claim) -> bool:
        """Return True for the next batch of the producer with this link, False for one that is stored already.

        Raises AmqpError for a lower epoch, and for numbers that do not follow.
        """
        given = claim_of(_values(publication))
        producer_id = link.producer_id if given.producer_id is None else given.producer_id
        if given.number is None or producer_id is None:
            raise AmqpError("com.microsoft:argument-error", "a batch of an idempotent producer came without its number")
        known = self._find(producer_id)
        epoch = link.epoch if given.epoch is None else given.epoch
        _refuse_lower(epoch or 0, known)
        batch = given.number, _number_after(given.number, len(publication.events) - 1)
        if batch in known.batches:
            return False
        _refuse_out_of_order(given.number, known)
        self.staged[producer_id] = Producer(known.epoch, (*known.batches, batch)[-_REMEMBERED:])
        return True

    def _begin(self, producer_id: int, epoch: int, last: int | None) -> Claim:
        begun = Producer(epoch) if last is None else Producer(epoch, ((last, last),))
        self.staged[producer_id] = begun
        return Claim(producer_id, epoch, begun.last)

    def _find(self, producer_id: int) -> Producer:
        found = self.staged.get(producer_id) or self._known.get(producer_id)
        if found is None:
            raise AmqpError("amqp:not-allowed", f"the producer {producer_id} is not known to this partition")
        return found


def claim_of(values: Mapping[Any, Any]) -> Claim:
    """Return the claim in the properties of a link or the annotations of a message. Raises AmqpError."""
    claim = Claim(values.get(_ID), values.get(_EPOCH), values.get(_NUMBER))
    for name, value in zip(_LIMITS, claim, strict=True):
        if value is not None and type(value) is not int:
            raise AmqpError("com.microsoft:argument-error", f"{name} is not a whole number")
        if value is not None and not 0 <= value <= _LIMITS[name]:
            raise AmqpError("com.microsoft:argument-out-of-range", f"{name} is not from 0 to {_LIMITS[name]}")
    return claim


def properties_of(claim: Claim) -> dict[Symbol, Any]:
    """Return the properties of the answer to a producer's attach. Clients read no different types."""
    producer_id, epoch, number = claim
    return {Symbol(_ID): producer_id, Symbol(_EPOCH): Short(epoch or 0), Symbol(_NUMBER): Int(number or 0)}


def _values(publication: Publication) -> dict[str, Any]:
    """Return the annotations of a batch and of its first event by name, decoded where they are a producer's."""
    found: dict[str, Any] = {}
    for given in (publication.events[0].annotations if publication.events else [], publication.annotations):
        named = dict(zip(map(key_of, given[::2]), given[1::2], strict=True))
        try:
            found |= {name: decode(named[key])[0] for name, key in _KEYS.items() if key in named}
        except DecodeError as error:
            raise MalformedMessage(str(error)) from error
    return found


_KEYS = {name: encode(Symbol(name)) for name in _LIMITS}


def _number_after(number: int, count: int) -> int:
    """Return the number that many events later. After the last one comes 0."""
    return (number + count) & _LIMITS[_NUMBER]


def _refuse_lower(epoch: int, known: Producer) -> None:
    if epoch < known.epoch:
        raise AmqpError(
            "com.microsoft:producer-epoch-stolen",
            f"the epoch {epoch} of this producer has ended: a producer with the same id has the epoch {known.epoch}",
        )


def _refuse_out_of_order(number: int, known: Producer) -> None:
    expected = _number_after(known.last, 1)
    if number != expected:
        raise AmqpError(
            "com.microsoft:out-of-order-sequence",
            f"the number {number} does not follow: {expected} is the next one of its producer",
        )
