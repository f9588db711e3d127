-- name: read_alerts
-- Read a home's alerts in a span of time, the newest first.
-- params: home_id nvarchar(4000), since_at datetime2(6), until_at datetime2(6), most int
SELECT a.sensor_id, a.kind, a.ppm, CONVERT(varchar(33), a.observed_at, 126) AS observed_at
  FROM home_alert AS a
 WHERE a.home_id = :home_id AND a.observed_at >= :since_at AND a.observed_at < :until_at
 ORDER BY a.observed_at DESC, a.stream_id DESC, a.partition_id DESC, a.sequence_number DESC, a.ordinal DESC
 LIMIT :most;
