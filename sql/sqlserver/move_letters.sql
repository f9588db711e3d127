-- Letters moved by a person or a keeper, in one batch and one round trip. core/store/server_letters.py fills in the parts.
-- What moved is told by the letters themselves, so that a second time has no more effect and the same answer.
SET NOCOUNT ON; SET XACT_ABORT ON;
{declarations}
DECLARE @commit_number bigint = 0;
BEGIN TRANSACTION;
{letters}
{attempts}
{answer}
COMMIT TRANSACTION;
