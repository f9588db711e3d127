-- only: before the first stream
-- Every text has the collation of generated tables on SQL Server, which makes this index again. Here each column compares
-- by code point already.

DROP INDEX ix_home_activity_source;
CREATE INDEX ix_home_activity_source
    ON sensor_reading (stream_id, partition_id, observed_at, home_id, kind);
