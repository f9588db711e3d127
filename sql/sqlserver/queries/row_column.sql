-- name: read_row_columns
-- Read the columns of tables or views: table, name, type, precision, scale and collation.
-- params: tables nvarchar(max)
SELECT g.table_name, c.name, COALESCE(TYPE_NAME(c.system_type_id), TYPE_NAME(c.user_type_id)) AS type_name,
       c.[precision], c.scale, c.collation_name
  FROM OPENJSON(@tables) WITH (table_name nvarchar(max) '$[0]') AS g
 INNER JOIN sys.columns AS c ON c.object_id = OBJECT_ID(N'hubledger.' + QUOTENAME(g.table_name))
 ORDER BY g.table_name, c.column_id;
