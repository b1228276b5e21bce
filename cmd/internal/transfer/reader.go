package transfer

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reeltally/reeltally/server/formula"
)

// maxRow is the maximum size of a row in bytes. Without this limit, a file with an unclosed quote would be read into memory as one row.
const maxRow = 1 << 20

// fileError reports a problem of the whole file, such as an unknown column. No more rows can be read after it.
type fileError struct{ err error }

func (e fileError) Error() string { return e.err.Error() }
func (e fileError) Unwrap() error { return e.err }

func fileErrorf(format string, args ...any) error { return fileError{fmt.Errorf(format, args...)} }

// rowLimiter is a reader that fails after reading more than maxRow bytes for one row. The readers of CSV and JSON set rowBytes to 0 before
// each row.
type rowLimiter struct {
	r        io.Reader
	rowBytes int // bytes read since the start of the row
}

func (l *rowLimiter) Read(p []byte) (int, error) {
	if l.rowBytes > maxRow {
		return 0, errRowTooLong
	}
	n, err := l.r.Read(p)
	l.rowBytes += n
	return n, err
}

var errRowTooLong = fmt.Errorf("a row is longer than %d bytes: check the file for an unclosed quote or bracket", maxRow)

// rowReader reads the rows of a file. After the last row, next returns io.EOF. Any other error,
// except a fileError, concerns only the current row.
type rowReader interface {
	next() (line int, v rowTexts, err error)
}

// newRowReader returns a reader for JSON if the file begins with [ or {, and for CSV otherwise. It
// refuses files such as Excel workbooks.
func newRowReader(r io.Reader, c Columns) (rowReader, error) {
	l := &rowLimiter{r: r}
	in := bufio.NewReader(l)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return nil, fileErrorf("the file is an Excel workbook or a ZIP archive: save the sheet as CSV in UTF-8")
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return nil, fileErrorf("the file is compressed: decompress it, for example with gzip -dc FILE | reeltally import --org ORG -")
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) || bytes.IndexByte(head, 0) >= 0:
		return nil, fileErrorf("the file is UTF-16 or not text: save it as UTF-8")
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = in.Discard(3)
	}
	line := 1 // number of the current line
	start, err := in.Peek(1)
	for err == nil && bytes.ContainsAny(start, " \t\r\n") {
		line += bytes.Count(start, []byte("\n"))
		_, _ = in.Discard(1)
		start, err = in.Peek(1)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, fileErrorf("the file is empty")
	case err != nil:
		return nil, err
	case start[0] == '{':
		return &jsonReader{in: in, limit: l, columns: c, unused: c.mappingsToFind(), lines: true, line: line}, nil
	case start[0] == '[':
		_, _ = in.Discard(1)
		return &jsonReader{in: in, limit: l, columns: c, unused: c.mappingsToFind(), line: line}, nil
	}
	return newCSVReader(in, l, c, line)
}

type csvReader struct {
	csv    *csv.Reader
	limit  *rowLimiter
	fields []field // field of each column
	lines  int     // number of lines before the first line that csv reads
}

// separatorLine matches the line with which a CSV file for Excel can begin. The line names the separator of the columns.
var separatorLine = regexp.MustCompile(`^"?(?i:sep)=([,;\t])"?\r?\n`)

// newCSVReader reads the column names of a CSV file and returns a reader for the rows. The input
// begins at line firstLine of the file.
func newCSVReader(in *bufio.Reader, l *rowLimiter, c Columns, firstLine int) (*csvReader, error) {
	r := &csvReader{csv: csv.NewReader(in), limit: l, lines: firstLine - 1}
	r.csv.ReuseRecord = true
	head, _ := in.Peek(maxSeparatorLine)
	if named := separatorLine.FindSubmatch(head); named != nil {
		r.csv.Comma = rune(named[1][0])
		r.lines++
		_, _ = in.Discard(len(named[0])) // no error is possible: Peek has read these bytes
	} else {
		r.csv.Comma = columnSeparator(in)
	}
	names, err := r.csv.Read()
	if err != nil {
		return nil, r.csvError(err)
	}
	for _, name := range names {
		if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return nil, fileErrorf("the first line is not UTF-8: save the file as UTF-8")
		}
	}
	if r.fields, err = c.fieldsOfHeader(names); err != nil {
		return nil, fileError{err}
	}
	return r, nil
}

