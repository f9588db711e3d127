-- name: read_alerts
-- Read a home's alerts in a span of time, the newest first.
-- params: home_id, since_at, until_at, most
SELECT a.sensor_id, a.kind, a.ppm, a.observed_at
  FROM home_alert AS a
 WHERE a.home_id = :home_id AND a.observed_at >= :since_at AND a.observed_at < :until_at
 ORDER BY a.observed_at DESC, a.stream_id DESC, a.partition_id DESC, a.sequence_number DESC, a.ordinal DESC
 LIMIT :most;
