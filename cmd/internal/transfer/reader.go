package transfer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxRow bounds a row, so that a quote that is never closed does not read a file of any size into memory.
const maxRow = 1 << 20

// wholeFileError is a fault of the file rather than of one row: its columns, or where the next row begins, cannot be told.
type wholeFileError struct{ err error }

func (e wholeFileError) Error() string { return e.err.Error() }
func (e wholeFileError) Unwrap() error { return e.err }

func broken(format string, args ...any) error { return wholeFileError{fmt.Errorf(format, args...)} }

// limited stops a reader that has taken in too much since its last row.
type limited struct {
	r     io.Reader
	since int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.since > maxRow {
		return 0, errRowTooLong
	}
	n, err := l.r.Read(p)
	l.since += n
	return n, err
}

var errRowTooLong = fmt.Errorf("a row is longer than %d bytes: is a quote or a bracket never closed?", maxRow)

// rowReader gives the rows of a file, one after the other; io.EOF after the last. An error that is no wholeFileError is about
// one row, and the next can be read.
type rowReader interface {
	next() (line int, v values, err error)
}

// newRowReader looks at the beginning of a file to tell what it is: JSON begins with a bracket, all else is CSV.
func newRowReader(r io.Reader, c Columns) (rowReader, error) {
	l := &limited{r: r}
	in := bufio.NewReader(l)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return nil, broken("the file is a workbook, of Excel or the like, or an archive: save the sheet as CSV, in UTF-8")
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return nil, broken("the file is compressed: unpack it, for example by gzip -dc FILE | reeltally import --org ORG -")
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) || bytes.IndexByte(head, 0) >= 0:
		return nil, broken("the file is UTF-16 or no text at all: save it as UTF-8")
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = in.Discard(3)
	}
	start, err := in.Peek(1)
	for err == nil && bytes.ContainsAny(start, " \t\r\n") {
		_, _ = in.Discard(1)
		start, err = in.Peek(1)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, broken("the file is empty")
	case err != nil:
		return nil, err
	case start[0] == '{':
		return &jsonReader{in: in, limit: l, columns: c, unmet: c.unmet(), lines: true}, nil
	case start[0] == '[':
		_, _ = in.Discard(1)
		return &jsonReader{in: in, limit: l, columns: c, unmet: c.unmet()}, nil
	}
	return newCSVReader(in, l, c)
}

type csvReader struct {
	csv    *csv.Reader
	limit  *limited
	fields []field
}

func newCSVReader(in *bufio.Reader, l *limited, c Columns) (*csvReader, error) {
	r := &csvReader{csv: csv.NewReader(in), limit: l}
	r.csv.ReuseRecord = true
	r.csv.Comma = separator(in)
	names, err := r.csv.Read()
	if err != nil {
		return nil, r.broken(err)
	}
	for _, name := range names {
		if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return nil, broken("the first line is not UTF-8: save the file as UTF-8")
		}
	}
	if r.fields, err = c.header(names); err != nil {
		return nil, wholeFileError{err}
	}
	return r, nil
}

// separator tells from the first line how columns are separated: some countries' spreadsheets do not use the comma.
func separator(in *bufio.Reader) rune {
	head, _ := in.Peek(in.Size())
	line, _, _ := bytes.Cut(head, []byte("\n"))
	for _, sign := range []byte(",;\t") {
		if bytes.IndexByte(line, sign) >= 0 {
			return rune(sign)
		}
	}
	return ','
}

func (r *csvReader) broken(err error) error {
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		if errors.Is(wrong.Err, csv.ErrQuote) || errors.Is(wrong.Err, csv.ErrBareQuote) {
			return broken("line %d, column %d: wrong quoting: a cell with a quote stands in quotes, and the quote in it is doubled", wrong.Line, wrong.Column)
		}
		return wholeFileError{wrong}
	}
	return wholeFileError{err}
}

func (r *csvReader) next() (line int, v values, err error) {
	r.limit.since = 0
	cells, err := r.csv.Read()
	if err != nil && !errors.Is(err, csv.ErrFieldCount) {
		if errors.Is(err, io.EOF) {
			return 0, v, io.EOF
		}
		return 0, v, r.broken(err)
	}
	line, _ = r.csv.FieldPos(0)
	if err != nil {
		return line, v, fmt.Errorf("it has %d cells; the first line has %d", len(cells), len(r.fields))
	}
	for i, f := range r.fields {
		if f < fieldCount {
			v[f] = cells[i]
		}
	}
	v[fieldTitle], v[fieldUsername] = unguarded(v[fieldTitle]), unguarded(v[fieldUsername])
	return line, v, nil
}

