-- What the operator's API keeps and reads by: answers by idempotency key, sums of the ledger, ways into letters.

CREATE TABLE hubledger.idempotency_key (
    request_key  varchar(100) COLLATE Latin1_General_100_BIN2 NOT NULL,
    request_hash varchar(64) NOT NULL,
    claimed_at   datetime2(7) NOT NULL,
    expires_at   datetime2(7) NOT NULL,
    answer       nvarchar(max),  -- as JSON; NULL while the request is in work
    CONSTRAINT pk_idempotency_key PRIMARY KEY (request_key)
);

CREATE INDEX ix_idempotency_key_expires ON hubledger.idempotency_key (expires_at);

-- The ranges of kind batch up to a commit number, summed: what was read once need not be read again.
CREATE TABLE hubledger.ledger_sum (
    stream_id             int NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    commit_number         bigint NOT NULL,
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    commits               bigint NOT NULL,
    holes                 bigint NOT NULL,
    written               bigint NOT NULL,
    filtered              bigint NOT NULL,
    dead_lettered         bigint NOT NULL,
    held                  bigint NOT NULL,
    absent                bigint NOT NULL,
    CONSTRAINT pk_ledger_sum PRIMARY KEY (stream_id, partition_id)
);

-- What is there already, summed once.
INSERT INTO hubledger.ledger_sum
       (stream_id, partition_id, commit_number, first_sequence_number, last_sequence_number, commits, holes,
        written, filtered, dead_lettered, held, absent)
SELECT r.stream_id, r.partition_id, MAX(r.commit_number), MIN(r.first_sequence_number), MAX(r.last_sequence_number),
       COUNT(*), SUM(CASE WHEN r.first_sequence_number <> r.previous_last + 1 THEN 1 ELSE 0 END),
       SUM(CONVERT(bigint, r.written)), SUM(CONVERT(bigint, r.filtered)), SUM(CONVERT(bigint, r.dead_lettered)),
       SUM(CONVERT(bigint, r.held)), SUM(CONVERT(bigint, r.absent))
  FROM (SELECT l.stream_id, l.partition_id, l.commit_number, l.first_sequence_number, l.last_sequence_number,
               l.written, l.filtered, l.dead_lettered, l.held, l.absent,
               LAG(l.last_sequence_number) OVER (
                   PARTITION BY l.stream_id, l.partition_id ORDER BY l.commit_number
               ) AS previous_last
          FROM hubledger.batch_ledger AS l
         WHERE l.kind = 'batch') AS r
 GROUP BY r.stream_id, r.partition_id;

-- Retries and replays are few beside batches: by what they cover.
CREATE INDEX ix_batch_ledger_change
    ON hubledger.batch_ledger (stream_id, partition_id, first_sequence_number) WHERE kind <> 'batch' WITH (ONLINE = ON);

-- A home's alerts, the newest first.
CREATE INDEX ix_home_alert_home ON hubledger.home_alert (home_id, observed_at) WITH (ONLINE = ON);

CREATE INDEX ix_event_hub_dead_letter_failed
    ON hubledger.event_hub_dead_letter (stream_id, failed_at, partition_id, sequence_number)
    WITH (ONLINE = ON);

CREATE INDEX ix_event_hub_dead_letter_status
    ON hubledger.event_hub_dead_letter (stream_id, status, failed_at, partition_id, sequence_number)
    WITH (ONLINE = ON);

CREATE INDEX ix_event_hub_dead_letter_fingerprint
    ON hubledger.event_hub_dead_letter (stream_id, fingerprint, failed_at, partition_id, sequence_number, status)
    WITH (ONLINE = ON);

-- How many rows of appended tables a commit wrote: these stay until a replay takes them away. NULL: it is older.
ALTER TABLE hubledger.batch_ledger ADD rows_appended int;

-- The commit of the replay that made a letter of an event that its batch counts as written or filtered.
ALTER TABLE hubledger.event_hub_dead_letter ADD replay_commit_number bigint;

-- A batch of its own: SQL Server compiles a filter together with its batch, before the column is there (error 207).
EXEC(N'CREATE INDEX ix_event_hub_dead_letter_replayed
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, sequence_number) WHERE replay_commit_number IS NOT NULL;');
