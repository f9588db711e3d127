-- name: read_retracted
-- Read the rows that one commit of a replay removed.
-- params: stream_id int, partition_id varchar(8000), commit_number bigint
-- answers: table_name varchar(128), sequence_number bigint, ordinal int, row nvarchar(max)
SELECT r.table_name, r.sequence_number, r.ordinal, r.row
  FROM retracted_row AS r
 WHERE r.stream_id = :stream_id AND r.partition_id = :partition_id AND r.commit_number = :commit_number
 ORDER BY r.table_name, r.sequence_number, r.ordinal;
