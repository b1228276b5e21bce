package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// xlsx is the media type of workbooks.
const xlsx = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// openWorkbook opens a workbook. It returns the file, the name of its only sheet, and the texts of the sheet's cells.
func openWorkbook(t *testing.T, body []byte) (file *excelize.File, sheet string, rows [][]string) {
	t.Helper()
	file, err := excelize.OpenReader(bytes.NewReader(body), excelize.Options{RawCellValue: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	require.Len(t, file.GetSheetList(), 1)
	sheet = file.GetSheetList()[0]
	rows, err = file.GetRows(sheet)
	require.NoError(t, err)
	return file, sheet, rows
}

// requireCell requires that a cell contains a JSON value. The cell type must also match: number,
// boolean or text.
func requireCell(t *testing.T, file *excelize.File, sheet, cell string, value any) {
	t.Helper()
	got, err := file.GetCellValue(sheet, cell)
	require.NoError(t, err)
	kind, err := file.GetCellType(sheet, cell)
	require.NoError(t, err)
	run, err := file.GetCellFormula(sheet, cell)
	require.NoError(t, err)
	require.Empty(t, run, "a cell must never be a formula")
	switch value := value.(type) {
	case nil:
		require.Empty(t, got)
	case string:
		require.Equal(t, value, got)
		require.Equal(t, excelize.CellTypeInlineString, kind)
	case json.Number:
		if strings.Contains(value.String(), ".") { // a spreadsheet stores only 15 digits of a number with a fraction
			want, err := value.Float64()
			require.NoError(t, err)
			number, err := strconv.ParseFloat(got, 64)
			require.NoError(t, err)
			require.InEpsilon(t, want, number, 1e-13)
		} else {
			require.Equal(t, value.String(), got)
		}
		require.Contains(t, []excelize.CellType{excelize.CellTypeUnset, excelize.CellTypeNumber}, kind)
	case bool:
		require.Equal(t, map[bool]string{false: "0", true: "1"}[value], got)
		require.Equal(t, excelize.CellTypeBool, kind)
	default:
		text, err := json.Marshal(value)
		require.NoError(t, err)
		require.Equal(t, string(text), got)
		require.Equal(t, excelize.CellTypeInlineString, kind)
	}
}

// Requirements in docs/coverage.md: 14.4-01
func TestXLSX_hasTheRowsAndColumnsOfTheJSON(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, lists := newCallerWithDangerousCaptions(t, a)
		for _, target := range lists {
			entries := c.requestJSON(target)
			got := c.send(http.MethodGet, target, nil, "Accept", xlsx).requireStatus(http.StatusOK)
			require.Equal(t, xlsx, got.Header.Get("Content-Type"))
			file, sheet, rows := openWorkbook(t, got.body)
			require.Len(t, rows, 1+len(entries), target)
			require.Equal(t, c.requestCSV(target)[0], rows[0], target)
			for i, entry := range entries {
				for column, name := range rows[0] {
					cell, err := excelize.CoordinatesToCellName(column+1, i+2)
					require.NoError(t, err)
					value := entry[name]
					if text, ok := value.(string); ok && name == "video_length" {
						value = json.Number(text)
					}
					requireCell(t, file, sheet, cell, value)
				}
			}
		}
	})
}

func TestXLSX_linksToTheNextPageAndHasADifferentETagThanJSON(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.track(videoURL(1))
	c.track(videoURL(2))
	asJSON := c.send(http.MethodGet, "/videos?limit=1", nil).requireStatus(http.StatusOK)
	first := c.send(http.MethodGet, "/videos?limit=1", nil, "Accept", xlsx).requireStatus(http.StatusOK)
	require.NotEmpty(t, first.Header.Get("Link"))
	require.Equal(t, asJSON.Header.Get("Link"), first.Header.Get("Link"))
	require.Contains(t, first.Header.Get("Vary"), "Accept,")
	tag := first.Header.Get("ETag")
	require.NotEqual(t, asJSON.Header.Get("ETag"), tag)
	again := c.send(http.MethodGet, "/videos?limit=1", nil, "Accept", xlsx).requireStatus(http.StatusOK)
	require.Equal(t, first.body, again.body, "two responses with the same strong ETag must have the same bytes")
	require.Equal(t, tag, again.Header.Get("ETag"))
	c.send(http.MethodGet, "/videos?limit=1", nil, "Accept", xlsx, "If-None-Match", tag).requireStatus(http.StatusNotModified)
	c.send(http.MethodGet, "/videos?limit=1", nil, "Accept", xlsx, "If-None-Match", asJSON.Header.Get("ETag")).requireStatus(http.StatusOK)
	c.send(http.MethodGet, "/videos?limit=0", nil, "Accept", xlsx).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	c.send(http.MethodGet, "/authenticate", nil, "Accept", xlsx).requireProblem(http.StatusNotAcceptable, server.CodeNotAcceptable)
}

func TestXLSX_hidesNumbersFromLowerTiers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierLimited)
	c.track(videoURL(1))
	c.track(videoURL(2))
	a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: new(int64(987654))} })
	_, _, rows := openWorkbook(t, c.send(http.MethodGet, "/videos", nil, "Accept", xlsx).requireStatus(http.StatusOK).body)
	require.Len(t, rows, 2, "in the tier 'limited', the sheet must have exactly one row below the heading")
	require.NotContains(t, fmt.Sprint(rows), "987654")
}

func TestXLSX_keepsTextsThatLookLikeEscapesAndFormulas(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	titles := []string{"a _x0041_ & <b>", " two  blanks ", "=1+1", "_x0041_x0042_", "__x0041__x0042_x0043_x004_x0044", "_x005F_x0041_"}
	require.ElementsMatch(t, titles, trackAndExportTitles(a, c, titles))
}

// trackAndExportTitles tracks and fetches one video for each of the titles. It returns the titles in the XLSX file of the organisation's
// videos.
func trackAndExportTitles(a *app, c *caller, titles []string) (found []string) {
	c.t.Helper()
	for n := range titles {
		c.track(videoURL(n))
	}
	a.fetch(func(target queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Title: &titles[target.ExternalID[len(target.ExternalID)-1]-'0'], Username: new("northwind"), Views: new(int64(5))}
	})
	_, _, rows := openWorkbook(c.t, c.send(http.MethodGet, "/videos", nil, "Accept", xlsx).requireStatus(http.StatusOK).body)
	column := slices.Index(rows[0], "title")
	for _, row := range rows[1:] {
		found = append(found, row[column])
	}
	return found
}

// Requirements in docs/coverage.md: 14.4-04
func TestXLSX_cutsATextThatIsLongerThanACellCanBe(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	titles := []string{strings.Repeat("a", 32_767), strings.Repeat("a", 32_768), strings.Repeat("a", 32_766) + "🎬", strings.Repeat("🎬", 20_000)}
	want := []string{titles[0], titles[0], titles[0][1:], strings.Repeat("🎬", 16_383)} // a character that consists of two UTF-16 units is not split
	require.ElementsMatch(t, want, trackAndExportTitles(a, c, titles))
	csvRows := c.requestCSV("/videos")
	var whole []string
	for _, row := range csvRows[1:] {
		whole = append(whole, row[slices.Index(csvRows[0], "title")])
	}
	require.ElementsMatch(t, titles, whole, "a CSV file must contain the texts uncut")
}
