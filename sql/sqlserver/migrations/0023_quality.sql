-- The quality of a run, as its job measured it: a JSON object. NULL: the run is older.

CREATE INDEX ix_aggregation_run_closed ON hubledger.aggregation_run (closed_at) WITH (ONLINE = ON);

ALTER TABLE hubledger.staged_result ADD quality nvarchar(max);

ALTER TABLE hubledger.aggregation_run ADD quality nvarchar(max);
