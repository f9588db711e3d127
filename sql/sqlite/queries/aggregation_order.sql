-- name: place_order
-- Compare and set: touches no row when an order waits already, or its kind does not fit the cut: a backfill begins an
-- aggregate without a commit, and a repair mends one that has some.
-- params: job, kind, since_day, until_day, ordered_at, ordered_by, ordered_why, entry
UPDATE aggregation_cut
   SET ordered_kind = :kind, ordered_since = NULLIF(:since_day, ''), ordered_until = NULLIF(:until_day, ''),
       ordered_at = :ordered_at, ordered_by = :ordered_by, ordered_why = :ordered_why, history = history || :entry
 WHERE job = :job AND ordered_kind IS NULL
   AND ((cut = '{}' AND :kind = 'backfill') OR (cut <> '{}' AND :kind = 'repair'))
RETURNING job;

-- name: end_order
-- Compare and set: touches no row when the order does not wait any more.
-- params: job, ordered_at, entry
UPDATE aggregation_cut
   SET ordered_kind = NULL, ordered_since = NULL, ordered_until = NULL, ordered_at = NULL, ordered_by = NULL,
       ordered_why = NULL, history = history || :entry
 WHERE job = :job AND ordered_kind IS NOT NULL AND ordered_at = :ordered_at
RETURNING job;
