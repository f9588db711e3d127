-- The activity of homes by hour and day: python -m core.store.aggregate_ddl home_activity --added hour day
-- The new levels are filled from the stored windows, in the transaction that tells commits of them: one statement for
-- each level, some 10 to 20 s for 1,000,000 windows. Nothing but the commit of runs waits for it.

UPDATE aggregation_cut
   SET levels = job
 WHERE levels = '';

UPDATE aggregation_cut
   SET levels = 'home_activity home_activity_hour home_activity_day'
 WHERE job = 'home_activity';

CREATE TABLE home_activity_hour (
    home_id TEXT NOT NULL,
    window_start TEXT NOT NULL,
    kind TEXT NOT NULL,
    readings INTEGER NOT NULL,
    active INTEGER NOT NULL,
    ppm_hundredths INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths INTEGER,
    first_observed_at TEXT NOT NULL,
    last_observed_at TEXT NOT NULL,
    run_number INTEGER NOT NULL,  -- of the run that touched it last
    slice INTEGER,  -- of its key; NULL: no run has touched it since there are slices
    CONSTRAINT pk_home_activity_hour PRIMARY KEY (home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE home_activity_hour_staged (
    staging_id TEXT NOT NULL,
    slice INTEGER NOT NULL,
    home_id TEXT NOT NULL,
    window_start TEXT NOT NULL,
    kind TEXT NOT NULL,
    run_id TEXT NOT NULL,
    is_whole INTEGER NOT NULL,  -- replaces the window, and does not add to it
    readings INTEGER NOT NULL,
    active INTEGER NOT NULL,
    ppm_hundredths INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths INTEGER,
    first_observed_at TEXT,
    last_observed_at TEXT,
    CONSTRAINT pk_home_activity_hour_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

INSERT INTO home_activity_hour
       ([home_id], [window_start], [kind], [readings], [active], [ppm_hundredths], [least_ppm_hundredths], [most_ppm_hundredths], [first_observed_at], [last_observed_at],
       run_number, slice)
SELECT a.[home_id],
       strftime('%Y-%m-%dT%H:%M:%S.000000Z', substr(a.window_start, 1, 10), '+' || ((strftime('%s', a.window_start) - strftime('%s', substr(a.window_start, 1, 10))) / 3600 * 3600) || ' seconds') AS begins,
       a.[kind],
       SUM(a.[readings]),
       SUM(a.[active]),
       SUM(a.[ppm_hundredths]),
       MIN(a.[least_ppm_hundredths]),
       MAX(a.[most_ppm_hundredths]),
       MIN(a.[first_observed_at]),
       MAX(a.[last_observed_at]),
       MAX(a.run_number), MAX(a.slice)
  FROM home_activity AS a
 GROUP BY a.[home_id], begins, a.[kind];

CREATE TABLE home_activity_day (
    home_id TEXT NOT NULL,
    window_start TEXT NOT NULL,
    kind TEXT NOT NULL,
    readings INTEGER NOT NULL,
    active INTEGER NOT NULL,
    ppm_hundredths INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths INTEGER,
    first_observed_at TEXT NOT NULL,
    last_observed_at TEXT NOT NULL,
    run_number INTEGER NOT NULL,  -- of the run that touched it last
    slice INTEGER,  -- of its key; NULL: no run has touched it since there are slices
    CONSTRAINT pk_home_activity_day PRIMARY KEY (home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE home_activity_day_staged (
    staging_id TEXT NOT NULL,
    slice INTEGER NOT NULL,
    home_id TEXT NOT NULL,
    window_start TEXT NOT NULL,
    kind TEXT NOT NULL,
    run_id TEXT NOT NULL,
    is_whole INTEGER NOT NULL,  -- replaces the window, and does not add to it
    readings INTEGER NOT NULL,
    active INTEGER NOT NULL,
    ppm_hundredths INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths INTEGER,
    first_observed_at TEXT,
    last_observed_at TEXT,
    CONSTRAINT pk_home_activity_day_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

INSERT INTO home_activity_day
       ([home_id], [window_start], [kind], [readings], [active], [ppm_hundredths], [least_ppm_hundredths], [most_ppm_hundredths], [first_observed_at], [last_observed_at],
       run_number, slice)
SELECT a.[home_id],
       strftime('%Y-%m-%dT%H:%M:%S.000000Z', substr(a.window_start, 1, 10), '+' || ((strftime('%s', a.window_start) - strftime('%s', substr(a.window_start, 1, 10))) / 86400 * 86400) || ' seconds') AS begins,
       a.[kind],
       SUM(a.[readings]),
       SUM(a.[active]),
       SUM(a.[ppm_hundredths]),
       MIN(a.[least_ppm_hundredths]),
       MAX(a.[most_ppm_hundredths]),
       MIN(a.[first_observed_at]),
       MAX(a.[last_observed_at]),
       MAX(a.run_number), MAX(a.slice)
  FROM home_activity_hour AS a
 GROUP BY a.[home_id], begins, a.[kind];
