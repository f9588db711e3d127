-- Repair and backfill: runs of other kinds than an increment, and the order of a person that waits for its run.

-- A repair replaces the windows of its days at the job's cut; a backfill begins an aggregate at a later cut.
ALTER TABLE aggregation_run ADD COLUMN kind TEXT NOT NULL
    CONSTRAINT df_aggregation_run_kind DEFAULT 'increment'
    CONSTRAINT ck_aggregation_run_kind CHECK (kind IN ('increment', 'repair', 'backfill'));

-- The first and the last day of its windows, in UTC. NULL: without an end.
ALTER TABLE aggregation_run ADD COLUMN since_day TEXT;

ALTER TABLE aggregation_run ADD COLUMN until_day TEXT;

-- The place from which its job reads rows.
ALTER TABLE aggregation_run ADD COLUMN rows_from TEXT NOT NULL CONSTRAINT df_aggregation_run_rows_from DEFAULT 'sql';

-- The order of a repair or a backfill, until its run is planned.
ALTER TABLE aggregation_cut ADD COLUMN ordered_kind TEXT;

ALTER TABLE aggregation_cut ADD COLUMN ordered_since TEXT;

ALTER TABLE aggregation_cut ADD COLUMN ordered_until TEXT;

ALTER TABLE aggregation_cut ADD COLUMN ordered_at TEXT;

ALTER TABLE aggregation_cut ADD COLUMN ordered_by TEXT;

ALTER TABLE aggregation_cut ADD COLUMN ordered_why TEXT;
