"""How the parameters of what operators ask are declared in T-SQL; `core/store/server_commit.py` has the others."""

_INSTANT = ("datetime2(7)", "CONVERT(datetime2(7), ?, 126)")
_NUMBER, _COUNT = ("bigint", "?"), ("int", "?")
_TEXT, _NAME = ("nvarchar(max)", "?"), ("varchar(8000)", "?")

OPERATOR_TYPES: dict[str, tuple[str, str]] = {
    "abandoned_at": _INSTANT,
    "absent": _NUMBER,
    "answer": _TEXT,
    "at_least": _COUNT,
    "before_at": _INSTANT,
    "before_number": _NUMBER,
    "before_partition": _NAME,
    "claimed_at": _INSTANT,
    "commit_number": _NUMBER,
    "commits": _NUMBER,
    "dead_lettered": _NUMBER,
    "error_class": _NAME,
    "expires_at": _INSTANT,
    "filtered": _NUMBER,
    "fingerprint": _NAME,
    "held": _NUMBER,
    "holes": _NUMBER,
    "most": _COUNT,
    "partition_key": _TEXT,
    "positions": _TEXT,
    "request_hash": _NAME,
    "request_key": _NAME,
    "rows_appended": _COUNT,
    "since_at": _INSTANT,
    "status": _NAME,
    "statuses": _TEXT,
    "until_at": _INSTANT,
    "written": _NUMBER,
}
