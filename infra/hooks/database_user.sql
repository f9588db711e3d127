-- Make an identity a user of the database, in a role. Safe to run again; an identity that was created
-- again under its old name replaces the old user. The SID of an Entra user is its client id, so the deployer needs no
-- rights in the directory.
SET NOCOUNT ON; SET XACT_ABORT ON;
DECLARE @name sysname = ?;
DECLARE @sid varbinary(85) = ?;
DECLARE @role sysname = ?;
DECLARE @statement nvarchar(max);
IF EXISTS (SELECT 1 FROM sys.database_principals AS p WHERE p.name = @name AND p.sid <> @sid)
BEGIN
    SET @statement = N'DROP USER ' + QUOTENAME(@name) + N';';
    EXECUTE sys.sp_executesql @statement;
END;
IF DATABASE_PRINCIPAL_ID(@name) IS NULL
BEGIN
    SET @statement = N'CREATE USER ' + QUOTENAME(@name) + N' WITH SID = ' + CONVERT(nvarchar(200), @sid, 1) + N', TYPE = E;';
    EXECUTE sys.sp_executesql @statement;
END;
SET @statement = N'ALTER ROLE ' + QUOTENAME(@role) + N' ADD MEMBER ' + QUOTENAME(@name) + N';';
EXECUTE sys.sp_executesql @statement;
