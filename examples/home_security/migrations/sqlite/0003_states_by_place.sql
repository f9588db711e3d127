-- An audit and a replay find homes by the place of the events that wrote them.

CREATE INDEX ix_home_place
    ON home (stream_id, partition_id, sequence_number, commit_number);
