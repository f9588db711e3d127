-- Attempts are no longer counted, and their ranges are no longer narrowed: a child process names the event that kills.

ALTER TABLE hubledger.batch_attempt DROP CONSTRAINT ck_batch_attempt_attempts;
ALTER TABLE hubledger.batch_attempt DROP COLUMN suspects_end, attempts;
