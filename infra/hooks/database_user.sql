-- Make an identity a user of the database, in a role. Safe to run again. The SID of an Entra user is its client id, so the deployer
-- needs no rights in the directory. A user with this SID is the identity, whatever it is called. A user with this name and a different
-- SID is an older identity, and is replaced.
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
SELECT @name = p.name FROM sys.database_principals AS p WHERE p.sid = @sid;
IF DATABASE_PRINCIPAL_ID(@name) IS NULL
BEGIN
    SET @statement = N'CREATE USER ' + QUOTENAME(@name) + N' WITH SID = ' + CONVERT(nvarchar(200), @sid, 1) + N', TYPE = E;';
    EXECUTE sys.sp_executesql @statement;
END;
SET @statement = N'ALTER ROLE ' + QUOTENAME(@role) + N' ADD MEMBER ' + QUOTENAME(@name) + N';';
EXECUTE sys.sp_executesql @statement;
