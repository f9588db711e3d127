-- Staged windows are sought in the order of their key. The embedded store compresses no table.

DROP INDEX ix_home_activity_staging;

CREATE INDEX cx_home_activity_staging
    ON home_activity_staging (staging_id, home_id, window_start, kind);
