-- Registered homes (a reference), their sensors' readings, their alerts, and their activity by quarter, hour and day.
-- Each table is made only where it is missing: databases of release 0.1 have them from migrations of Hubledger.

IF OBJECT_ID(N'hubledger.home', N'U') IS NULL
    CREATE TABLE hubledger.home (
        home_id         nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
        time_zone       nvarchar(40) NOT NULL,
        armed           bit NOT NULL,
        stream_id       int NOT NULL,
        partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
        sequence_number bigint NOT NULL,
        commit_number   bigint NOT NULL,
        CONSTRAINT pk_home PRIMARY KEY (home_id)
    );

IF OBJECT_ID(N'hubledger.sensor_reading', N'U') IS NULL
BEGIN
    CREATE TABLE hubledger.sensor_reading (
        stream_id       int NOT NULL,
        partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
        sequence_number bigint NOT NULL,
        ordinal         smallint NOT NULL,
        commit_number   bigint NOT NULL,
        home_id         nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
        sensor_id       nvarchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
        kind            varchar(20) NOT NULL,
        state           varchar(10),
        ppm             bigint,
        observed_at     datetime2(7) NOT NULL,
        CONSTRAINT pk_sensor_reading PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
    ) WITH (DATA_COMPRESSION = PAGE);
    CREATE INDEX ix_home_activity_source
        ON hubledger.sensor_reading (stream_id, partition_id, observed_at, home_id, kind)
        WITH (DATA_COMPRESSION = PAGE);
END;

IF OBJECT_ID(N'hubledger.home_alert', N'U') IS NULL
BEGIN
    CREATE TABLE hubledger.home_alert (
        stream_id       int NOT NULL,
        partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
        sequence_number bigint NOT NULL,
        ordinal         smallint NOT NULL,
        commit_number   bigint NOT NULL,
        home_id         nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
        sensor_id       nvarchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
        kind            varchar(20) NOT NULL,
        ppm             bigint,
        observed_at     datetime2(7) NOT NULL,
        CONSTRAINT pk_home_alert PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
    ) WITH (DATA_COMPRESSION = PAGE);
    CREATE INDEX ix_home_alert_home
        ON hubledger.home_alert (home_id, observed_at);
END;

IF OBJECT_ID(N'hubledger.home_activity', N'U') IS NULL
    CREATE TABLE hubledger.home_activity (
        home_id              nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
        window_start         datetime2(7) NOT NULL,
        kind                 varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
        readings             bigint NOT NULL,
        active               bigint NOT NULL,
        ppm_hundredths       bigint,
        least_ppm_hundredths bigint,
        most_ppm_hundredths  bigint,
        first_observed_at    datetime2(7) NOT NULL,
        last_observed_at     datetime2(7) NOT NULL,
        run_number           bigint NOT NULL,  -- of the run that touched it last
        slice                int,  -- of its key; NULL: no run has touched it since there are slices
        CONSTRAINT pk_home_activity PRIMARY KEY (home_id, window_start, kind)
    );

IF OBJECT_ID(N'hubledger.home_activity_staged', N'U') IS NULL
    CREATE TABLE hubledger.home_activity_staged (
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
        CONSTRAINT pk_home_activity_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind) WITH (IGNORE_DUP_KEY = ON)
    );

IF OBJECT_ID(N'hubledger.home_activity_hour', N'U') IS NULL
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

IF OBJECT_ID(N'hubledger.home_activity_hour_staged', N'U') IS NULL
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

IF OBJECT_ID(N'hubledger.home_activity_day', N'U') IS NULL
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

IF OBJECT_ID(N'hubledger.home_activity_day_staged', N'U') IS NULL
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
