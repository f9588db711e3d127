-- The events that wait, by the newest minute that the watch of the function app stored; 0 when it is silent for five minutes.
SELECT COALESCE(SUM(m.lag), 0) AS lag
  FROM hubledger.stream_minute AS m
 WHERE m.minute_at = (
       SELECT MAX(n.minute_at)
         FROM hubledger.stream_minute AS n
        WHERE n.minute_at >= DATEADD(MINUTE, -5, SYSUTCDATETIME()));
