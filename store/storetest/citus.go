package storetest

// standIn has SQL statements that imitate the extension Citus, but without shards. Like Citus, they
// refuse tables with unsuitable keys.
const standIn = `SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.citus_calls (at timestamptz DEFAULT clock_timestamp(), name regclass, type text, col text, colocate_with text);
CREATE VIEW pg_catalog.citus_tables AS
 SELECT name AS table_name, type AS citus_table_type, col AS distribution_column, CASE type WHEN 'distributed' THEN 1 END AS colocation_id
   FROM citus_calls JOIN pg_class ON oid = name;
CREATE FUNCTION pg_catalog.citus_version() RETURNS text LANGUAGE sql AS $$ SELECT 'Citus 13.2.2 on x86_64-pc-linux-gnu' $$;
CREATE FUNCTION pg_catalog.citus_copy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 IF pg_trigger_depth() > 1 OR current_query() NOT ILIKE 'copy%' THEN
  RETURN NEW;
 END IF;
 EXECUTE format('INSERT INTO %s SELECT ($1).*', TG_RELID::regclass) USING NEW;
 RETURN NULL;
EXCEPTION WHEN unique_violation THEN
 RAISE 'a row of COPY breaks a unique key' USING ERRCODE = 'XX000';
END $$;
CREATE FUNCTION pg_catalog.create_reference_table(table_name regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
 IF EXISTS (SELECT 1 FROM pg_constraint WHERE contype = 'f' AND table_name IN (conrelid, confrelid)) THEN
  RAISE 'relation % has foreign keys to local tables', table_name;
 END IF;
 INSERT INTO citus_calls (name, type) VALUES (table_name, 'reference');
END $$;
CREATE FUNCTION pg_catalog.create_distributed_table(table_name regclass, distribution_column text, distribution_type text DEFAULT 'hash',
 colocate_with text DEFAULT 'default', shard_count int DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
 IF EXISTS (SELECT 1 FROM pg_index WHERE indrelid = table_name AND indisunique AND NOT EXISTS (
  SELECT 1 FROM pg_attribute WHERE attrelid = table_name AND attname = distribution_column AND attnum = ANY(indkey))) THEN
  RAISE 'cannot create constraint on %: a unique key lacks %', table_name, distribution_column;
 END IF;
 IF EXISTS (SELECT 1 FROM pg_constraint f WHERE f.contype = 'f' AND table_name IN (f.conrelid, f.confrelid) AND f.conparentid = 0
  AND EXISTS (SELECT 1 FROM unnest(ARRAY[f.conrelid, f.confrelid]) AS other WHERE other <> table_name AND other NOT IN (SELECT name FROM citus_calls))) THEN
  RAISE 'cannot create foreign key constraint of %: a table is not distributed', table_name;
 END IF;
 INSERT INTO citus_calls (name, type, col, colocate_with) VALUES (table_name, 'distributed', distribution_column, colocate_with);
 EXECUTE format('CREATE TRIGGER citus_copy BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION citus_copy()', table_name);
END $$;`