// maxSeparatorLine is the maximum number of bytes of a line that separatorLine matches.
const maxSeparatorLine = 16

// columnSeparator looks in the first line for the separator of the columns: first for a comma, then
// for a semicolon, then for a tab.
func columnSeparator(in *bufio.Reader) rune {
	head, _ := in.Peek(in.Size())
	line, _, _ := bytes.Cut(head, []byte("\n"))
	for _, sign := range []byte(",;\t") {
		if bytes.IndexByte(line, sign) >= 0 {
			return rune(sign)
		}
	}
	return ','
}

// csvError converts an error of the CSV library to a fileError.
func (r *csvReader) csvError(err error) error {
	if parseErr, ok := errors.AsType[*csv.ParseError](err); ok {
		if errors.Is(parseErr.Err, csv.ErrQuote) || errors.Is(parseErr.Err, csv.ErrBareQuote) {
			return fileErrorf("line %d, column %d: wrong quoting: if a cell contains a quotation mark, enclose the cell in quotation marks and write each inner quotation mark twice", parseErr.Line+r.lines, parseErr.Column)
		}
		parseErr.Line, parseErr.StartLine = parseErr.Line+r.lines, parseErr.StartLine+r.lines
		return fileError{parseErr}
	}
	return fileError{err}
}

// next returns the values of the next row and the line number of the row.
func (r *csvReader) next() (line int, v rowTexts, err error) {
	r.limit.rowBytes = 0
	cells, err := r.csv.Read()
	if err != nil && !errors.Is(err, csv.ErrFieldCount) {
		if errors.Is(err, io.EOF) {
			return 0, v, io.EOF
		}
		return 0, v, r.csvError(err)
	}
	line, _ = r.csv.FieldPos(0)
	line += r.lines
	if err != nil {
		return line, v, fmt.Errorf("the row has %d cells, but the first line has %d cells", len(cells), len(r.fields))
	}
	for i, f := range r.fields {
		if f < fieldCount {
			v[f] = cells[i]
		}
	}
	if r.csv.Comma == ';' { // spreadsheets separate cells by semicolons in countries where the comma is the decimal sign
		v[fieldVideoLength] = strings.Replace(v[fieldVideoLength], ",", ".", 1)
	}
	v[fieldTitle], v[fieldUsername] = formula.Unescape(v[fieldTitle]), formula.Unescape(v[fieldUsername])
	return line, v, nil
}

// jsonReader reads JSON Lines or a JSON list of objects.
type jsonReader struct {
	in      *bufio.Reader
	limit   *rowLimiter
	columns Columns
	unused  unusedMappings
	unknown unknownColumns
	lines   bool // true for JSON Lines, false for one JSON list
	line    int  // current line number
	begun   bool // whether the file has at least one object
}

// next returns the values of the next object and the line number of the object.
func (r *jsonReader) next() (line int, v rowTexts, err error) {
	r.limit.rowBytes = 0
	found, err := r.skipToObject()
	if err != nil {
		return r.line, v, err
	}
	if !found {
		// At the end of the file, check that no member name was unknown, and that the file had all columns in
		// Columns.Map.
		if err := cmp.Or(r.unknown.err(), r.unused.err()); err != nil && r.begun {
			return r.line, v, fileError{err}
		}
		return 0, v, io.EOF
	}
	line = r.line
	// encoding/json cannot find the end of an invalid object, so readObject counts brackets.
	text, err := r.readObject()
	if err != nil {
		return line, v, err
	}
	v, err = r.columns.parseObject(text, &r.unused, &r.unknown)
	return line, v, err
}

