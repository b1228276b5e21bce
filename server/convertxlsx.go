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

// workbookFrame is the archive into which the library excelize writes an empty workbook. workbookFrame discards the sheet of excelize,
// because xlsxRows writes its own sheet into the archive later.
type workbookFrame struct{ *zip.Writer }

// Create returns the writer for the file with this name in the archive. If name is sheetPath, it returns a writer that discards everything.
func (f workbookFrame) Create(name string) (io.Writer, error) {
	if name == sheetPath {
		return io.Discard, nil
	}
	return f.Writer.Create(name)
}

// Close does nothing, because xlsxRows.finish closes the archive after the last row.
func (workbookFrame) Close() error { return nil }

// xlsxRows writes rows into the sheet of a workbook. Unlike the library excelize, it keeps neither the
// rows nor the archive in memory.
type xlsxRows struct {
	archive *zip.Writer
	sheet   *bufio.Writer
	rows    int
	columns []string // letters of the columns in cell references, such as A
	text    []byte   // buffer for the text of one cell, reused for the next cell
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

// writeRow writes a row. Texts, JSON arrays and JSON objects become text cells, which a spreadsheet
// program never runs as formulas.
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
	w.writeXML(`<row r="`, row, `">`)
	for i, cell := range cells {
		cellRef := w.columns[i] + row
		switch cell := cell.(type) {
		case string:
			w.writeText(cellRef, cell)
		case jsonText:
			w.writeText(cellRef, string(cell))
		case json.Number:
			w.writeXML(`<c r="`, cellRef, `"><v>`, cell.String(), `</v></c>`)
		case bool:
			value := "0"
			if cell {
				value = "1"
			}
			w.writeXML(`<c r="`, cellRef, `" t="b"><v>`, value, `</v></c>`)
		}
	}
	_, err := w.sheet.WriteString(`</row>`) // WriteString also returns the error of an earlier write
	return err
}

// writeXML writes parts of the sheet. It ignores an error, because bufio.Writer returns the error again from the next write.
func (w *xlsxRows) writeXML(parts ...string) {
	for _, part := range parts {
		_, _ = w.sheet.WriteString(part)
	}
}

// hexEscapes matches texts that spreadsheet programs would read as escaped characters, such as _x0041_ for A. Two of them can share the
// character _ between them.
var hexEscapes = regexp.MustCompile(`(_x[0-9A-Fa-f]{4})+_`)

// writeText writes a cell that contains text. It cuts the text after maxCellText UTF-16 units. cellRef is the position of the cell, such as
// B2.
func (w *xlsxRows) writeText(cellRef, text string) {
	text = cutText(text)
	if strings.Contains(text, "_x") {
		text = hexEscapes.ReplaceAllStringFunc(text, func(match string) string { return strings.ReplaceAll(match, "_x", "_x005F_x") })
	}
	w.writeXML(`<c r="`, cellRef, `" t="inlineStr"><is><t xml:space="preserve">`)
	w.text = append(w.text[:0], text...)
	_ = xml.EscapeText(w.sheet, w.text) // ignore the error, because the next write to w.sheet returns it again
	w.writeXML(`</t></is></c>`)
}

// maxCellText is the largest length of a text in a cell, in UTF-16 units.
const maxCellText = 32_767

// cutText shortens text to at most maxCellText UTF-16 units, so that it fits into a cell.
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

// finish writes the end of the sheet and closes the archive.
func (w *xlsxRows) finish() error {
	w.writeXML(sheetEnd)
	if err := w.sheet.Flush(); err != nil {
		return err
	}
	return w.archive.Close()
}
