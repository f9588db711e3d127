-- The activity of homes by hour and day: python -m core.store.aggregate_ddl home_activity --added hour day
-- The new levels are filled from the stored windows, in the transaction that tells commits of them: one statement for
-- each level, some 10 to 20 s for 1,000,000 windows. Nothing but the commit of runs waits for it.

UPDATE hubledger.aggregation_cut
   SET levels = job
 WHERE levels = '';

UPDATE hubledger.aggregation_cut
   SET levels = 'home_activity home_activity_hour home_activity_day'
 WHERE job = 'home_activity';

CREATE TABLE hubledger.home_activity_hour (
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(7) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(7) NOT NULL,
    last_observed_at datetime2(7) NOT NULL,
    run_number bigint NOT NULL,  -- of the run that touched it last
    slice int,  -- of its key; NULL: no run has touched it since there are slices
    CONSTRAINT pk_home_activity_hour PRIMARY KEY (home_id, window_start, kind)
);

CREATE TABLE hubledger.home_activity_hour_staged (
    staging_id varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    slice int NOT NULL,
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(7) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    is_whole bit NOT NULL,  -- replaces the window, and does not add to it
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(7),
    last_observed_at datetime2(7),
    CONSTRAINT pk_home_activity_hour_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind) WITH (IGNORE_DUP_KEY = ON)
);

INSERT INTO hubledger.home_activity_hour
       ([home_id], [window_start], [kind], [readings], [active], [ppm_hundredths], [least_ppm_hundredths], [most_ppm_hundredths], [first_observed_at], [last_observed_at],
       run_number, slice)
SELECT a.[home_id],
       w.begins,
       a.[kind],
       SUM(a.[readings]),
       SUM(a.[active]),
       SUM(a.[ppm_hundredths]),
       MIN(a.[least_ppm_hundredths]),
       MAX(a.[most_ppm_hundredths]),
       MIN(a.[first_observed_at]),
       MAX(a.[last_observed_at]),
       MAX(a.run_number), MAX(a.slice)
  FROM hubledger.home_activity AS a
 CROSS APPLY (SELECT DATEADD(second, DATEDIFF(second, CONVERT(datetime2(7), CONVERT(date, a.window_start)), a.window_start) / 3600 * 3600, CONVERT(datetime2(7), CONVERT(date, a.window_start))) AS begins) AS w
 GROUP BY a.[home_id], w.begins, a.[kind];

CREATE TABLE hubledger.home_activity_day (
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(7) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(7) NOT NULL,
    last_observed_at datetime2(7) NOT NULL,
    run_number bigint NOT NULL,  -- of the run that touched it last
    slice int,  -- of its key; NULL: no run has touched it since there are slices
    CONSTRAINT pk_home_activity_day PRIMARY KEY (home_id, window_start, kind)
);

CREATE TABLE hubledger.home_activity_day_staged (
    staging_id varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    slice int NOT NULL,
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(7) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    is_whole bit NOT NULL,  -- replaces the window, and does not add to it
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(7),
    last_observed_at datetime2(7),
    CONSTRAINT pk_home_activity_day_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind) WITH (IGNORE_DUP_KEY = ON)
);

INSERT INTO hubledger.home_activity_day
       ([home_id], [window_start], [kind], [readings], [active], [ppm_hundredths], [least_ppm_hundredths], [most_ppm_hundredths], [first_observed_at], [last_observed_at],
       run_number, slice)
SELECT a.[home_id],
       w.begins,
       a.[kind],
       SUM(a.[readings]),
       SUM(a.[active]),
       SUM(a.[ppm_hundredths]),
       MIN(a.[least_ppm_hundredths]),
       MAX(a.[most_ppm_hundredths]),
       MIN(a.[first_observed_at]),
       MAX(a.[last_observed_at]),
       MAX(a.run_number), MAX(a.slice)
  FROM hubledger.home_activity_hour AS a
 CROSS APPLY (SELECT DATEADD(second, DATEDIFF(second, CONVERT(datetime2(7), CONVERT(date, a.window_start)), a.window_start) / 86400 * 86400, CONVERT(datetime2(7), CONVERT(date, a.window_start))) AS begins) AS w
 GROUP BY a.[home_id], w.begins, a.[kind];
