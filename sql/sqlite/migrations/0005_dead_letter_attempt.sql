-- Letters come back: what every attempt did, bodies that were not kept, claims that were lost, and what is due.

ALTER TABLE event_hub_dead_letter ADD COLUMN body_kept INTEGER NOT NULL
    CONSTRAINT df_event_hub_dead_letter_body_kept DEFAULT 1;  -- 0: the body is empty here, and only the hub may have it
ALTER TABLE event_hub_dead_letter ADD COLUMN lost_claims INTEGER NOT NULL
    CONSTRAINT df_event_hub_dead_letter_lost_claims DEFAULT 0;
ALTER TABLE event_hub_dead_letter ADD COLUMN began_at TEXT;  -- when the try of a letter alone began

-- What a keeper asks for: what is due, and what its lease gives back. A lease ends at due_at too.
CREATE INDEX ix_event_hub_dead_letter_due
    ON event_hub_dead_letter (stream_id, due_at) WHERE status IN ('waiting', 'retrying');

CREATE TABLE dead_letter_attempt (
    stream_id         INTEGER NOT NULL,
    partition_id      TEXT NOT NULL,
    sequence_number   INTEGER NOT NULL,
    attempt           INTEGER NOT NULL,
    touched_by        TEXT NOT NULL,  -- the claim or the move
    kind              TEXT NOT NULL,
    status            TEXT NOT NULL,  -- what the letter became
    error_class       TEXT,
    error_type        TEXT,
    error             TEXT,
    transform_version TEXT NOT NULL,
    commit_number     INTEGER,        -- of a retry
    done_by           TEXT NOT NULL,
    why               TEXT,
    done_at           TEXT NOT NULL,
    CONSTRAINT pk_dead_letter_attempt PRIMARY KEY (stream_id, partition_id, sequence_number, attempt),
    CONSTRAINT ck_dead_letter_attempt_kind CHECK (kind IN ('retry', 'exhaust', 'requeue', 'discard', 'free', 'replay')),
    CONSTRAINT ck_dead_letter_attempt_status CHECK (status IN ('waiting', 'resolved', 'exhausted', 'discarded'))
) STRICT, WITHOUT ROWID;
