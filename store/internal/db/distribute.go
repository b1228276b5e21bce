package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
)

// oldestCitus is the oldest major version of Citus that Distribute accepts.
const oldestCitus = 13

// ErrNoCitus reports that the database does not have the extension Citus.
var ErrNoCitus = errors.New("the database does not have the extension Citus")

// Distribute divides the tables between the nodes of a Citus cluster. It returns the names of newly
// distributed tables. Servers and collectors must not run during the first call.
func (d *DB) Distribute(ctx context.Context) (distributed []string, err error) {
	switch {
	case d.sharded:
	case d.dialect.name() == "sqlite":
		return nil, fmt.Errorf("%w: this database is SQLite; set REELTALLY_DATABASE_URL to a PostgreSQL database with Citus", ErrNoCitus)
	default:
		return nil, fmt.Errorf("%w: run CREATE EXTENSION citus in the database on every node, and add the nodes with citus_add_node", ErrNoCitus)
	}
	err = d.Tx(ctx, func(tx *gorm.DB) error {
		distributed = nil
		l, err := readLayout(tx)
		if err != nil {
			return err
		}
		if err := l.checkTables(); err != nil {
			return err
		}
		var statements []string
		distributed, statements = l.planStatements()
		for _, s := range statements {
			if err := tx.Exec(s).Error; err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
	return distributed, Translate(err)
}

// checkLayout returns the error of checkTables, or an error if Citus has distributed only a part of the tables. Rows that are written to a table
// before Citus distributes this table would be lost.
func (d *DB) checkLayout(ctx context.Context) error {
	if !d.sharded {
		return nil
	}
	l, err := readLayout(d.write.WithContext(ctx))
	if err != nil {
		return Translate(err)
	}
	if err := l.checkTables(); err != nil {
		return err
	}
	if missing, _ := l.planStatements(); len(l.tables) > 0 && len(missing) > 0 {
		return fmt.Errorf("these tables are not distributed by Citus: %s; run `reeltally migrate`", strings.Join(missing, ", "))
	}
	return nil
}

// isDistributed returns true if Citus has distributed at least one table of the schema.
func (d *DB) isDistributed(ctx context.Context) (bool, error) {
	if !d.sharded {
		return false, nil
	}
	l, err := readLayout(d.write.WithContext(ctx))
	return len(l.tables) > 0, Translate(err)
}

// layout describes how Citus stores the tables of the schema.
type layout struct {
	version string                // text of citus_version()
	tables  map[string]citusTable // distributed tables and reference tables of Citus, by name; tables that are not in the map Tables are left out
	keys    []foreignKey          // all foreign keys of the schema
}

// citusTable is a row of the view citus_tables.
type citusTable struct {
	Name         string
	Type         string // type of the table: "distributed" or "reference"
	Column       string // distribution column
	ColocationID int
}

// foreignKey is a foreign key of a table to another table or to itself, with its definition in SQL.
type foreignKey struct{ Table, Name, Referenced, Definition string }

// readLayout reads the version of Citus, the tables that are distributed or reference tables, and the foreign keys.
func readLayout(tx *gorm.DB) (l layout, err error) {
	l.tables = map[string]citusTable{}
	if err := tx.Raw("SELECT citus_version()").Scan(&l.version).Error; err != nil {
		return l, err
	}
	var found []citusTable
	err = tx.Raw(`SELECT CAST(table_name AS text) AS name, citus_table_type AS type, COALESCE(distribution_column, '') AS column, COALESCE(colocation_id, 0) AS colocation_id
 FROM citus_tables WHERE citus_table_type IN ('distributed', 'reference')`).Scan(&found).Error
	if err != nil {
		return l, err
	}
	for _, t := range found {
		if _, known := Tables[t.Name]; known {
			l.tables[t.Name] = t
		}
	}
	return l, tx.Raw(`SELECT CAST(c.conrelid::regclass AS text) AS "table", c.conname AS name, CAST(c.confrelid::regclass AS text) AS referenced, pg_get_constraintdef(c.oid) AS definition
 FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace WHERE c.contype = 'f' AND c.conparentid = 0 AND n.nspname = 'public' ORDER BY 1, 2`).Scan(&l.keys).Error
}

// checkTables returns an error if the version of Citus is too old, or if a table is not distributed as its class requires.
func (l layout) checkTables() error {
	words := strings.Fields(l.version) // the version has a form such as "Citus 13.2.2 on x86_64-pc-linux-gnu, …"
	if len(words) < 2 {
		return fmt.Errorf("cannot read the version of Citus in %q: it must have a form such as \"Citus 13.2.2\"", l.version)
	}
	major, _, _ := strings.Cut(words[1], ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestCitus {
		return fmt.Errorf("the version of Citus is %s; ReelTally needs %d or newer", words[1], oldestCitus)
	}
	group := 0
	for _, name := range slices.Sorted(maps.Keys(l.tables)) {
		switch t, want := l.tables[name], Tables[name].Class; {
		case want == Coordinator || string(want) != t.Type:
			return fmt.Errorf("the table %s is a %s table of Citus, but must be a %s table", name, t.Type, want)
		case want == Distributed && t.Column != "organisation_id":
			return fmt.Errorf("the table %s is distributed by %s, but must be distributed by organisation_id", name, t.Column)
		case want == Distributed && group != 0 && t.ColocationID != group:
			return fmt.Errorf("the table %s is not in the colocation group of the other distributed tables", name)
		case want == Distributed:
			group = t.ColocationID
		}
	}
	return nil
}

// planStatements returns the names of the tables that are not distributed yet, and the SQL
// statements that distribute them, in order.
func (l layout) planStatements() (missing, statements []string) {
	references, distributed := l.missingTables(Reference), l.missingTables(Distributed)
	missing = slices.Concat(references, distributed)
	var keys []foreignKey
	for _, k := range l.keys {
		if slices.Contains(missing, k.Table) || slices.Contains(missing, k.Referenced) {
			keys = append(keys, k)
		}
	}
	statements = []string{"SET LOCAL " + sequentialDDL, "SET LOCAL lock_timeout = 0", "SET LOCAL statement_timeout = 0"}
	// Drop the foreign keys for now, because Citus refuses tables to which a local table refers.
	for _, k := range keys {
		statements = append(statements, "ALTER TABLE "+k.Table+" DROP CONSTRAINT "+k.Name)
	}
	for _, name := range references {
		statements = append(statements, "SELECT create_reference_table('"+name+"')")
	}
	group := "none" // the first table begins a new colocation group; Citus keeps all rows of one organisation in the tables of this group on one node
	for name, t := range l.tables {
		if t.Type == string(Distributed) && (group == "none" || name < group) {
			group = name
		}
	}
	for _, name := range distributed {
		statements = append(statements, "SELECT create_distributed_table('"+name+"', 'organisation_id', colocate_with => '"+group+"')")
		if group == "none" {
			group = name
		}
	}
	for _, k := range keys {
		statements = append(statements, "ALTER TABLE "+k.Table+" ADD CONSTRAINT "+k.Name+" "+k.Definition)
	}
	return missing, statements
}

// missingTables returns the names of the tables of a class that are not distributed yet. Each table comes after the tables to which its foreign
// keys refer.
func (l layout) missingTables(class TableClass) (names []string) {
	var add func(name string)
	add = func(name string) {
		if _, done := l.tables[name]; done || Tables[name].Class != class || slices.Contains(names, name) {
			return
		}
		for _, k := range l.keys {
			if k.Table == name && k.Referenced != name {
				add(k.Referenced)
			}
		}
		names = append(names, name)
	}
	for _, name := range slices.Sorted(maps.Keys(Tables)) {
		add(name)
	}
	return names
}
