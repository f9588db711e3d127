-- The quality of a run, as its job measured it: a JSON object. NULL: the run is older.

ALTER TABLE staged_result ADD COLUMN quality TEXT;

ALTER TABLE aggregation_run ADD COLUMN quality TEXT;

CREATE INDEX ix_aggregation_run_closed ON aggregation_run (closed_at);
