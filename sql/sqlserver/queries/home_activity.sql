-- name: read_activity
-- Read a home's windows that begin in a span of time.
-- params: home_id nvarchar(4000), since_at datetime2(7), until_at datetime2(7)
SELECT a.home_id, CONVERT(varchar(33), a.window_start, 126) AS window_start, a.kind, a.readings, a.active,
       a.ppm_hundredths, a.least_ppm_hundredths, a.most_ppm_hundredths,
       CONVERT(varchar(33), a.first_observed_at, 126) AS first_observed_at,
       CONVERT(varchar(33), a.last_observed_at, 126) AS last_observed_at
  FROM hubledger.home_activity AS a
 WHERE a.home_id = @home_id AND a.window_start >= @since_at AND a.window_start < @until_at
 ORDER BY a.window_start, a.kind;

-- name: read_last_window
-- Read the start of a home's last window that begins before an instant; NULL when there is none.
-- params: home_id nvarchar(4000), until_at datetime2(7)
SELECT CONVERT(varchar(33), MAX(a.window_start), 126) AS window_start
  FROM hubledger.home_activity AS a
 WHERE a.home_id = @home_id AND a.window_start < @until_at;

-- name: remove_whole_windows
-- Delete the windows that a result replaces.
-- params: staging_id varchar(8000)
DELETE FROM a
  FROM hubledger.home_activity AS a
 WHERE EXISTS (
       SELECT 1 FROM hubledger.home_activity_staging AS g
        WHERE g.staging_id = @staging_id AND g.is_whole = 1
              AND g.home_id = a.home_id AND g.window_start = a.window_start AND g.kind = a.kind);

-- name: add_to_windows
-- Add a result to the windows that exist: every value is an integer or an instant, so the order of runs does not
-- matter.
-- params: staging_id varchar(8000), run_number bigint
UPDATE a
   SET readings = a.readings + d.readings, active = a.active + d.active,
       ppm_hundredths = CASE WHEN a.ppm_hundredths IS NULL THEN d.ppm_hundredths
                             ELSE a.ppm_hundredths + COALESCE(d.ppm_hundredths, 0) END,
       least_ppm_hundredths = CASE WHEN a.least_ppm_hundredths <= d.least_ppm_hundredths
                                        OR d.least_ppm_hundredths IS NULL
                                   THEN a.least_ppm_hundredths ELSE d.least_ppm_hundredths END,
       most_ppm_hundredths = CASE WHEN a.most_ppm_hundredths >= d.most_ppm_hundredths
                                       OR d.most_ppm_hundredths IS NULL
                                  THEN a.most_ppm_hundredths ELSE d.most_ppm_hundredths END,
       first_observed_at = CASE WHEN a.first_observed_at <= d.first_observed_at
                                THEN a.first_observed_at ELSE d.first_observed_at END,
       last_observed_at = CASE WHEN a.last_observed_at >= d.last_observed_at
                               THEN a.last_observed_at ELSE d.last_observed_at END,
       run_number = @run_number
  FROM hubledger.home_activity AS a
 INNER JOIN (SELECT DISTINCT g.home_id, g.window_start, g.kind, g.readings, g.active, g.ppm_hundredths,
                          g.least_ppm_hundredths, g.most_ppm_hundredths, g.first_observed_at, g.last_observed_at
                    FROM hubledger.home_activity_staging AS g
                   WHERE g.staging_id = @staging_id) AS d
    ON d.home_id = a.home_id AND d.window_start = a.window_start AND d.kind = a.kind;

-- name: open_windows
-- Insert the windows of a result that do not exist yet; runs after add_to_windows, which must not see them.
-- params: staging_id varchar(8000), run_number bigint
INSERT INTO hubledger.home_activity
       (home_id, window_start, kind, readings, active, ppm_hundredths, least_ppm_hundredths, most_ppm_hundredths,
        first_observed_at, last_observed_at, run_number)
SELECT d.home_id, d.window_start, d.kind, d.readings, d.active, d.ppm_hundredths, d.least_ppm_hundredths,
       d.most_ppm_hundredths, d.first_observed_at, d.last_observed_at, @run_number
  FROM (SELECT DISTINCT g.home_id, g.window_start, g.kind, g.readings, g.active, g.ppm_hundredths,
                          g.least_ppm_hundredths, g.most_ppm_hundredths, g.first_observed_at, g.last_observed_at
                    FROM hubledger.home_activity_staging AS g
                   WHERE g.staging_id = @staging_id) AS d
 WHERE d.readings > 0
       AND NOT EXISTS (
           SELECT 1 FROM hubledger.home_activity AS a
            WHERE a.home_id = d.home_id AND a.window_start = d.window_start AND a.kind = d.kind);

-- name: remove_staged_windows
-- Delete some windows of a staged result.
-- params: staging_id varchar(8000), most int
DELETE TOP (@most) FROM hubledger.home_activity_staging
 WHERE staging_id = @staging_id;
