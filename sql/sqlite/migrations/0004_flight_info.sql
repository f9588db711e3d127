-- Flight changes: the latest status of each flight and day, and the history.

CREATE TABLE flight_status (
    carrier         TEXT NOT NULL,
    flight_number   INTEGER NOT NULL,
    departure_date  TEXT NOT NULL,
    status          TEXT NOT NULL,
    departure_gate  TEXT,
    departs_at      TEXT,
    arrives_at      TEXT,
    changed_at      TEXT NOT NULL,
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    commit_number   INTEGER NOT NULL,
    CONSTRAINT pk_flight_status PRIMARY KEY (carrier, flight_number, departure_date)
) STRICT, WITHOUT ROWID;

CREATE TABLE flight_change (
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    ordinal         INTEGER NOT NULL,
    commit_number   INTEGER NOT NULL,
    carrier         TEXT NOT NULL,
    flight_number   INTEGER NOT NULL,
    departure_date  TEXT NOT NULL,
    status          TEXT NOT NULL,
    departure_gate  TEXT,
    departs_at      TEXT,
    arrives_at      TEXT,
    changed_at      TEXT NOT NULL,
    CONSTRAINT pk_flight_change PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
) STRICT, WITHOUT ROWID;
