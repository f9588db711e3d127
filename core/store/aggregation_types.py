"""How the parameters of the aggregation's queries are declared in T-SQL: as in server_commit, wider than columns."""

_INSTANT = ("datetime2(7)", "CONVERT(datetime2(7), ?, 126)")
_TEXT, _NAME, _LONG = ("nvarchar(4000)", "?"), ("varchar(8000)", "?"), ("nvarchar(max)", "?")
_NUMBER, _COUNT = ("bigint", "?"), ("int", "?")

AGGREGATION_TYPES: dict[str, tuple[str, str]] = {
    "after_id": _TEXT,
    "after_number": _NUMBER,
    "attempt": _COUNT,
    "before_number": _NUMBER,
    "closed_at": _INSTANT,
    "cut_from": _LONG,
    "cut_to": _LONG,
    "engine": _NAME,
    "engine_job_id": _TEXT,
    "expected_attempt": _COUNT,
    "expected_intent_at": _INSTANT,
    "expected_number": _NUMBER,
    "failure": _TEXT,
    "home_id": _TEXT,
    "intent_at": _INSTANT,
    "job": _NAME,
    "most": _COUNT,
    "planned_at": _INSTANT,
    "prefix": _TEXT,
    "prefix_end": _TEXT,
    "run_id": _NAME,
    "run_number": _NUMBER,
    "since_at": _INSTANT,
    "staging_id": _NAME,
    "submits": _COUNT,
    "submitted_at": _INSTANT,
    "until_at": _INSTANT,
}
