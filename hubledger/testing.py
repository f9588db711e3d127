"""The contract of a transform as tests: import these names in the tests of your own transform (docs/transforms.md).

The deployed package has neither this module nor hypothesis.
"""

from local.feed.event_file import events_in
from local.trials.any_body import bodies, check_any_body, messages
from local.trials.determinism import check_deterministic
from local.trials.outcomes import assert_missing, assert_poison, assert_rows, event_of
from local.trials.replay_identity import check_replay_identity

__all__ = (
    "assert_missing",
    "assert_poison",
    "assert_rows",
    "bodies",
    "check_any_body",
    "check_deterministic",
    "check_replay_identity",
    "event_of",
    "events_in",
    "messages",
)