type jsonReader struct {
	in      *bufio.Reader
	limit   *limited
	columns Columns
	unmet   unmet
	lines   bool // one object after the other; otherwise a list
	line    int
	begun   bool
}

// next reads one object, by its brackets: encoding/json would not say where a broken one ends.
func (r *jsonReader) next() (line int, v values, err error) {
	r.limit.since = 0
	if r.line == 0 {
		r.line = 1
	}
	begin, err := r.toObject()
	if err != nil {
		return r.line, v, err
	}
	if !begin {
		if err := r.unmet.err(); err != nil && r.begun { // only now all names are known
			return r.line, v, wholeFileError{err}
		}
		return 0, v, io.EOF
	}
	line = r.line
	text, err := r.object()
	if err != nil {
		return line, v, err
	}
	v, err = r.columns.object(text, &r.unmet)
	return line, v, err
}

// toObject goes to where the next object begins; false at the end.
func (r *jsonReader) toObject() (bool, error) {
	comma := false
	for {
		b, err := r.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && r.lines && !comma:
			return false, nil
		case errors.Is(err, io.EOF):
			return false, broken("line %d: the file ends within its list", r.line)
		case err != nil:
			return false, wholeFileError{err}
		case b == '\n':
			r.line++
		case b == ' ', b == '\t', b == '\r':
		case b == ',' && !r.lines && r.begun && !comma:
			comma = true
		case b == ']' && !r.lines && !comma:
			return false, r.end()
		case b == '{' && (r.lines || comma || !r.begun):
			r.begun = true
			return true, r.in.UnreadByte()
		default:
			return false, broken("line %d: %q where an object was expected", r.line, string(rune(b)))
		}
	}
}

func (r *jsonReader) end() error {
	for {
		b, err := r.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return wholeFileError{err}
		case b != ' ' && b != '\t' && b != '\r' && b != '\n':
			return broken("line %d: %q after the end of the list", r.line, string(rune(b)))
		}
	}
}

// object reads to the bracket that closes the object.
func (r *jsonReader) object() ([]byte, error) {
	var text []byte
	depth, quoted, escaped := 0, false, false
	for {
		b, err := r.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil, broken("line %d: the file ends within an object", r.line)
		}
		if err != nil {
			return nil, wholeFileError{err}
		}
		if text = append(text, b); len(text) > maxRow {
			return nil, wholeFileError{errRowTooLong}
		}
		switch {
		case b == '\n':
			r.line++
		case escaped:
			escaped = false
		case quoted && b == '\\':
			escaped = true
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth--; depth == 0 {
				return text, nil
			}
		}
	}
}

// object reads the members of a JSON object.
func (c Columns) object(text []byte, unmet *unmet) (v values, err error) {
	if !utf8.Valid(text) {
		return v, errors.New("it is not UTF-8: save the file as UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return v, err
	}
	of := map[field]string{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return v, notJSON(err)
		}
		var cell any
		if err := d.Decode(&cell); err != nil {
			return v, notJSON(err)
		}
		unmet.meet(name.(string))          //nolint:forcetypeassert // members have names, or the decoder refuses them
		f, err := c.meaning(name.(string)) //nolint:forcetypeassert // likewise
		if err != nil {
			return v, wholeFileError{err} // as a column of a CSV file would be
		}
		if f == fieldUnused {
			continue
		}
		if other, ok := of[f]; ok {
			return v, twice(f, other, name.(string))
		}
		of[f] = name.(string)
		switch cell := cell.(type) {
		case nil:
		case string:
			v[f] = cell
		case json.Number:
			v[f] = cell.String()
		case bool:
			v[f] = fmt.Sprint(cell)
		default:
			return v, fmt.Errorf("%s is a list or an object; it must be a text, a number or null", f)
		}
		if strings.ContainsRune(v[f], utf8.RuneError) && !bytes.Contains(text, []byte("\xef\xbf\xbd")) && !bytes.Contains(bytes.ToLower(text), []byte(`\ufffd`)) {
			return v, fmt.Errorf("%s has half of a character (a lone surrogate)", f)
		}
	}
	if _, err := d.Token(); err != nil {
		return v, notJSON(err)
	}
	return v, nil
}

func notJSON(err error) error { return fmt.Errorf("it is not JSON: %w", err) }
