-- Staged windows get a clustered key: a heap keeps the pages of its deleted rows, and reads by staging need no look-up.
-- Hot tables are compressed by page (docs/adr/0032-appended-tables-are-compressed.md). Only a table of up to a million
-- rows is rebuilt here, in seconds; docs/upgrade.md says how an owner rebuilds a larger one while the app works. The tables
-- follow in the order in which a commit locks them, so that a commit and this migration cannot wait for each other.

DROP INDEX ix_home_activity_staging ON hubledger.home_activity_staging;

CREATE CLUSTERED INDEX cx_home_activity_staging
    ON hubledger.home_activity_staging (staging_id, home_id, window_start, kind) WITH (ONLINE = ON);

IF (SELECT SUM(p.rows) FROM sys.partitions AS p
     WHERE p.object_id = OBJECT_ID(N'hubledger.flight_change') AND p.index_id = 1) <= 1000000
    ALTER TABLE hubledger.flight_change REBUILD WITH (DATA_COMPRESSION = PAGE);

IF (SELECT SUM(p.rows) FROM sys.partitions AS p
     WHERE p.object_id = OBJECT_ID(N'hubledger.home_alert') AND p.index_id = 1) <= 1000000
    ALTER TABLE hubledger.home_alert REBUILD WITH (DATA_COMPRESSION = PAGE);

IF (SELECT SUM(p.rows) FROM sys.partitions AS p
     WHERE p.object_id = OBJECT_ID(N'hubledger.sensor_reading') AND p.index_id = 1) <= 1000000
    ALTER TABLE hubledger.sensor_reading REBUILD WITH (DATA_COMPRESSION = PAGE);

IF (SELECT SUM(p.rows) FROM sys.partitions AS p
     WHERE p.object_id = OBJECT_ID(N'hubledger.batch_ledger') AND p.index_id = 1) <= 1000000
    ALTER TABLE hubledger.batch_ledger REBUILD WITH (DATA_COMPRESSION = PAGE);
