package server

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/xuri/excelize/v2"

	"github.com/reeltally/reeltally/server/formula"
)

// rowWriter writes the rows of a table. A cell is nil, a string, a json.Number, a bool, a list or an object. The first row has the names of the
// columns.
type rowWriter interface {
	writeRow(cells []any) error
	finish() error
}

// convertRows reads a JSON list, either an array or an object with the member data, and writes it as a table. The columns are the required
// members of an entry, and those optional members that the first entry has, in the order of their names.
func convertRows(to rowWriter, from io.Reader, row *openapi3.Schema) error {
	decoder := json.NewDecoder(from)
	decoder.UseNumber()
	if err := toFirstEntry(decoder); err != nil {
		return err
	}
	var columns []string
	for decoder.More() {
		var entry map[string]any
		if err := decoder.Decode(&entry); err != nil {
			return err
		}
		if columns == nil {
			columns = columnsOf(row, entry)
			if err := writeNames(to, columns); err != nil {
				return err
			}
		}
		cells := make([]any, len(columns))
		for i, name := range columns {
			cells[i] = entry[name]
		}
		if err := to.writeRow(cells); err != nil {
			return err
		}
	}
	if columns == nil {
		if err := writeNames(to, columnsOf(row, nil)); err != nil {
			return err
		}
	}
	if err := to.finish(); err != nil {
		return err
	}
	return readRest(decoder, from)
}

// writeNames writes the row with the names of the columns.
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
	decimalComma bool // whether a fraction is written as 1,5 instead of 1.5
}

// convertToCSV writes a JSON list as CSV with commas.
func convertToCSV(to io.Writer, from io.Reader, row *openapi3.Schema) error {
	return convertRows(csvRows{Writer: csv.NewWriter(to)}, from, row)
}

// byteOrderMark at the beginning of a file tells spreadsheets that the file is UTF-8.
const byteOrderMark = "\ufeff"

// convertToSemicolonCSV writes a JSON list as CSV for spreadsheets of countries with a decimal comma: cells are separated by semicolons, and
// fractions have a comma.
func convertToSemicolonCSV(to io.Writer, from io.Reader, row *openapi3.Schema) error {
	if _, err := io.WriteString(to, byteOrderMark); err != nil {
		return err
	}
	out := csv.NewWriter(to)
	out.Comma = ';'
	return convertRows(csvRows{out, true}, from, row)
}

// writeRow writes a row. An unknown value is an empty cell, and lists and objects are JSON.
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
		default:
			texts[i] = encoded(cell)
		}
	}
	return w.Write(texts)
}

func (w csvRows) finish() error {
	w.Flush()
	return w.Error()
}

// sheetName is the name of the only sheet of a workbook.
const sheetName = "Sheet1"

// xlsxRows writes rows into the sheet of a workbook. It sends the workbook at the end, because a workbook is a ZIP archive.
type xlsxRows struct {
	to    io.Writer
	file  *excelize.File
	sheet *excelize.StreamWriter
	rows  int
}

// convertToXLSX writes a JSON list as a workbook with one sheet.
func convertToXLSX(to io.Writer, from io.Reader, row *openapi3.Schema) error {
	file := excelize.NewFile()
	defer func() { _ = file.Close() }() // removes the temporary file of a large sheet
	sheet, err := file.NewStreamWriter(sheetName)
	if err != nil {
		return err
	}
	return convertRows(&xlsxRows{to: to, file: file, sheet: sheet}, from, row)
}

// writeRow writes a row. Texts are cells of the type text, which a spreadsheet never runs as a formula. Times are texts as in the JSON, and
// lists and objects are JSON.
func (w *xlsxRows) writeRow(cells []any) error {
	values := make([]any, len(cells))
	for i, cell := range cells {
		switch cell := cell.(type) {
		case nil, string, bool:
			values[i] = cell
		case json.Number:
			if whole, err := cell.Int64(); err == nil {
				values[i] = whole
			} else if fraction, err := cell.Float64(); err == nil {
				values[i] = fraction
			} else {
				return err
			}
		default:
			values[i] = encoded(cell)
		}
	}
	w.rows++
	return w.sheet.SetRow("A"+strconv.Itoa(w.rows), values)
}

func (w *xlsxRows) finish() error {
	if err := w.sheet.Flush(); err != nil {
		return err
	}
	return w.file.Write(w.to)
}

// convertToNDJSON reads a JSON list, either an array or an object with the member data, and writes each entry on a line of its own.
func convertToNDJSON(to io.Writer, from io.Reader, _ *openapi3.Schema) error {
	decoder := json.NewDecoder(from)
	out := bufio.NewWriter(to)
	if err := toFirstEntry(decoder); err != nil {
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
	return readRest(decoder, from)
}

// readRest reads the members after the list, such as the pagination. The operation would otherwise wait until somebody reads them.
func readRest(decoder *json.Decoder, from io.Reader) error {
	_, err := io.Copy(io.Discard, io.MultiReader(decoder.Buffered(), from))
	return err
}

// toFirstEntry reads the JSON up to the beginning of the list's first entry.
func toFirstEntry(decoder *json.Decoder) error {
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
			if token, err = decoder.Token(); err != nil || token != json.Delim('[') {
				return fmt.Errorf("the member data is no list: %w", err)
			}
			return nil
		}
	}
}

// columnsOf returns the columns of a table. first is its first entry, or nil if there is none.
func columnsOf(row *openapi3.Schema, first map[string]any) []string {
	var columns []string
	for name := range row.Properties {
		if _, has := first[name]; has || slices.Contains(row.Required, name) {
			columns = append(columns, name)
		}
	}
	slices.Sort(columns)
	return columns
}

// encoded returns a value that was decoded from JSON as JSON.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "" // values that were decoded from JSON can be encoded
	}
	return string(text)
}
