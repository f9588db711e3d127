"""The minutes of a stream, in SQL."""

from datetime import datetime

from core.ledger.minutes import KEPT, Minute
from core.store.columns import instant_text
from core.store.decoding import decoded
from core.store.script import Script, Step
from core.store.stream import OneStream


class Minutes:
    """The minutes of one stream."""

    _stream: OneStream

    def store_minute(self, minute: Minute) -> None:
        """Store a minute, unless there is one for the same minute of the clock; remove the minutes older than KEPT."""
        stream_id = self._stream.find()
        if stream_id is not None:
            self._stream.database.run(minute_script(stream_id, minute))

    def read_minutes(self, since: datetime) -> tuple[Minute, ...]:
        """Return the minutes since a time, in order."""
        return decoded(Minute, self._stream.ask("read_minutes", since_at=instant_text(since)))


def minute_script(stream_id: int, minute: Minute) -> Script:
    """Return the transaction that stores a minute, unless a watch has stored it, and removes those of a day ago."""
    started_at = minute.at.replace(second=0, microsecond=0)
    values = {
        "minute_at": instant_text(started_at),
        "stream_id": stream_id,
        "read_at": instant_text(minute.at),
        "lag": minute.lag,
        "accounted": minute.accounted,
    }
    steps = (
        Step("remove_minutes", {"before_at": instant_text(started_at - KEPT)}),
        Step("add_minute", values, races=("pk_stream_minute",)),
    )
    return Script(f"minute {started_at:%H:%M}", steps, may_repeat=True)
