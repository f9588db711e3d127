-- name: read_row_columns
-- Read the columns of tables or views: table, name, type, precision, scale, collation, 1 if an insert has to name it,
-- and the unique indexes that it is part of.
-- params: tables nvarchar(max)
SELECT g.value ->> 0 AS table_name, c.name, c.type AS type_name, 0 AS "precision", 0 AS scale, NULL AS collation_name,
       c."notnull" = 1 AND c.dflt_value IS NULL AND NOT (c.pk = 1 AND upper(c.type) = 'INTEGER') AS needs_value,
       (SELECT group_concat(u.number)
          FROM (SELECT i.seq AS number
                  FROM pragma_index_list(g.value ->> 0) AS i INNER JOIN pragma_index_info(i.name) AS x
                 WHERE i."unique" = 1 AND i.partial = 0 AND x.name = c.name
                 UNION ALL
                SELECT -1 WHERE c.pk > 0) AS u) AS unique_in
  FROM json_each(:tables) AS g INNER JOIN pragma_table_info(g.value ->> 0) AS c
 ORDER BY table_name, c.cid;
-- sqlserver:
SELECT g.table_name, c.name, COALESCE(TYPE_NAME(c.system_type_id), TYPE_NAME(c.user_type_id)) AS type_name,
       c.[precision], c.scale, c.collation_name,
       CASE WHEN c.is_nullable = 0 AND c.default_object_id = 0 AND c.is_identity = 0 AND c.is_computed = 0
                 AND c.generated_always_type = 0 AND c.system_type_id <> TYPE_ID(N'timestamp')
            THEN 1 ELSE 0 END AS needs_value,
       (SELECT STRING_AGG(CONVERT(varchar(11), i.index_id), ',')
          FROM sys.indexes AS i
         INNER JOIN sys.index_columns AS x ON x.object_id = i.object_id AND x.index_id = i.index_id
         WHERE i.object_id = c.object_id AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0
           AND x.column_id = c.column_id AND x.key_ordinal > 0) AS unique_in
  FROM OPENJSON(@tables) WITH (table_name nvarchar(max) '$[0]') AS g
 INNER JOIN sys.columns AS c ON c.object_id = OBJECT_ID(N'hubledger.' + QUOTENAME(g.table_name))
 ORDER BY g.table_name, c.column_id;
