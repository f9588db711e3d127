-- name: read_time
-- Read the time by the clock that all processes share: the server's, or that of the machine which has the file.
-- params:
SELECT CONVERT(varchar(33), SYSUTCDATETIME(), 126) AS now_at;
