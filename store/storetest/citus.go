package storetest

// standIn are SQL statements that add a stand-in for the extension Citus to a PostgreSQL database. The store treats the database as a database
// of Citus. The stand-in divides nothing: all tables stay in the database.
const standIn = `SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.citus_tables (table_name regclass PRIMARY KEY, citus_table_type text, distribution_column text, colocation_id integer);`
