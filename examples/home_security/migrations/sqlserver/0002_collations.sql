-- only: before the first stream
-- Every text has the collation of generated tables. A database that has a stream keeps its columns, which hold the same
-- texts: no key has one of them.

ALTER TABLE hubledger.home ALTER COLUMN time_zone nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL;

DROP INDEX ix_home_activity_source ON hubledger.sensor_reading;
ALTER TABLE hubledger.sensor_reading ALTER COLUMN kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL;
ALTER TABLE hubledger.sensor_reading ALTER COLUMN state varchar(10) COLLATE Latin1_General_100_BIN2 NULL;
EXEC(N'CREATE INDEX ix_home_activity_source
    ON hubledger.sensor_reading (stream_id, partition_id, observed_at, home_id, kind)
    WITH (ONLINE = ON, DATA_COMPRESSION = PAGE);');

ALTER TABLE hubledger.home_alert ALTER COLUMN kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL;
