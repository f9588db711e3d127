"""A gap that is being healed, in SQL: it is noted only while its numbers are not committed."""

from datetime import datetime

from core.model.commits import PartitionState
from core.model.spans import Span
from core.store.columns import instant_text, place_of, span_values
from core.store.script import Script, Step

NOTED = "noted"  # the count of rows that the script stores: 0 when the checkpoint has moved


def noting_script(state: PartitionState, gap: Span, found_at: datetime) -> Script:
    """Return the transaction that notes a gap. It locks the checkpoint first, as a commit does, and compares it."""
    place, expected = place_of(state), {"next_sequence_number": state.next_number}
    values = {**place, **expected, **span_values(gap)}
    steps = (
        Step("lock_partition", place),
        Step("note_gap_again", values, counts=NOTED),
        Step("note_gap", {**values, "found_at": instant_text(found_at)}, counts=NOTED, races=("pk_sequence_gap",)),
    )
    return Script(str(state.partition), steps, may_repeat=True)
