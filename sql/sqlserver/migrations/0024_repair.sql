-- Repair and backfill: runs of other kinds than an increment, and the order of a person that waits for its run.

-- A repair replaces the windows of its days at the job's cut; a backfill begins an aggregate at a later cut.
ALTER TABLE hubledger.aggregation_run ADD kind varchar(12) COLLATE Latin1_General_100_BIN2 NOT NULL
    CONSTRAINT df_aggregation_run_kind DEFAULT 'increment'
    CONSTRAINT ck_aggregation_run_kind CHECK (kind IN ('increment', 'repair', 'backfill'));

-- The first and the last day of its windows, in UTC. NULL: without an end.
ALTER TABLE hubledger.aggregation_run ADD since_day date;

ALTER TABLE hubledger.aggregation_run ADD until_day date;

-- The place from which its job reads rows.
ALTER TABLE hubledger.aggregation_run ADD rows_from varchar(8) COLLATE Latin1_General_100_BIN2 NOT NULL
    CONSTRAINT df_aggregation_run_rows_from DEFAULT 'sql';

-- The order of a repair or a backfill, until its run is planned.
ALTER TABLE hubledger.aggregation_cut ADD ordered_kind varchar(12) COLLATE Latin1_General_100_BIN2;

ALTER TABLE hubledger.aggregation_cut ADD ordered_since date;

ALTER TABLE hubledger.aggregation_cut ADD ordered_until date;

ALTER TABLE hubledger.aggregation_cut ADD ordered_at datetime2(7);

ALTER TABLE hubledger.aggregation_cut ADD ordered_by nvarchar(100);

ALTER TABLE hubledger.aggregation_cut ADD ordered_why nvarchar(400);
