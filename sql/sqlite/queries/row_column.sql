-- name: read_row_columns
-- Read the columns of tables or views: table, name, type, precision, scale and collation.
-- params: tables
SELECT g.value ->> 0 AS table_name, c.name, c.type AS type_name, 0 AS "precision", 0 AS scale, NULL AS collation_name
  FROM json_each(:tables) AS g INNER JOIN pragma_table_info(g.value ->> 0) AS c
 ORDER BY table_name, c.cid;
