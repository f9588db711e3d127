"""All that a store knows of one sequence number, from named statements and the tables of the declared rows."""

from dataclasses import asdict
from typing import Any, cast

from core.ledger.explain import MOST_CHANGES, LedgerRange, NotedGap, Whereabouts, WrittenRow
from core.model.events import PartitionId
from core.model.rows import row_table
from core.model.spans import SequenceNumber
from core.store.listing import LetterListing
from core.store.named import NamedStream
from core.store.records import instant_of
from core.store.row_statements import row_reader


class Explaining:
    """An ExplanationStore over one stream of an engine."""

    def __init__(self, stream: NamedStream, row_classes: tuple[type, ...]) -> None:
        self._stream = stream
        self._row_classes = row_classes
        self._letters = LetterListing(stream)

    def find_whereabouts(self, partition_id: PartitionId, number: SequenceNumber) -> Whereabouts | None:
        """See ExplanationStore."""
        checkpoint = self._stream.ask("read_checkpoint", partition_id=partition_id)
        if not checkpoint:
            return None
        position = {"partition_id": partition_id, "sequence_number": number}
        found = [_range(row) for row in self._stream.ask("find_range", **position)]
        first = self._stream.ask("read_first_number", partition_id=partition_id)[0][0]
        return Whereabouts(
            checkpoint=checkpoint[0][0],
            first=first,
            range=found[0] if found else None,
            changes=tuple(_range(row) for row in self._stream.ask("find_changes", **position, most=MOST_CHANGES)),
            gap=self._gap(position),
            letter=self._letters.read_letter(partition_id, number),
            rows=self._rows(partition_id, number),
            states_declared=any(row_table(row_class).key for row_class in self._row_classes),
        )

    def _gap(self, position: dict[str, Any]) -> NotedGap | None:
        """The one that reaches the number."""
        gaps = [
            NotedGap(row[0], row[1], row[2], instant_of(row[3]), row[4])
            for row in self._stream.ask("find_gap", **position)
        ]
        return next((gap for gap in gaps if gap.last >= position["sequence_number"]), None)

    def _rows(self, partition_id: PartitionId, number: SequenceNumber) -> tuple[WrittenRow, ...]:
        stream_id = self._stream.find()
        if stream_id is None:
            return ()
        written = []
        for row_class in self._row_classes:
            read = row_reader(row_class)
            for ordinal, commit_number, *columns in self._stream.engine.rows_at(
                row_class, stream_id, partition_id, number
            ):
                row = asdict(cast(Any, read(tuple(columns))))
                written.append(WrittenRow(row_table(row_class).name, ordinal, commit_number, row))
        return tuple(written)


def _range(row: tuple[Any, ...]) -> LedgerRange:
    values = list(row)
    values[-1] = instant_of(values[-1])
    return LedgerRange(*values)
