-- The edition of the engine, as SERVERPROPERTY numbers it.
SET NOCOUNT ON;
SELECT CONVERT(int, SERVERPROPERTY('EngineEdition')) AS engine_edition;
