-- A job recomputes a window that lost its least or greatest value from its rows, which it seeks by partition and time.
-- Each partition appends to its own end of these indexes: docs/adr/0033-retraction-is-arithmetic.md has the costs. Only a
-- table of up to a million rows gets its index here; docs/upgrade.md says how an owner builds that of a larger one.

IF (SELECT SUM(p.rows) FROM sys.partitions AS p
     WHERE p.object_id = OBJECT_ID(N'hubledger.flight_change') AND p.index_id = 1) <= 1000000
    CREATE INDEX ix_flight_punctuality_source
        ON hubledger.flight_change (stream_id, partition_id, departure_date, carrier)
        WITH (ONLINE = ON, DATA_COMPRESSION = PAGE);

IF (SELECT SUM(p.rows) FROM sys.partitions AS p
     WHERE p.object_id = OBJECT_ID(N'hubledger.sensor_reading') AND p.index_id = 1) <= 1000000
    CREATE INDEX ix_home_activity_source
        ON hubledger.sensor_reading (stream_id, partition_id, observed_at, home_id, kind)
        WITH (ONLINE = ON, DATA_COMPRESSION = PAGE);
