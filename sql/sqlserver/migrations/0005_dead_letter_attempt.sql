-- Letters come back: what every attempt did, bodies that were not kept, claims that were lost, and what is due.

ALTER TABLE hubledger.event_hub_dead_letter ADD body_kept bit NOT NULL
    CONSTRAINT df_event_hub_dead_letter_body_kept DEFAULT 1;  -- 0: the body is empty here, and only the hub may have it
ALTER TABLE hubledger.event_hub_dead_letter ADD lost_claims int NOT NULL
    CONSTRAINT df_event_hub_dead_letter_lost_claims DEFAULT 0;
ALTER TABLE hubledger.event_hub_dead_letter ADD began_at datetime2(7);  -- when the try of a letter alone began

-- What a keeper asks for: what is due, and what its lease gives back. A lease ends at due_at too.
CREATE INDEX ix_event_hub_dead_letter_due
    ON hubledger.event_hub_dead_letter (stream_id, due_at) WHERE status IN ('waiting', 'retrying');

CREATE TABLE hubledger.dead_letter_attempt (
    stream_id         int NOT NULL,
    partition_id      varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number   bigint NOT NULL,
    attempt           int NOT NULL,
    touched_by        nvarchar(100) NOT NULL,  -- the claim or the move
    kind              varchar(10) NOT NULL,
    status            varchar(10) NOT NULL,  -- what the letter became
    error_class       varchar(10),
    error_type        nvarchar(400),
    error             nvarchar(4000),
    transform_version nvarchar(100) NOT NULL,
    commit_number     bigint,  -- of a retry
    done_by           nvarchar(100) NOT NULL,
    why               nvarchar(400),
    done_at           datetime2(7) NOT NULL,
    CONSTRAINT pk_dead_letter_attempt PRIMARY KEY (stream_id, partition_id, sequence_number, attempt),
    CONSTRAINT ck_dead_letter_attempt_kind CHECK (kind IN ('retry', 'exhaust', 'requeue', 'discard', 'free', 'replay')),
    CONSTRAINT ck_dead_letter_attempt_status CHECK (status IN ('waiting', 'resolved', 'exhausted', 'discarded'))
);
