"""The fuse: too many failures of one class in a batch look like an outage or a faulty deployment, not like bad events.

Such a batch is held and tried again instead of becoming letters. The store counts the attempts, so that a restart does
not reset the count. When the patience is used up, the letters are accepted, so bad events cannot block a partition for
ever. They are accepted without a pause until a batch is healthy again.

Poison is the fault of an event, and shows no outage. But where nearly no event failed before, and now most are poison,
a deployment or a schema has changed. So a partition is held for poison only if its last commits had nearly no letters:
once, because the letters that are accepted then end that.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from core.errors import OutageSuspected
from core.model.commits import BatchCommit, DeadLetter, ErrorClass, Past
from core.model.policies import Fuse

SUSPECT: tuple[ErrorClass, ...] = ("unknown", "reference", "refused", "poison")  # not a crash: one event is to blame


def check_fuse(fuse: Fuse, commits: Sequence[BatchCommit], past: Callable[[], Past] = Past) -> bool:
    """Return True when the commits of one invocation, of which the last is still a plan, show no outage.

    Return False when they show one and the patience is used up. `past` is asked only when most events are poison.
    Raises OutageSuspected while patience is left.
    """
    planned = commits[-1]
    if not fuse.patience or (not planned.settled.letters and not planned.state.stops):
        return True
    letters = [letter for commit in commits for letter in commit.settled.letters]
    events = sum(commit.events - commit.settled.held for commit in commits)
    stop = planned.state.stop_for("outage")
    if not events:
        return stop is None  # all were held, so nothing shows whether the outage has ended
    suspects = _failed_alike(fuse, letters, events, 1 if stop else fuse.floor)
    alike = next((one for one in suspects if one[0].error_class != "poison" or past().was_good), None)
    if alike is None:
        return True
    attempt = stop.attempts + 1 if stop else 1
    if attempt > fuse.patience:
        return False
    ((error, _),) = Counter(one.failure for one in alike).most_common(1)
    sample = f"{alike[0].error_class}: {alike[0].error}"
    raise OutageSuspected(planned.partition, (error, len(alike), events), (attempt, fuse.patience), sample)


def _failed_alike(fuse: Fuse, letters: Sequence[DeadLetter], events: int, floor: int) -> Iterator[Sequence[DeadLetter]]:
    """Give the letters of each class of which many failed. A few of poison hold nothing on."""
    for error_class in SUSPECT:
        alike = [one for one in letters if one.error_class == error_class]
        failed = [one for one in alike if one.status != "held"]
        is_many = len(alike) >= (fuse.floor if error_class == "poison" else floor)
        if failed and is_many and len(failed) >= fuse.share * events:
            yield failed
