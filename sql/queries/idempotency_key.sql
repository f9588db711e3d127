-- name: read_key
-- Read the answer that is stored under an idempotency key.
-- params: request_key varchar(8000)
SELECT k.request_hash, CONVERT(varchar(33), k.claimed_at, 126) AS claimed_at,
       CONVERT(varchar(33), k.expires_at, 126) AS expires_at, k.answer
  FROM idempotency_key AS k
 WHERE k.request_key = :request_key;

-- name: claim_new_key
-- Insert the first request under a key; touches no row when another request was first.
-- params: request_key varchar(8000), request_hash varchar(8000), claimed_at datetime2(7), expires_at datetime2(7)
INSERT INTO idempotency_key (request_key, request_hash, claimed_at, expires_at)
VALUES (:request_key, :request_hash, :claimed_at, :expires_at)
ON CONFLICT (request_key) DO NOTHING
RETURNING request_key;
-- sqlserver:
BEGIN TRY
    INSERT INTO hubledger.idempotency_key (request_key, request_hash, claimed_at, expires_at)
    OUTPUT inserted.request_key
    SELECT @request_key, @request_hash, @claimed_at, @expires_at
     WHERE NOT EXISTS (SELECT 1 FROM hubledger.idempotency_key AS k WHERE k.request_key = @request_key);
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- claimed by another process at the same moment
END CATCH;

-- name: claim_free_key
-- Claim a key that has expired, or whose request died; touches no row while the key is in use.
-- params: request_key varchar(8000), request_hash varchar(8000), claimed_at datetime2(7), expires_at datetime2(7), abandoned_at datetime2(7)
UPDATE idempotency_key
   SET request_hash = :request_hash, claimed_at = :claimed_at, expires_at = :expires_at, answer = NULL
 WHERE request_key = :request_key
   AND (expires_at <= :claimed_at
        OR (answer IS NULL AND request_hash = :request_hash AND claimed_at < :abandoned_at))
RETURNING request_key;

-- name: keep_answer
-- Store the answer of the request that claimed the key.
-- params: request_key varchar(8000), claimed_at datetime2(7), answer nvarchar(max)
UPDATE idempotency_key
   SET answer = :answer
 WHERE request_key = :request_key AND claimed_at = :claimed_at;

-- name: release_key
-- Release a key whose request was not carried out: the same request may come again.
-- params: request_key varchar(8000), claimed_at datetime2(7), abandoned_at datetime2(7)
UPDATE idempotency_key
   SET claimed_at = :abandoned_at
 WHERE request_key = :request_key AND claimed_at = :claimed_at AND answer IS NULL;

-- name: forget_keys
-- Delete the keys that have expired.
-- params: claimed_at datetime2(7)
DELETE FROM idempotency_key
 WHERE expires_at <= :claimed_at;
