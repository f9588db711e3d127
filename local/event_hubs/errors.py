"""The refusals that a peer gets: an AMQP error condition and a sentence."""

from __future__ import annotations


class AmqpError(Exception):
    """A refusal that the peer receives as `condition` (an AMQP symbol) and `description`."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


class NotEmulated(AmqpError):
    """A feature that Azure Event Hubs has and this emulator does not."""

    def __init__(self, feature: str) -> None:
        super().__init__("amqp:not-implemented", f"{feature} is not emulated")
