-- name: find_homes
-- Find registered homes between two ids, in order.
-- params: prefix, prefix_end, after_id, most
SELECT h.home_id
  FROM home AS h
 WHERE h.home_id >= :prefix AND h.home_id < :prefix_end AND h.home_id > :after_id
 ORDER BY h.home_id
 LIMIT :most;

-- name: find_home
-- Find a home as its latest registration describes it.
-- params: home_id
SELECT h.home_id, h.time_zone, h.armed
  FROM home AS h
 WHERE h.home_id = :home_id;
