-- name: read_key
-- Read the answer that is stored under an idempotency key.
-- params: request_key
SELECT k.request_hash, k.claimed_at, k.expires_at, k.answer
  FROM idempotency_key AS k
 WHERE k.request_key = :request_key;

-- name: claim_new_key
-- Insert the first request under a key; touches no row when another request was first.
-- params: request_key, request_hash, claimed_at, expires_at
INSERT INTO idempotency_key (request_key, request_hash, claimed_at, expires_at)
VALUES (:request_key, :request_hash, :claimed_at, :expires_at)
ON CONFLICT (request_key) DO NOTHING
RETURNING request_key;
-- name: claim_free_key
-- Claim a key that has expired, or whose request died; touches no row while the key is in use.
-- params: request_key, request_hash, claimed_at, expires_at, abandoned_at
UPDATE idempotency_key
   SET request_hash = :request_hash, claimed_at = :claimed_at, expires_at = :expires_at, answer = NULL
 WHERE request_key = :request_key
   AND (expires_at <= :claimed_at
        OR (answer IS NULL AND request_hash = :request_hash AND claimed_at < :abandoned_at))
RETURNING request_key;

-- name: keep_answer
-- Store the answer of the request that claimed the key.
-- params: request_key, claimed_at, answer
UPDATE idempotency_key
   SET answer = :answer
 WHERE request_key = :request_key AND claimed_at = :claimed_at;

-- name: release_key
-- Release a key whose request was not carried out: the same request may come again.
-- params: request_key, claimed_at, abandoned_at
UPDATE idempotency_key
   SET claimed_at = :abandoned_at
 WHERE request_key = :request_key AND claimed_at = :claimed_at AND answer IS NULL;

-- name: forget_keys
-- Delete the keys that have expired.
-- params: claimed_at
DELETE FROM idempotency_key
 WHERE expires_at <= :claimed_at;
