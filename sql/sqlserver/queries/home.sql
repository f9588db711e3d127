-- name: find_homes
-- Find registered homes between two ids, in order.
-- params: prefix nvarchar(4000), prefix_end nvarchar(4000), after_id nvarchar(4000), most int
SELECT TOP (@most) h.home_id
  FROM hubledger.home AS h
 WHERE h.home_id >= @prefix AND h.home_id < @prefix_end AND h.home_id > @after_id
 ORDER BY h.home_id;

-- name: find_home
-- Find a home as its latest registration describes it.
-- params: home_id nvarchar(4000)
SELECT h.home_id, h.time_zone, h.armed
  FROM hubledger.home AS h
 WHERE h.home_id = @home_id;
