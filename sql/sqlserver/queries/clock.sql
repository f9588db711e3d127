-- name: read_time
-- Read the time by the server's clock: the one clock of all processes.
-- params:
SELECT CONVERT(varchar(33), SYSUTCDATETIME(), 126) AS now_at;