// skipToObject reads up to the next object. It returns false at the end of the file.
func (r *jsonReader) skipToObject() (bool, error) {
	comma := false
	for {
		b, err := r.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && r.lines && !comma:
			return false, nil
		case errors.Is(err, io.EOF):
			return false, fileErrorf("line %d: the file ends inside the list", r.line)
		case err != nil:
			return false, fileError{err}
		case b == '\n':
			r.line++
		case b == ' ', b == '\t', b == '\r':
		case b == ',' && !r.lines && r.begun && !comma:
			comma = true
		case b == ']' && !r.lines && !comma:
			return false, r.checkEnd()
		case b == '{' && (r.lines || comma || !r.begun):
			r.begun = true
			return true, r.in.UnreadByte()
		default:
			return false, r.unexpectedCharacter("where an object was expected")
		}
	}
}

// checkEnd returns an error if anything but white space follows the end of the list.
func (r *jsonReader) checkEnd() error {
	for {
		b, err := r.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fileError{err}
		case b == '\n':
			r.line++
		case b != ' ' && b != '\t' && b != '\r':
			return r.unexpectedCharacter("after the end of the list")
		}
	}
}

// unexpectedCharacter returns an error about the character whose first byte was read last. The parameter where says where the character is.
func (r *jsonReader) unexpectedCharacter(where string) error {
	if err := r.in.UnreadByte(); err != nil {
		return fileError{err}
	}
	c, _, err := r.in.ReadRune()
	if err != nil {
		return fileError{err}
	}
	return fileErrorf("line %d: the file has %q %s", r.line, string(c), where)
}

// readObject reads a JSON object up to its closing brace and returns its text.
func (r *jsonReader) readObject() ([]byte, error) {
	var text []byte
	depth, quoted, escaped := 0, false, false
	for {
		b, err := r.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil, fileErrorf("line %d: the file ends inside an object", r.line)
		}
		if err != nil {
			return nil, fileError{err}
		}
		if text = append(text, b); len(text) > maxRow {
			return nil, fileError{errRowTooLong}
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

// parseObject parses a JSON object into the values of a row. It passes the names of the object's members to unused.markFound. It also records the
// names that are not known.
func (c Columns) parseObject(text []byte, unused *unusedMappings, unknown *unknownColumns) (v rowTexts, err error) {
	if !utf8.Valid(text) {
		return v, errors.New("the row is not UTF-8: save the file as UTF-8")
	}
	names, cells, err := decodeMembers(text)
	if err != nil {
		return v, fmt.Errorf("the row is not valid JSON: %w", err)
	}
	for _, name := range names {
		unused.markFound(name)
	}
	fields, err := c.fieldsOf(names, unknown)
	if err != nil {
		return v, err
	}
	for n, f := range fields {
		if f == fieldIgnored {
			continue
		}
		switch cell := cells[n].(type) {
		case nil:
		case string:
			v[f] = cell
		case json.Number:
			if v[f] = cell.String(); slices.Contains(numberFields, f) && strings.Contains(v[f], ".") {
				// In JSON, 5.000 means 5. With a decimal comma, it would mean 5000. So a fraction of zeros is
				// removed.
				if v[f] = strings.TrimSuffix(strings.TrimRight(v[f], "0"), "."); strings.Contains(v[f], ".") {
					return v, fmt.Errorf("%s is %s; it must be a whole number", f, truncateText(cell.String()))
				}
			}
		case bool:
			v[f] = fmt.Sprint(cell)
		default:
			return v, fmt.Errorf("%s is a list or an object; it must be a string, a number, true, false or null", f)
		}
		if strings.ContainsRune(v[f], utf8.RuneError) && !bytes.Contains(text, []byte("\xef\xbf\xbd")) && !bytes.Contains(bytes.ToLower(text), []byte(`\ufffd`)) {
			return v, fmt.Errorf("%s has an invalid Unicode escape (a lone surrogate)", f)
		}
	}
	return v, nil
}

// decodeMembers decodes a JSON object into the names and values of its members, in order.
func decodeMembers(text []byte) (names []string, cells []any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		names = append(names, token.(string)) //nolint:forcetypeassert // the decoder returns the names of members as strings
		var cell any
		if err := d.Decode(&cell); err != nil {
			return nil, nil, err
		}
		cells = append(cells, cell)
	}
	_, err = d.Token()
	return names, cells, err
}
