package server

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/xuri/excelize/v2"
)

const (
	sheetPath = "xl/worksheets/sheet1.xml" // path of the only sheet in the archive
	sheetHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`
	sheetEnd = `</sheetData></worksheet>`
)

// workbookFrame writes the parts of a workbook except its sheet into an archive, and leaves the archive open.
type workbookFrame struct{ *zip.Writer }

// Create returns the writer of a part.
func (f workbookFrame) Create(name string) (io.Writer, error) {
	if name == sheetPath {
		return io.Discard, nil
	}
	return f.Writer.Create(name)
}

// Close does nothing.
func (workbookFrame) Close() error { return nil }

// xlsxRows writes rows into the sheet of a workbook. The rows are written at once, so the memory does not depend on their number: the writer of
// excelize keeps up to 16 MiB of rows and the whole archive in memory.
type xlsxRows struct {
	archive *zip.Writer
	sheet   *bufio.Writer
	rows    int
	columns []string // names of the columns of the sheet, such as A
	text    []byte   // text of the last cell; reused
}

// convertToXLSX writes a JSON list as a workbook with one sheet.
func convertToXLSX(to io.Writer, from io.Reader, row *openapi3.Schema) error {
	archive := zip.NewWriter(to)
	frame := excelize.NewFile()
	frame.SetZipWriter(func(io.Writer) excelize.ZipWriter { return workbookFrame{archive} })
	if err := frame.Write(io.Discard); err != nil {
		return err
	}
	sheet, err := archive.Create(sheetPath)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(sheet, sheetHead); err != nil {
		return err
	}
	return convertRows(&xlsxRows{archive: archive, sheet: bufio.NewWriter(sheet)}, from, row)
}

// writeRow writes a row. Texts are cells of the type text, which a spreadsheet never runs as a formula. Times are texts as in the JSON, and
// lists and objects are JSON.
func (w *xlsxRows) writeRow(cells []any) error {
	for len(w.columns) < len(cells) {
		name, err := excelize.ColumnNumberToName(len(w.columns) + 1)
		if err != nil {
			return err
		}
		w.columns = append(w.columns, name)
	}
	w.rows++
	row := strconv.Itoa(w.rows)
	w.write(`<row r="`, row, `">`)
	for i, cell := range cells {
		at := w.columns[i] + row
		switch cell := cell.(type) {
		case string:
			w.writeText(at, cell)
		case jsonText:
			w.writeText(at, string(cell))
		case json.Number:
			w.write(`<c r="`, at, `"><v>`, cell.String(), `</v></c>`)
		case bool:
			value := "0"
			if cell {
				value = "1"
			}
			w.write(`<c r="`, at, `" t="b"><v>`, value, `</v></c>`)
		}
	}
	_, err := w.sheet.WriteString(`</row>`) // returns the first error of all writes
	return err
}

// write writes parts of the sheet. The buffer keeps an error and returns it from the next write.
func (w *xlsxRows) write(parts ...string) {
	for _, part := range parts {
		_, _ = w.sheet.WriteString(part)
	}
}

// hexEscape matches text that spreadsheets read as an escaped character, such as _x0041_.
var hexEscape = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// writeText writes a cell with a text.
func (w *xlsxRows) writeText(at, text string) {
	text = cutText(text)
	if strings.Contains(text, "_x") {
		text = hexEscape.ReplaceAllString(text, "_x005F$0")
	}
	w.write(`<c r="`, at, `" t="inlineStr"><is><t xml:space="preserve">`)
	w.text = append(w.text[:0], text...)
	_ = xml.EscapeText(w.sheet, w.text) // the buffer keeps the error
	w.write(`</t></is></c>`)
}

// maxCellText is the largest length of a text in a cell, in UTF-16 units.
const maxCellText = 32_767

// cutText returns the beginning of a text that fits into a cell.
func cutText(text string) string {
	if len(text) <= maxCellText {
		return text
	}
	units := 0
	for i, r := range text {
		if units += utf16.RuneLen(r); units > maxCellText {
			return text[:i]
		}
	}
	return text
}

// finish ends the sheet and the archive.
func (w *xlsxRows) finish() error {
	w.write(sheetEnd)
	if err := w.sheet.Flush(); err != nil {
		return err
	}
	return w.archive.Close()
}
