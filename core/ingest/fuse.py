"""The fuse: too many failures of one class in a batch look like an outage or a faulty deployment, not like bad events.

Such a batch is held and tried again instead of becoming letters. The store counts the attempts, so that a restart does
not reset the count. When the patience is used up, the letters are accepted, so bad events cannot block a partition for
ever; they are accepted without a pause until a batch is healthy again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import OutageSuspected
from core.model.commits import BatchCommit

OF_THE_EVENT = ("poison", "crash")  # failures of these classes come from the event itself and show no outage


@dataclass(frozen=True, slots=True)
class Fuse:
    """Suspects an outage when `floor` events or more of an invocation fail with one class, and at least this `share`.

    While a batch is held, one failure is enough for the floor. `patience` is the number of attempts; 0: no fuse. The
    share is that of the events that were tried; letters that are held after a failure count for the floor.
    """

    share: float = 0.5
    floor: int = 20
    patience: int = 10

    def check(self, commits: Sequence[BatchCommit]) -> bool:
        """Return True when the commits of one invocation, of which the last is still a plan, show no outage.

        Return False when they show one and the patience is used up. Raises OutageSuspected while patience is left.
        """
        planned = commits[-1]
        if not self.patience or (not planned.settled.letters and not planned.state.stops):
            return True
        letters = [letter for commit in commits for letter in commit.settled.letters]
        failures = Counter(
            letter.error_class
            for letter in letters
            if letter.error_class not in OF_THE_EVENT and letter.status != "held"
        )
        error_class, failed = failures.most_common(1)[0] if failures else ("", 0)
        events = sum(commit.events - commit.settled.held for commit in commits)
        stop = planned.state.stop_for("outage")
        alike = sum(letter.error_class == error_class for letter in letters)
        if not events:
            return stop is None  # all were held, so nothing shows whether the outage has ended
        if not failed or alike < (1 if stop else self.floor) or failed < self.share * events:
            return True
        attempt = stop.attempts + 1 if stop else 1
        if attempt > self.patience:
            return False
        tried = (letter for letter in letters if letter.status != "held")
        sample = next(letter.error for letter in tried if letter.error_class == error_class)
        raise OutageSuspected(planned.partition, (failed, events), (attempt, self.patience), f"{error_class}: {sample}")


NO_FUSE = Fuse(patience=0)
