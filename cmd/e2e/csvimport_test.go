package e2e_test

import (
	"archive/zip"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server/formula"
	"github.com/reeltally/reeltally/store/storetest"
)

var (
	csvVideos = flag.Int("csv.videos", 5_050, "number of videos that TestDownload_csvOpensInASpreadsheetAndCanBeImported downloads, opens and imports; more than 5,000 need more than one page of the API")
	csvOut    = flag.String("csv.out", "", "path of the page with the results of TestDownload_csvOpensInASpreadsheetAndCanBeImported; if it is empty, there is no page")
)

// writeVideos writes a CSV file of videos with captions that a spreadsheet could run as formulas.
func writeVideos(t *testing.T, path string) {
	t.Helper()
	captions := []string{"=1+1", "'=1", "'", "+a;-b", "x;=HYPERLINK(1)", `"=1`, "a\n@b", "1,5", "Spring sale"}
	f, err := os.Create(path)
	require.NoError(t, err)
	w := csv.NewWriter(f)
	require.NoError(t, w.Write([]string{"link", "date", "views", "likes", "video_length", "title"}))
	day := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	for n := range *csvVideos {
		require.NoError(t, w.Write([]string{fmt.Sprintf("https://www.tiktok.com/@creator%d/video/73012345%011d", n%50, n), day, fmt.Sprint(n), fmt.Sprint(n / 3), "12.5",
			formula.Escape(captions[n%len(captions)])}))
	}
	w.Flush()
	require.NoError(t, w.Error())
	require.NoError(t, f.Close())
}

// importableValues returns, for each video, those values that an import can restore. The key is the link of the video. The values are JSON.
func (s *stack) importableValues(t *testing.T, token string) map[string]string {
	t.Helper()
	type facts struct {
		Title        string
		LatestViews  int64  `json:"latest_views"`
		LatestLikes  int64  `json:"latest_likes"`
		VideoLength  string `json:"video_length"`
		Username     string
		LatestUpdate string `json:"latest_updated_at"`
	}
	found := map[string]string{}
	for page := 1; ; page++ {
		var list struct {
			Data []struct {
				Link string `json:"ad_link"`
				facts
			}
		}
		requireResponse(t, http.MethodGet, fmt.Sprintf("%s/videos?limit=5000&page=%d&order_by=created_at", s.base, page), token, nil).decode(t, &list)
		if len(list.Data) == 0 {
			return found
		}
		for _, v := range list.Data {
			text, err := json.Marshal(v.facts)
			require.NoError(t, err)
			found[v.Link] = string(text)
		}
	}
}

// csvFile describes a file that the test has downloaded. It is a row of the table in docs/evidence/spreadsheets.md.
type csvFile struct {
	format              string
	size                int64
	took                time.Duration
	server              int64 // growth of the server's memory in bytes
	client              int64 // highest memory of the downloading program in bytes
	cells, formulas     int
	numbers, nonNumbers int // numbers and other values in the numeric columns
}

// maxDownloadMemory is the maximum growth of the server's memory during a download, in bytes. The downloading program may use twice as much
// memory. Both limits do not depend on the number of videos.
const maxDownloadMemory = 64 << 20

