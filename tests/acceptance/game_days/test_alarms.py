from datetime import timedelta

from tests.acceptance.game_days.alarms import firing
from tests.acceptance.game_days.day import LIMITS
from tests.fakes.builders import EPOCH
from tests.infra.test_alerts import FACTS, OF_THE_WORKSPACE, QUERIES

OTHERS = {"event_hub": "namespace/hub", "ledger_balanced": True, "standing": "", "stale": "", "loss_hours": 24.0}
CALM = {**dict.fromkeys(FACTS, 0), **OTHERS, "action": "watch"}
RAISED = {
    "ledger-unbalanced": ("ledger_balanced", False),
    "lag": ("lag_seconds", 301.0),
    "partition-stopped": ("partitions_stopped", 1),
    "stop-recorded": ("stops_recorded", 1),
    "letters-open": ("letters_open", 1),
    "letter-old": ("oldest_letter_seconds", 64_801.0),
    "events-absent": ("absent_new", 1),
    "events-expiring": ("loss_hours", 5.9),
    "events-lost": ("events_lost", 1),
    "aggregation-lag": ("aggregation_lag_seconds", 3_601.0),
    "aggregation-failed": ("aggregation_failures", 1),
    "aggregation-quality": ("aggregation_faults", 1),
}


def line(seconds: float = 0, **changed: object) -> dict[str, object]:
    return {**CALM, **changed, "time": (EPOCH + timedelta(seconds=seconds)).isoformat()}


def test_each_fact_raises_its_own_alarm_a_silent_watch_one_on_silence_and_a_calm_one_none() -> None:
    assert firing([line(), line(60)], LIMITS) == set()
    assert firing([line(loss_hours=-1.0)], LIMITS) == set(), "nobody knows the retention"
    assert firing([], LIMITS) == firing([line(action="watch_failed")], LIMITS) == {"watch-silent"}
    found = {name: firing([line(**{fact: value})], LIMITS) for name, (fact, value) in RAISED.items() if name in QUERIES}
    assert found == {name: {name} for name in QUERIES.keys() - OF_THE_WORKSPACE - {"watch-silent"}}
    # a lag counts only when each watch of five minutes has it
    assert firing([line(), line(60, lag_seconds=400.0)], LIMITS) == set()
    assert firing([line(), line(301, lag_seconds=400.0)], LIMITS) == {"lag"}
