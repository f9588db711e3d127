"""The refusals that a peer gets: an AMQP error condition and a sentence."""


class AmqpError(Exception):
    """A refusal that the peer receives as `condition` (an AMQP symbol) and `description`."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


def not_found(entity: str) -> AmqpError:
    """Return the refusal of an entity that does not exist, in the service's words.

    The service names a hub by its address, and a consumer group as namespace:eventhub:hub~number|group.
    """
    return AmqpError("amqp:not-found", f"The messaging entity '{entity}' could not be found.")


class MalformedMessage(AmqpError):
    """A message that is not a sequence of AMQP sections. Its link ends."""

    def __init__(self, description: str) -> None:
        super().__init__("amqp:decode-error", description)


class SessionError(AmqpError):
    """A fault of a peer that ends its session (AMQP 1.0 part 2.8.17)."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"amqp:session:{condition}", description)


class NotEmulated(AmqpError):
    """A feature that Azure Event Hubs has and this emulator does not."""

    def __init__(self, feature: str) -> None:
        super().__init__("amqp:not-implemented", f"{feature} is not emulated")