// TestDownload_csvOpensInASpreadsheetAndCanBeImported opens CSV downloads in Gnumeric, a spreadsheet. No cell may be a formula, and each count
// must be a number.
//
// Requirements in docs/coverage.md: 14.4-03, 14.4-05
func TestDownload_csvOpensInASpreadsheetAndCanBeImported(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	s := &stack{env: []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, storetest.Engines[0]), "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_RATE_LIMITS=off"}}
	organisation := func(name string) (token string) {
		var made struct {
			ID    string `json:"organisation_id"`
			Token string
		}
		require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "org", "create", "--name", name, "--tier", "premium", "--json")), &made))
		require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "token", "create", "--org", made.ID, "--name", "Test", "--json")), &made))
		return made.Token
	}
	dir := t.TempDir()
	original := filepath.Join(dir, "original.csv")
	writeVideos(t, original)
	token := organisation("Original")
	runOperator(t, s.env, "import", "--org", "Original", original)
	s.startServer(t)
	want := s.importableValues(t, token)
	require.Len(t, want, *csvVideos)
	var files []csvFile
	// Gnumeric opens the file with semicolons in a German locale.
	for _, format := range []struct{ name, locale string }{{"csv", "C.UTF-8"}, {"csv-semicolon", germanLocale(t)}} {
		s.server.kill()
		s.startServer(t) // start a new server, because the memory of a server grows with its requests
		path := filepath.Join(dir, format.name+".csv")
		file := s.downloadCSV(t, token, format.name, path)
		s.countCellsInGnumeric(t, &file, path, format.locale)
		// Another organisation imports the file, and must get the same videos.
		copied := organisation(format.name)
		runOperator(t, s.env, "import", "--org", format.name, path)
		require.Equal(t, want, s.importableValues(t, copied), format.name)
		t.Logf("%+v", file)
		files = append(files, file)
	}
	if *csvOut != "" {
		require.NoError(t, os.WriteFile(*csvOut, []byte(spreadsheetPage(files)), 0o600))
	}
}

// downloadCSV downloads the videos of an organisation with `reeltally export videos`. It measures the time and the memory.
func (s *stack) downloadCSV(t *testing.T, token, format, path string) csvFile {
	t.Helper()
	server := &meter{pid: s.server.cmd.Process.Pid}
	require.Equal(t, http.StatusOK, requireResponse(t, http.MethodGet, s.base+"/videos?limit=100", token, nil).status) // the first response needs more memory than later ones
	before := server.requireMemorySize(t, "VmRSS")
	require.NoError(t, os.WriteFile(server.procFile("clear_refs"), []byte("5"), 0)) // the text "5" resets VmHWM, the peak of the resident memory: see proc(5)
	began := time.Now()
	p := startProgram(t, "reeltally", []string{"REELTALLY_URL=" + s.base, "REELTALLY_TOKEN=" + token}, "export", "videos", "--format", format, "-o", path)
	client, peak := &meter{pid: p.cmd.Process.Pid}, int64(0)
	for running := true; running; { // read VmHWM while the program runs: the peak that the system reports at the program's end includes memory of the test process
		select {
		case <-p.done:
			running = false
		case <-time.After(5 * time.Millisecond):
			if size, err := client.memorySize("VmHWM"); err == nil {
				peak = max(peak, size)
			}
		}
	}
	require.NoError(t, p.err, p.stderr.String())
	file := csvFile{format: format, took: time.Since(began), server: server.requireMemorySize(t, "VmHWM") - before, client: peak}
	require.Positive(t, peak)
	require.LessOrEqual(t, file.server, int64(maxDownloadMemory), "the growth of the server's memory during the download, in bytes, must stay below the limit")
	require.LessOrEqual(t, file.client, int64(2*maxDownloadMemory), "the memory of the export command, in bytes, must stay below the limit")
	info, err := os.Stat(path)
	require.NoError(t, err)
	file.size = info.Size()
	return file
}

// germanLocale makes the German locale for Gnumeric. It returns the value for the environment variable LC_ALL and, after a blank, the assignment
// LOCPATH=DIR.
func germanLocale(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "localedef", "-i", "de_DE", "-f", "UTF-8", filepath.Join(dir, "de_DE.UTF-8")).CombinedOutput()
	require.NoError(t, err, string(out))
	return "de_DE.UTF-8 LOCPATH=" + dir
}

// numericColumns are the columns of the CSV file whose cells must be numbers.
var numericColumns = []string{"latest_views", "latest_likes", "video_length"}

