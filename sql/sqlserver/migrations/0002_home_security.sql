-- The home-security company: registered homes (a reference), their sensors' readings, and alerts.

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
);

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
);
