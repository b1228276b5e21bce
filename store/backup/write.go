package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

const (
	// formatName is the value of Header.Format in every backup.
	formatName = "reeltally-backup"
	// formatVersion is the value of Header.Version in the backups that Write writes. Backups with another version cannot be read.
	formatVersion = 1
)

// Header is the first line of a backup.
type Header struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Program string    `json:"program"` // version of the program that wrote the backup
	Engine  string    `json:"engine"`  // engine of the database: "sqlite" or "postgres"
	Schema  int64     `json:"schema"`  // version of the schema
	TakenAt time.Time `json:"taken_at"`
	Rows    int64     `json:"rows"` // number of rows of all tables
	// FirstDay and LastDay are the days of the oldest and of the newest daily point in the backup. They are nil if there are no daily
	// points.
	FirstDay *string `json:"first_day"`
	LastDay  *string `json:"last_day"`
}

// Summary describes a backup that was read or written completely.
type Summary struct {
	Header
	Tables int    // number of tables
	SHA256 string // checksum of the content, in hexadecimal digits: see the comment of the package
}

// tableStart is the line that begins a table.
type tableStart struct {
	Table   string            `json:"table"`
	Columns []db.StoredColumn `json:"columns"`
}

// endLine is the line that ends a table or the backup. SHA256 is set only at the end of the backup.
type endLine struct {
	End    string `json:"end"` // the name of the table, or "backup"
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256,omitempty"`
}

// endOfBackup is the value of "end" in the last line of a backup. In other lines, this value is the name of a table.
const endOfBackup = "backup"

// reportEvery is the number of rows after which the progress is reported.
const reportEvery = 5000

// Write writes a backup of the database to w. All data are from the moment when Write starts to
// read. After an error, the output is not a valid backup.
func Write(ctx context.Context, s *store.Store, programVersion string, w io.Writer, progress func(done, of int64)) (Summary, error) {
	target := &target{Writer: w}
	compressed, err := zstd.NewWriter(target)
	if err != nil {
		return Summary{}, err
	}
	engine, err := s.Engine(ctx)
	if err != nil {
		return Summary{}, err
	}
	b := writer{out: compressed, sum: sha256.New(), progress: progress}
	b.summary.Header = Header{Format: formatName, Version: formatVersion, Program: programVersion, Engine: engine.Name, TakenAt: s.DB().Now().Time()}
	have, want, err := s.Schema(ctx)
	if err != nil {
		return Summary{}, err
	}
	// This program does not know all tables of a newer schema. Without a schema, there is nothing to back up.
	if have == 0 || have > want {
		return Summary{}, &store.SchemaError{Have: have, Want: want}
	}
	b.summary.Schema = have
	if b.tables, err = s.DB().StoredTables(ctx); err != nil {
		return Summary{}, err
	}
	err = s.DB().Snapshot(ctx, func(from *db.Snapshot) error { return b.writeLines(ctx, from) })
	if err = errors.Join(err, compressed.Close()); target.err != nil {
		return b.summary, target.err
	}
	return b.summary, err
}

// target passes the backup to a writer, and keeps the first error of this writer. Write reports this error,
// because the error that Snapshot returns then can look like an error of the database.
type target struct {
	io.Writer
	err error
}

func (t *target) Write(part []byte) (int, error) {
	n, err := t.Writer.Write(part)
	if t.err == nil {
		t.err = err
	}
	return n, err
}

type writer struct {
	out      io.Writer
	sum      hash.Hash
	tables   []db.StoredTable
	summary  Summary
	line     []byte
	done     int64                // number of rows written so far
	progress func(done, of int64) // is called with the number of rows that were written so far, and the number of all rows
}

