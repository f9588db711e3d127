-- name: read_time
-- Read the time by the clock of the machine, which all processes share as they share the file.
-- params:
SELECT store_time() AS now_at;
