-- Registered homes (a reference), their sensors' readings, their alerts, and their activity by quarter, hour and day.

CREATE TABLE hubledger.home (
    home_id         nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    time_zone       nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    armed           bit NOT NULL,
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    commit_number   bigint NOT NULL,
    CONSTRAINT pk_home PRIMARY KEY (home_id)
);

CREATE INDEX ix_home_place
    ON hubledger.home (stream_id, partition_id, sequence_number) INCLUDE (commit_number) WITH (ONLINE = ON);

CREATE TABLE hubledger.sensor_reading (
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    ordinal         smallint NOT NULL,
    commit_number   bigint NOT NULL,
    home_id         nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sensor_id       nvarchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
    kind            varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    state           varchar(10) COLLATE Latin1_General_100_BIN2,
    ppm             bigint,
    observed_at     datetime2(6) NOT NULL,
    CONSTRAINT pk_sensor_reading PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
) WITH (DATA_COMPRESSION = PAGE);

CREATE TABLE hubledger.home_alert (
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    ordinal         smallint NOT NULL,
    commit_number   bigint NOT NULL,
    home_id         nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sensor_id       nvarchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
    kind            varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    ppm             bigint,
    observed_at     datetime2(6) NOT NULL,
    CONSTRAINT pk_home_alert PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
) WITH (DATA_COMPRESSION = PAGE);

CREATE INDEX ix_home_alert_home
    ON hubledger.home_alert (home_id, observed_at);

CREATE TABLE hubledger.home_activity (
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(6) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(6) NOT NULL,
    last_observed_at datetime2(6) NOT NULL,
    run_number bigint NOT NULL,  -- of the run that touched it last
    slice int NOT NULL,  -- of its key
    CONSTRAINT pk_home_activity PRIMARY KEY (home_id, window_start, kind)
);

CREATE TABLE hubledger.home_activity_staged (
    staging_id varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    slice int NOT NULL,
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(6) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    is_whole bit NOT NULL,  -- replaces the window, and does not add to it
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(6),
    last_observed_at datetime2(6),
    CONSTRAINT pk_home_activity_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind) WITH (IGNORE_DUP_KEY = ON)
);

CREATE TABLE hubledger.home_activity_hour (
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(6) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(6) NOT NULL,
    last_observed_at datetime2(6) NOT NULL,
    run_number bigint NOT NULL,  -- of the run that touched it last
    slice int NOT NULL,  -- of its key
    CONSTRAINT pk_home_activity_hour PRIMARY KEY (home_id, window_start, kind)
);

CREATE TABLE hubledger.home_activity_hour_staged (
    staging_id varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    slice int NOT NULL,
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(6) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    is_whole bit NOT NULL,  -- replaces the window, and does not add to it
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(6),
    last_observed_at datetime2(6),
    CONSTRAINT pk_home_activity_hour_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind) WITH (IGNORE_DUP_KEY = ON)
);

CREATE TABLE hubledger.home_activity_day (
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(6) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(6) NOT NULL,
    last_observed_at datetime2(6) NOT NULL,
    run_number bigint NOT NULL,  -- of the run that touched it last
    slice int NOT NULL,  -- of its key
    CONSTRAINT pk_home_activity_day PRIMARY KEY (home_id, window_start, kind)
);

CREATE TABLE hubledger.home_activity_day_staged (
    staging_id varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    slice int NOT NULL,
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(6) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    is_whole bit NOT NULL,  -- replaces the window, and does not add to it
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(6),
    last_observed_at datetime2(6),
    CONSTRAINT pk_home_activity_day_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind) WITH (IGNORE_DUP_KEY = ON)
);

CREATE INDEX ix_home_activity_source
    ON hubledger.sensor_reading (stream_id, partition_id, observed_at, home_id, kind)
    WITH (ONLINE = ON, DATA_COMPRESSION = PAGE);
