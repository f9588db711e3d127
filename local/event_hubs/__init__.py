"""An emulator of Azure Event Hubs that unmodified SDKs reach over AMQP 1.0, with the standard library only."""

from local.event_hubs.errors import AmqpError, NotEmulated
from local.event_hubs.events import partition_index
from local.event_hubs.hubs import HubSettings
from local.event_hubs.server import Emulator
from local.event_hubs.tokens import SharedAccessKey

__all__ = ["AmqpError", "Emulator", "HubSettings", "NotEmulated", "SharedAccessKey", "partition_index"]
