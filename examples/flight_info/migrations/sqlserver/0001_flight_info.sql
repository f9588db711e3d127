-- The latest status of each flight and day, the history of changes, and the punctuality of carriers by day.

CREATE TABLE hubledger.flight_status (
    carrier         nvarchar(3) COLLATE Latin1_General_100_BIN2 NOT NULL,
    flight_number   int NOT NULL,
    departure_date  date NOT NULL,
    status          varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    departure_gate  nvarchar(10) COLLATE Latin1_General_100_BIN2,
    departs_at      datetime2(6),
    arrives_at      datetime2(6),
    changed_at      datetime2(6) NOT NULL,
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    commit_number   bigint NOT NULL,
    CONSTRAINT pk_flight_status PRIMARY KEY (carrier, flight_number, departure_date)
);

CREATE INDEX ix_flight_status_place
    ON hubledger.flight_status (stream_id, partition_id, sequence_number) INCLUDE (commit_number) WITH (ONLINE = ON);

CREATE TABLE hubledger.flight_change (
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    ordinal         smallint NOT NULL,
    commit_number   bigint NOT NULL,
    carrier         nvarchar(3) COLLATE Latin1_General_100_BIN2 NOT NULL,
    flight_number   int NOT NULL,
    departure_date  date NOT NULL,
    status          varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    departure_gate  nvarchar(10) COLLATE Latin1_General_100_BIN2,
    departs_at      datetime2(6),
    arrives_at      datetime2(6),
    changed_at      datetime2(6) NOT NULL,
    CONSTRAINT pk_flight_change PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
) WITH (DATA_COMPRESSION = PAGE);

CREATE TABLE hubledger.flight_punctuality (
    carrier nvarchar(3) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(6) NOT NULL,
    changes bigint NOT NULL,
    delayed bigint NOT NULL,
    cancelled bigint NOT NULL,
    diverted bigint NOT NULL,
    departed bigint NOT NULL,
    arrived bigint NOT NULL,
    first_changed_at datetime2(6) NOT NULL,
    last_changed_at datetime2(6) NOT NULL,
    run_number bigint NOT NULL,  -- of the run that touched it last
    slice int NOT NULL,  -- of its key
    CONSTRAINT pk_flight_punctuality PRIMARY KEY (carrier, window_start)
);

CREATE TABLE hubledger.flight_punctuality_staged (
    staging_id varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    slice int NOT NULL,
    carrier nvarchar(3) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(6) NOT NULL,
    run_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    is_whole bit NOT NULL,  -- replaces the window, and does not add to it
    changes bigint NOT NULL,
    delayed bigint NOT NULL,
    cancelled bigint NOT NULL,
    diverted bigint NOT NULL,
    departed bigint NOT NULL,
    arrived bigint NOT NULL,
    first_changed_at datetime2(6),
    last_changed_at datetime2(6),
    CONSTRAINT pk_flight_punctuality_staged PRIMARY KEY (staging_id, slice, carrier, window_start) WITH (IGNORE_DUP_KEY = ON)
);

CREATE INDEX ix_flight_punctuality_source
    ON hubledger.flight_change (stream_id, partition_id, departure_date, carrier)
    WITH (ONLINE = ON, DATA_COMPRESSION = PAGE);
