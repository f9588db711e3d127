-- name: place_order
-- Compare and set: touches no row when an order waits already.
-- params: job varchar(8000), kind varchar(8000), since_day varchar(8000), until_day varchar(8000), ordered_at datetime2(6), ordered_by nvarchar(4000), ordered_why nvarchar(4000), entry nvarchar(max)
UPDATE aggregation_cut
   SET ordered_kind = :kind, ordered_since = CONVERT(date, NULLIF(:since_day, ''), 23),
       ordered_until = CONVERT(date, NULLIF(:until_day, ''), 23), ordered_at = :ordered_at,
       ordered_by = :ordered_by, ordered_why = :ordered_why, history = history || :entry
 WHERE job = :job AND ordered_kind IS NULL
RETURNING job;

-- name: end_order
-- Compare and set: touches no row when the order does not wait any more.
-- params: job varchar(8000), ordered_at datetime2(6), entry nvarchar(max)
UPDATE aggregation_cut
   SET ordered_kind = NULL, ordered_since = NULL, ordered_until = NULL, ordered_at = NULL, ordered_by = NULL,
       ordered_why = NULL, history = history || :entry
 WHERE job = :job AND ordered_kind IS NOT NULL AND ordered_at = :ordered_at
RETURNING job;
