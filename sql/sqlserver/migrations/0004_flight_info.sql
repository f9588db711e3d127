-- Flight changes: the latest status of each flight and day, and the history.

CREATE TABLE hubledger.flight_status (
    carrier         nvarchar(3) COLLATE Latin1_General_100_BIN2 NOT NULL,
    flight_number   int NOT NULL,
    departure_date  date NOT NULL,
    status          varchar(20) NOT NULL,
    departure_gate  nvarchar(10),
    departs_at      datetime2(7),
    arrives_at      datetime2(7),
    changed_at      datetime2(7) NOT NULL,
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    commit_number   bigint NOT NULL,
    CONSTRAINT pk_flight_status PRIMARY KEY (carrier, flight_number, departure_date)
);

CREATE TABLE hubledger.flight_change (
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    ordinal         smallint NOT NULL,
    commit_number   bigint NOT NULL,
    carrier         nvarchar(3) COLLATE Latin1_General_100_BIN2 NOT NULL,
    flight_number   int NOT NULL,
    departure_date  date NOT NULL,
    status          varchar(20) NOT NULL,
    departure_gate  nvarchar(10),
    departs_at      datetime2(7),
    arrives_at      datetime2(7),
    changed_at      datetime2(7) NOT NULL,
    CONSTRAINT pk_flight_change PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
);
