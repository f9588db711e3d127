-- name: read_row_columns
-- Read the columns of tables or views: table, name, type, precision, scale, collation, 1 if an insert has to name it,
-- and the unique indexes that it is part of.
-- params: tables
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
