-- A job recomputes a window that lost its least or greatest value from its rows, which it seeks by partition and time.
-- Each partition appends to its own end of these indexes: docs/adr/0033-retraction-is-arithmetic.md has the costs.

CREATE INDEX ix_flight_punctuality_source
    ON flight_change (stream_id, partition_id, departure_date, carrier);

CREATE INDEX ix_home_activity_source
    ON sensor_reading (stream_id, partition_id, observed_at, home_id, kind);