// countCellsInGnumeric opens a CSV file in Gnumeric, saves it as a workbook and counts the cells of each kind. It stores the counts in
// the fields of the parameter file.
func (s *stack) countCellsInGnumeric(t *testing.T, file *csvFile, path, locale string) {
	t.Helper()
	book := path + ".xlsx"
	convert := exec.CommandContext(t.Context(), "ssconvert", path, book)
	convert.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, strings.Fields("LC_ALL="+locale)...)
	out, err := convert.CombinedOutput()
	require.NoError(t, err, string(out))
	archive, err := zip.OpenReader(book)
	require.NoError(t, err)
	defer func() { require.NoError(t, archive.Close()) }()
	sheet, err := archive.Open("xl/worksheets/sheet1.xml")
	require.NoError(t, err)
	defer func() { require.NoError(t, sheet.Close()) }()

	// Gnumeric writes a cell as <c r="B7" t="n"><f>formula</f><v>value</v></c>. If the cell is a number, its type t is "n" or missing.
	var cell struct {
		At      string `xml:"r,attr"`
		Type    string `xml:"t,attr"`
		Formula string `xml:"f"`
		Value   string `xml:"v"`
		Text    string `xml:"is>t"`
	}
	numeric := map[string]bool{} // letters of the numeric columns in the workbook, such as "B"
	rows, empty := 0, false
	tokens := xml.NewDecoder(sheet)
	for {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		begin, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch begin.Name.Local {
		case "row":
			empty = true
		case "c":
			cell.At, cell.Type, cell.Formula, cell.Value, cell.Text = "", "", "", "", ""
			require.NoError(t, tokens.DecodeElement(&cell, &begin))
			if cell.Formula+cell.Value+cell.Text == "" {
				continue // Gnumeric also writes rows of empty cells after the last row of a long sheet
			}
			if empty {
				rows++
				empty = false
			}
			file.cells++
			column := strings.TrimRight(cell.At, "0123456789")
			switch {
			case cell.Formula != "":
				file.formulas++
			case rows == 1 && slices.Contains(numericColumns, cell.Text):
				numeric[column] = true
			case rows > 1 && numeric[column] && (cell.Type == "" || cell.Type == "n"):
				file.numbers++
			case rows > 1 && numeric[column]:
				file.nonNumbers++
			}
		}
	}
	require.Equal(t, *csvVideos+1, rows)
	require.Zero(t, file.formulas, "no cell may be a formula")
	require.Zero(t, file.nonNumbers, "every count and length must be a number")
	require.Equal(t, *csvVideos*len(numericColumns), file.numbers)
}

// spreadsheetPage returns the text of docs/evidence/spreadsheets.md.
func spreadsheetPage(files []csvFile) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# CSV downloads in spreadsheet programs

`+
		"`make spreadsheets` writes this page. "+
		"An organisation has %s videos, whose captions contain formulas, quotes, semicolons and ends of lines. "+
		"`reeltally export videos` downloads them as CSV with\ncommas, and as CSV with semicolons and decimal commas. "+
		`Gnumeric opens the first file in an English locale and the second file in a German locale, and saves both as workbooks.

`+
		`The test requires:

- The workbooks have no formulas. In the columns %s, each cell is a number.
`+
		`- The files are imported into new organisations. The import restores the links, captions, counts, lengths and times of all videos.
- The memory of the server grows by at most %d MiB during a download.

`+
		`The seconds depend on what else the machine does.

| Format | Size of the file, MiB | Seconds | Growth of the server's memory, MiB | Memory of the export command, MiB | Cells | Formulas | Numbers | Cells with text instead of a number | Videos that differ after the import |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |
`, formatThousands(*csvVideos), strings.Join(numericColumns, ", "), maxDownloadMemory>>20)
	for _, f := range files {
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %.1f | %s | %s | %s | %s | 0 |\n", f.format, inMebibytes(f.size), f.took.Seconds(), inMebibytes(f.server), inMebibytes(f.client), formatThousands(f.cells),
			formatThousands(f.formulas), formatThousands(f.numbers), formatThousands(f.nonNumbers))
	}
	b.WriteString("\n`make check` runs the same test with fewer videos. The test is in `cmd/e2e/csvimport_test.go`.\n")
	return b.String()
}