// writeLines writes the whole backup: the header, the rows of each table, and a last line with the number of rows and the checksum.
func (b *writer) writeLines(ctx context.Context, from *db.Snapshot) error {
	if err := b.writeHeader(ctx, from); err != nil {
		return err
	}
	for _, table := range b.tables {
		if err := b.writeTable(ctx, from, table); err != nil {
			return fmt.Errorf("back up table %s: %w", table.Name, err)
		}
		b.summary.Tables++
	}
	b.progress(b.done, b.summary.Rows)
	b.summary.SHA256 = hex.EncodeToString(b.sum.Sum(nil))
	return writeLine(b.out, endLine{End: endOfBackup, Rows: b.done, SHA256: b.summary.SHA256})
}

// writeHeader completes the header and writes it.
func (b *writer) writeHeader(ctx context.Context, from *db.Snapshot) error {
	first, last, err := from.FirstAndLastDay(ctx)
	if err != nil {
		return err
	}
	if first != nil {
		b.summary.FirstDay, b.summary.LastDay = new(first.String()), new(last.String())
	}
	for _, table := range b.tables {
		rows, err := from.CountRows(ctx, table.Name)
		if err != nil {
			return err
		}
		b.summary.Rows += rows
		if table.Name == settings {
			err := from.EachRow(ctx, table, func(row *db.Values) error {
				if isLeftOut(table, row) {
					b.summary.Rows--
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return writeLine(b.out, b.summary.Header)
}

// isLeftOut returns true for the row with the time of the last backup. A backup does not contain it, so that it does not change the checksum.
func isLeftOut(table db.StoredTable, row *db.Values) bool {
	if table.Name != settings {
		return false
	}
	name := slices.IndexFunc(table.Columns, func(c db.StoredColumn) bool { return c.Name == "name" })
	return row.String(name) == store.LastBackupSetting
}

// writeTable writes the rows of a table. Before them it writes the line that begins the table, and after them the line that ends the table.
func (b *writer) writeTable(ctx context.Context, from *db.Snapshot, table db.StoredTable) error {
	content := io.MultiWriter(b.out, b.sum)
	if err := writeLine(content, tableStart{table.Name, table.Columns}); err != nil {
		return err
	}
	before := b.done
	err := from.EachRow(ctx, table, func(row *db.Values) (err error) {
		if isLeftOut(table, row) {
			return nil
		}
		if b.line, err = appendRow(b.line[:0], table.Columns, row); err != nil {
			return err
		}
		if b.done++; b.done%reportEvery == 0 {
			b.progress(b.done, b.summary.Rows)
		}
		_, err = content.Write(b.line)
		return err
	})
	if err != nil {
		return err
	}
	return writeLine(content, endLine{End: table.Name, Rows: b.done - before})
}

// writeLine writes a value as JSON, followed by a line feed.
func writeLine(w io.Writer, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// appendRow appends a row to line, as a JSON array.
func appendRow(line []byte, columns []db.StoredColumn, row *db.Values) ([]byte, error) {
	line = append(line, '[')
	for i, c := range columns {
		if i > 0 {
			line = append(line, ',')
		}
		switch value := c.Value(row, i).(type) {
		case nil:
			line = append(line, "null"...)
		case int64:
			line = strconv.AppendInt(line, value, 10)
		case float64:
			line = strconv.AppendFloat(line, value, 'g', -1, 64)
		case bool:
			line = strconv.AppendBool(line, value)
		case []byte:
			line = append(line, '"')
			line = base64.StdEncoding.AppendEncode(line, value)
			line = append(line, '"')
		case string:
			var err error
			if line, err = appendText(line, value); err != nil {
				return nil, fmt.Errorf("column %s: %w", c.Name, err)
			}
		}
	}
	return append(line, ']', '\n'), nil
}

// appendText appends a text as a JSON string.
func appendText(line []byte, text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the text %q is not valid UTF-8", text)
	}
	if isPlain(text) {
		line = append(line, '"')
		line = append(line, text...)
		return append(line, '"'), nil
	}
	quoted, err := json.Marshal(text)
	return append(line, quoted...), err
}

// isPlain returns true if json.Marshal would escape no character of text.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || bytes.IndexByte([]byte(`"\<>&`), c) >= 0 {
			return false
		}
	}
	return true
}
