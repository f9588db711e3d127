-- name: find_homes
-- Find registered homes between two ids, in order.
-- params: prefix nvarchar(4000), prefix_end nvarchar(4000), after_id nvarchar(4000), most int
SELECT h.home_id
  FROM home AS h
 WHERE h.home_id >= :prefix AND h.home_id < :prefix_end AND h.home_id > :after_id
 ORDER BY h.home_id
 LIMIT :most;

-- name: find_home
-- Find a home as its latest registration describes it.
-- params: home_id nvarchar(4000)
SELECT h.home_id, h.time_zone, h.armed
  FROM home AS h
 WHERE h.home_id = :home_id;

-- name: read_newest_readings
-- Read a home's readings among the newest rows of the partition that its registration came from, the last to arrive
-- first. No index leads to the readings of a home, so the number of rows that are looked at is limited.
-- params: home_id nvarchar(4000), most_rows int, most int
SELECT n.sensor_id, n.kind, n.state, n.ppm, n.observed_at
  FROM (
    SELECT r.home_id, r.sensor_id, r.kind, r.state, r.ppm, r.observed_at, r.sequence_number, r.ordinal
      FROM sensor_reading AS r
     WHERE r.stream_id = (SELECT h.stream_id FROM home AS h WHERE h.home_id = :home_id)
       AND r.partition_id = (SELECT h.partition_id FROM home AS h WHERE h.home_id = :home_id)
     ORDER BY r.sequence_number DESC, r.ordinal DESC
     LIMIT :most_rows
  ) AS n
 WHERE n.home_id = :home_id
 ORDER BY n.sequence_number DESC, n.ordinal DESC
 LIMIT :most;
-- sqlserver:
SELECT TOP (@most) n.sensor_id, n.kind, n.state, n.ppm, CONVERT(varchar(33), n.observed_at, 126) AS observed_at
  FROM hubledger.home AS h
 CROSS APPLY (
    SELECT TOP (@most_rows) r.home_id, r.sensor_id, r.kind, r.state, r.ppm, r.observed_at, r.sequence_number, r.ordinal
      FROM hubledger.sensor_reading AS r
     WHERE r.stream_id = h.stream_id AND r.partition_id = h.partition_id
     ORDER BY r.sequence_number DESC, r.ordinal DESC
  ) AS n
 WHERE h.home_id = @home_id AND n.home_id = h.home_id
 ORDER BY n.sequence_number DESC, n.ordinal DESC;
