"""In place of a hub reader where there is none: whatever has to be asked of the hub is a fault."""

from collections.abc import Generator
from datetime import datetime

from core.errors import HubUnreachable
from core.events import Event, Partition, SequenceNumber
from core.hub import Extent, Place


class NoHubReader:
    """See HubReader."""

    def partitions(self) -> tuple[Partition, ...]:
        """See HubReader."""
        raise self._fault("its partitions")

    def extent(self, partition: Partition) -> Extent:
        """See HubReader."""
        raise self._fault(f"the extent of {partition}")

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        """See HubReader."""
        raise self._fault(f"{partition} at {place}")

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        """See HubReader."""
        raise self._fault(f"{partition} at {sequence_number}")

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        """See HubReader."""
        raise self._fault(f"{partition} from {first} to {last}")

    @staticmethod
    def _fault(what: str) -> HubUnreachable:
        return HubUnreachable(f"there is no hub reader to ask for {what}")
