package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/reeltally/reeltally/store/internal/db"
)

// DamagedError reports that a file is not a complete backup. The file may be truncated or changed, or it may be another kind of file.
type DamagedError struct{ Reason string }

func (e *DamagedError) Error() string { return "the backup is damaged or incomplete: " + e.Reason }

// newDamagedError returns a *DamagedError with a formatted reason.
func newDamagedError(format string, args ...any) error {
	return &DamagedError{fmt.Sprintf(format, args...)}
}

// Check reads a whole backup. It returns a *DamagedError if the number of rows or the checksum is
// wrong. The function `progress` gets the number of rows read so far and the total.
func Check(from io.Reader, progress func(done, of int64)) (Summary, error) {
	r, err := newReader(from, progress)
	if err != nil {
		return Summary{}, err
	}
	defer r.close()
	return r.readTables(func(tableStart) error { return nil }, func([]any) error { return nil }, func(string, int64) error { return nil })
}

type reader struct {
	header   Header
	lines    *bufio.Reader
	close    func()
	sum      hash.Hash
	done     int64                // number of rows read so far
	progress func(done, of int64) // gets the number of rows read so far and the total number of rows
}

// newReader returns a reader for a backup. It reads and checks the header of the backup.
func newReader(input io.Reader, progress func(done, of int64)) (*reader, error) {
	text, err := zstd.NewReader(input)
	if err != nil {
		return nil, err
	}
	r := &reader{lines: bufio.NewReaderSize(text, 64<<10), close: text.Close, sum: sha256.New(), progress: progress}
	line, err := r.nextLine()
	if err == nil {
		err = r.readHeader(line)
	}
	if err != nil {
		text.Close()
		return nil, err
	}
	return r, nil
}

// readHeader checks the first line and stores it.
func (r *reader) readHeader(line []byte) error {
	if err := json.Unmarshal(line, &r.header); err != nil || r.header.Format != formatName {
		return newDamagedError("the first line is not the header of a backup")
	}
	if r.header.Version != formatVersion {
		return fmt.Errorf("the backup has the format version %d, but this program reads the format version %d: use ReelTally %s, which wrote the backup", r.header.Version, formatVersion, r.header.Program)
	}
	return nil
}

// nextLine returns the next line without its line feed.
func (r *reader) nextLine() ([]byte, error) {
	line, err := r.lines.ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, newDamagedError("the file ends after %d of %d rows", r.done, r.header.Rows)
	case errors.Is(err, zstd.ErrMagicMismatch):
		return nil, newDamagedError("the file is not compressed with Zstandard")
	case err != nil:
		return nil, newDamagedError("%v", err)
	}
	return line[:len(line)-1], nil
}

// readTables reads all tables. It calls addRow for each row, startTable before the rows of a table
// and finishTable after them. Finally it verifies the checksum.
func (r *reader) readTables(startTable func(tableStart) error, addRow func(values []any) error, finishTable func(table string, rows int64) error) (Summary, error) {
	summary := Summary{Header: r.header}
	for {
		line, err := r.nextLine()
		if err != nil {
			return Summary{}, err
		}
		var table tableStart
		if json.Unmarshal(line, &table) != nil || table.Table == "" {
			return summary, r.checkLastLine(line, &summary)
		}
		r.addToChecksum(line)
		if err := startTable(table); err != nil {
			return Summary{}, err
		}
		if err := r.eachRow(table, addRow, finishTable); err != nil {
			return Summary{}, err
		}
		summary.Tables++
	}
}

// addToChecksum adds a line and its line feed to the checksum.
func (r *reader) addToChecksum(line []byte) {
	r.sum.Write(line)
	r.sum.Write([]byte{'\n'})
}

// checkLastLine checks the last line of the backup: it compares the checksum and the number of rows. It also stores the checksum in summary.
func (r *reader) checkLastLine(line []byte, summary *Summary) error {
	var last endLine
	if json.Unmarshal(line, &last) != nil || last.End != endOfBackup {
		return newDamagedError("the line after %d rows is neither the beginning of a table nor the end of the backup", r.done)
	}
	summary.SHA256 = hex.EncodeToString(r.sum.Sum(nil))
	if last.SHA256 != summary.SHA256 {
		return newDamagedError("the checksum of the content is %s, but must be %s", summary.SHA256, last.SHA256)
	}
	if r.done != last.Rows || r.done != r.header.Rows {
		return newDamagedError("the file has %d rows, but its first line says %d and its last line says %d", r.done, r.header.Rows, last.Rows)
	}
	if _, err := r.lines.ReadByte(); !errors.Is(err, io.EOF) {
		return newDamagedError("the file continues after the end of the backup")
	}
	r.progress(r.done, r.header.Rows)
	return nil
}

// eachRow reads the rows of a table up to the line that ends the table.
func (r *reader) eachRow(table tableStart, row func(values []any) error, finish func(table string, rows int64) error) error {
	for rows := int64(0); ; rows++ {
		line, err := r.nextLine()
		if err != nil {
			return err
		}
		r.addToChecksum(line)
		if !bytes.HasPrefix(line, []byte{'['}) {
			var last endLine
			if json.Unmarshal(line, &last) != nil || last.End != table.Table || last.Rows != rows {
				return newDamagedError("the line after the rows of table %s must end the table and say that it has %d rows", table.Table, rows)
			}
			return finish(table.Table, rows)
		}
		values, err := parseRow(table.Columns, line)
		if err != nil {
			return newDamagedError("row %d of table %s: %v", rows+1, table.Table, err)
		}
		if err := row(values); err != nil {
			return err
		}
		if r.done++; r.done%reportEvery == 0 {
			r.progress(r.done, r.header.Rows)
		}
	}
}

// parseRow parses a line that contains a row. It returns the values of the row, in the order of columns. NULL becomes nil.
func parseRow(columns []db.StoredColumn, line []byte) ([]any, error) {
	var values []any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return nil, err
	}
	if len(values) != len(columns) {
		return nil, fmt.Errorf("the row has %d values, but the table has %d columns", len(values), len(columns))
	}
	for i, c := range columns {
		if values[i] == nil {
			continue // NULL
		}
		value, err := parseValue(c.Kind, values[i])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		values[i] = value
	}
	return values, nil
}

// parseValue converts a decoded JSON value, which must not be null, to the Go type for a column of the given kind.
func parseValue(kind db.Kind, value any) (any, error) {
	switch v := value.(type) {
	case bool:
		if kind == db.BoolKind {
			return v, nil
		}
	case json.Number:
		switch kind {
		case db.IntegerKind:
			return strconv.ParseInt(v.String(), 10, 64)
		case db.FloatKind:
			return strconv.ParseFloat(v.String(), 64)
		}
	case string:
		switch kind {
		case db.TextKind:
			return v, nil
		case db.BytesKind:
			return base64.StdEncoding.DecodeString(v)
		}
	}
	return nil, fmt.Errorf("the value %v is not of the kind %s", value, kind)
}
