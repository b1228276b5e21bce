package server

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/reeltally/reeltally/server/formula"
)

// jsonText is the text of a cell that contains a JSON array or a JSON object.
type jsonText string

// rowWriter writes the rows of a table. The first row has the names of the columns.
type rowWriter interface {
	// writeRow writes a row. A cell is nil, a string, a json.Number, a bool or a jsonText.
	writeRow(cells []any) error
	// finish must be called after the last row.
	finish() error
}

// convertRows reads a JSON list and writes it as a table. The list is an array or the member "data" of
// an object.
func convertRows(to rowWriter, from io.Reader, row *openapi3.Schema) error {
	decoder := json.NewDecoder(from)
	if err := skipToFirstEntry(decoder); err != nil {
		return err
	}
	var columns []string
	for decoder.More() {
		var entry map[string]json.RawMessage // members stay encoded, because decoding nested arrays and objects takes much memory
		if err := decoder.Decode(&entry); err != nil {
			return err
		}
		if columns == nil {
			columns = columnNames(row, entry)
			if err := writeNames(to, columns); err != nil {
				return err
			}
		}
		cells := make([]any, len(columns))
		for i, name := range columns {
			var err error
			if cells[i], err = toCell(entry[name]); err != nil {
				return err
			}
			if text, ok := cells[i].(string); ok && row.Properties[name].Value.Pattern == decimalPattern {
				// A spreadsheet with decimal commas would read the text "12.5" as the 12th of May.
				cells[i] = json.Number(text)
			}
		}
		if err := to.writeRow(cells); err != nil {
			return err
		}
	}
	if columns == nil {
		if err := writeNames(to, columnNames(row, nil)); err != nil {
			return err
		}
	}
	if err := to.finish(); err != nil {
		return err
	}
	return discardRemainingJSON(decoder, from)
}

// decimalPattern is the pattern in the schema of a member whose value is a number in a string.
const decimalPattern = `^\d+(\.\d+)?$`

// toCell converts the JSON value of a member to a cell. The cell is nil if the member is null or absent.
func toCell(value json.RawMessage) (any, error) {
	if len(value) == 0 {
		return nil, nil //nolint:nilnil // nil is the cell of an absent member
	}
	switch value[0] {
	case 'n':
		return nil, nil //nolint:nilnil // nil is the cell of a member that is null
	case 't', 'f':
		return value[0] == 't', nil
	case '"':
		var text string
		err := json.Unmarshal(value, &text)
		return text, err
	case '[', '{':
		var escaped bytes.Buffer
		json.HTMLEscape(&escaped, value)
		return jsonText(escaped.String()), nil
	}
	return json.Number(value), nil
}

// writeNames writes the heading: a row with the names of the columns.
func writeNames(to rowWriter, columns []string) error {
	cells := make([]any, len(columns))
	for i, name := range columns {
		cells[i] = name
	}
	return to.writeRow(cells)
}

// csvRows writes rows as CSV.
type csvRows struct {
	*csv.Writer
	decimalComma bool // true if numbers are written with a decimal comma, for example 1,5 instead of 1.5
}

// convertToCSV writes a JSON list as CSV with commas.
func convertToCSV(to io.Writer, from io.Reader, row *openapi3.Schema) error {
	return convertRows(csvRows{Writer: csv.NewWriter(to)}, from, row)
}

// byteOrderMark is written at the beginning of a file. It tells spreadsheet programs that the file is encoded in UTF-8.
const byteOrderMark = "\ufeff"

// convertToSemicolonCSV writes a JSON list as CSV for spreadsheets in countries with a decimal comma. Cells are separated by semicolons,
// and numbers have a decimal comma.
func convertToSemicolonCSV(to io.Writer, from io.Reader, row *openapi3.Schema) error {
	if _, err := io.WriteString(to, byteOrderMark); err != nil {
		return err
	}
	out := csv.NewWriter(to)
	out.Comma = ';'
	return convertRows(csvRows{out, true}, from, row)
}

// writeRow writes a row. A value of nil becomes an empty cell. JSON arrays and objects are written as JSON.
func (w csvRows) writeRow(cells []any) error {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		switch cell := cell.(type) {
		case nil:
		case string:
			texts[i] = formula.Escape(cell)
		case json.Number:
			if texts[i] = cell.String(); w.decimalComma {
				texts[i] = strings.Replace(texts[i], ".", ",", 1)
			}
		case bool:
			texts[i] = strconv.FormatBool(cell)
		case jsonText:
			// Escape the JSON text, because a spreadsheet can split the text at a semicolon. The escaped text is still JSON: Escape adds an
			// apostrophe only after a semicolon, and JSON has semicolons only in strings.
			texts[i] = formula.Escape(string(cell))
		}
	}
	return w.Write(texts)
}

func (w csvRows) finish() error {
	w.Flush()
	return w.Error()
}

// convertToNDJSON reads a JSON list and writes each entry on a separate line. The list is an array, or the array in the member "data" of an
// object.
func convertToNDJSON(to io.Writer, from io.Reader, _ *openapi3.Schema) error {
	decoder := json.NewDecoder(from)
	out := bufio.NewWriter(to)
	if err := skipToFirstEntry(decoder); err != nil {
		return err
	}
	for decoder.More() {
		var entry json.RawMessage
		if err := decoder.Decode(&entry); err != nil {
			return err
		}
		if _, err := out.Write(append(entry, '\n')); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return discardRemainingJSON(decoder, from)
}

// discardRemainingJSON reads and discards the JSON after the list. Otherwise, the operation would wait
// forever to write this JSON to the pipe.
func discardRemainingJSON(decoder *json.Decoder, from io.Reader) error {
	_, err := io.Copy(io.Discard, io.MultiReader(decoder.Buffered(), from))
	return err
}

// skipToFirstEntry reads the JSON up to the beginning of the list's first entry.
func skipToFirstEntry(decoder *json.Decoder) error {
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return fmt.Errorf("the response has no list: %w", err)
		}
		switch token {
		case json.Delim('['):
			if depth == 0 {
				return nil
			}
			depth++
		case json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		case "data":
			if depth != 1 {
				continue
			}
			if token, err = decoder.Token(); err != nil {
				return fmt.Errorf("the response has no list: %w", err)
			}
			if token != json.Delim('[') {
				return fmt.Errorf("the member 'data' of the response begins with %v instead of [", token)
			}
			return nil
		}
	}
}

// columnNames returns the sorted column names of a table. A member has a column if the schema requires
// the member or firstEntry contains it.
func columnNames(entrySchema *openapi3.Schema, firstEntry map[string]json.RawMessage) []string {
	hasColumn := func(name string) bool {
		_, has := firstEntry[name]
		return has || slices.Contains(entrySchema.Required, name)
	}
	var columns []string
	for name, member := range entrySchema.Properties {
		// A member also has a column if hasColumn returns true for the member in x-column-with.
		other, _ := member.Value.Extensions["x-column-with"].(string)
		if hasColumn(name) || hasColumn(other) {
			columns = append(columns, name)
		}
	}
	slices.Sort(columns)
	return columns
}
