package db

import (
	"context"
	"time"
)

// Engine is the database as a program.
type Engine struct {
	Name    string // sqlite or postgres
	Version string
	Now     *time.Time // its clock; nil where it has none of its own
}

// Engine asks the database what it is. It names no table and goes beside the rules for statements, which allow for no clock of
// the database's.
func (d *DB) Engine(ctx context.Context) (Engine, error) {
	e := Engine{Name: d.dialect.name()}
	err := d.pools[0].QueryRowContext(ctx, d.dialect.aboutQuery()).Scan(&e.Version, &e.Now)
	return e, Translate(err)
}
