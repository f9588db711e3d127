"""What a peer is told when something is refused: an AMQP error condition and a sentence."""

from __future__ import annotations


class AmqpError(Exception):
    """A refusal that the peer hears as `condition` (an AMQP symbol) and `description`."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


class NotEmulated(AmqpError):
    """Azure Event Hubs can do it and this emulator cannot."""

    def __init__(self, what: str) -> None:
        super().__init__("amqp:not-implemented", f"{what} is not emulated")
