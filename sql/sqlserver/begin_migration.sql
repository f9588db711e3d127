-- A migration is one transaction: at its first error none of it stands. commit_migration.sql ends it. The driver would
-- open a transaction only at the first read or write of a table.
SET NOCOUNT ON; SET XACT_ABORT ON;
BEGIN TRANSACTION;
