-- name: find_homes
-- Registered homes between two ids, in order.
-- params: prefix, prefix_end, after_id, most
SELECT TOP (@most) h.home_id
  FROM hubledger.home AS h
 WHERE h.home_id >= @prefix AND h.home_id < @prefix_end AND h.home_id > @after_id
 ORDER BY h.home_id;

-- name: find_home
-- A home as its latest registration says.
-- params: home_id
SELECT h.home_id, h.time_zone, h.armed
  FROM hubledger.home AS h
 WHERE h.home_id = @home_id;
