package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestImport_readsCommonFormats(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	day := store.DateOf(db.Clock.Now()) - 1
	point := func(views int64) store.Point {
		return store.Point{Day: day, Counts: store.Counts{Views: &views, Likes: new(int64(0))}}
	}
	for name, text := range map[string]string{
		"CSV with commas":                                  "link,date,views,likes\n" + videoURL + ",DAY,12,0\n",
		"byte order mark, CRLF":                            "\xef\xbb\xbflink,date,views,likes\r\n" + videoURL + ",DAY,12,0\r\n",
		"CSV with semicolons":                              "Video URL;Date;View Count;Like-Count\n" + videoURL + ";DAY;12;0\n",
		"CSV with tabs, blank lines":                       "\n\npermalink\tDAY\tplays\tdiggCount\n\n" + videoURL + "\tDAY\t12\t0\n\n",
		"no line break at the end":                         "link,date,views,likes\n" + videoURL + ",DAY, 12 ,0",
		"whole numbers with .0":                            "link,date,views,likes\n" + videoURL + ",DAY,12.0,0.0\n",
		"a line that names the separator":                  "sep=;\r\nlink;date;views;likes;title\r\n" + videoURL + ";DAY;12;0;\"a, b\"\r\n",
		"a quoted line that names the separator":           "\xef\xbb\xbf\"SEP=,\"\nlink,date,views,likes\n" + videoURL + ",DAY,12,0\n",
		"time with a zone":                                 "link,time,views,likes\n" + videoURL + ",DAYT23:30:00-00:15,12,0\n",
		"time without a zone":                              "link,time,views,likes\n" + videoURL + ",DAY 23:59:59,12,0\n",
		"date and time":                                    "link,date,time,views,likes\n" + videoURL + ",DAY,DAYT10:00:00Z,12,0\n",
		"history response of our API":                      `[{"link":"` + videoURL + `","date":"DAY","views":12,"likes":0,"comments":null,"engagements":0,"interpolated":false}]`,
		"JSON Lines":                                       `{"link":"` + videoURL + `","date":"DAY","views":12,"likes":"0"}` + "\n\n" + `{"link":"` + videoURL + `"}`,
		"JSON list on several lines":                       " [\n{\n\"link\": \"" + videoURL + "\",\n\"date\": \"DAY\", \"views\": 12, \"likes\": 0, \"title\": \"}]\\\"{\"}\n] \n",
		"a row with interpolated counts, which is skipped": "link,date,views,likes,interpolated\n" + videoURL + ",DAY,12,0,false\n" + videoURL + ",2026-01-01,11,0,TRUE\n",
		"the same row twice":                               "link,date,views,likes\n" + videoURL + ",DAY,12,0\n" + videoURL + ",DAY,12,0\n",
		"a mapped column and ignored columns":              "link,date,views,likes,Watch count,x\n" + videoURL + ",DAY,99,0,12,y\n",
		"a long title in quotes":                           "link,date,views,likes,title\n" + videoURL + ",DAY,12,0,\"" + strings.Repeat("long \"\" \n", 10_000) + "\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrg(t, db)
			_, err := runImport(t, db, o, strings.ReplaceAll(text, "DAY", day.String()), func(i *transfer.Import) {
				switch {
				case strings.Contains(text, "Watch count"):
					i.Columns.Map = map[string]string{"views": "", "Watch count": "views", "x": ""}
				case strings.Contains(text, "\tDAY\tplays"):
					i.Columns.Map = map[string]string{day.String(): "date"}
				}
			})
			require.NoError(t, err)
			points, err := o.History(t.Context(), store.Ref{Link: videoLink(t)}, 0, day+1)
			require.NoError(t, err)
			require.Len(t, points, 1)
			require.Equal(t, backfill.ImportSource, *points[0].Source)
			require.Equal(t, store.QualityMeasured, points[0].Quality)
			points[0].Provenance = store.Provenance{}
			require.Equal(t, []store.Point{point(12)}, points)
		})
	}
}

func TestImport_refusesFilesWithInvalidRows(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	today := store.DateOf(db.Clock.Now())
	o := newOrg(t, db)
	const names = "link,date,views,title,username,uploaded_at,video_length,interpolated\n"
	for row, want := range map[string]string{
		",DAY,1,,,,,":                                "the row has no link",
		"nonsense,DAY,1,,,,,":                        `link "nonsense"`,
		"https://example.com/v,DAY,1,,,,,":           "example.com",
		"https://www.tiktok.com/@a,DAY,1,,,,,":       "account",
		"https://vm.tiktok.com/ZMabcdefg/,DAY,,,,,,": "the short link cannot be resolved",
		videoURL + ",,1,,,,,":                        "the row has counts but neither date nor time",
		videoURL + ",31.13.2026,1,,,,,":              `"31.13.2026"; it must be like 2026-01-31`,
		videoURL + ",2026-02-30,1,,,,,":              "2026-02-30",
		videoURL + ",0000-01-01,1,,,,,":              "0000-01-01",
		videoURL + ",1970-01-01,1,,,,,":              `date is "1970-01-01"; the year must be 1971 or later`,
		videoURL + ",01/01/1970,1,,,,,":              `date is "01/01/1970"; the year must be 1971 or later`,
		videoURL + ",TOMORROW,1,,,,,":                "future",
		videoURL + ",DAY,-1,,,,,":                    "it must not be negative",
		videoURL + ",DAY,-0,,,,,":                    "it must not be negative",
		videoURL + ",DAY,-99999999999999999999,,,,,": "it must not be negative",
		videoURL + ",DAY,+1,,,,,":                    "it must be a whole number, like 1234567",
		videoURL + ",DAY,1e3,,,,,":                   "it must be a whole number, like 1234567",
		videoURL + ",DAY,1.5,,,,,":                   `views is "1.5", which is not a whole number in the format decimal-point`,
		videoURL + ",DAY,1.2345K,,,,,":               `views is "1.2345K", which is not a whole number in the format decimal-point`,
		videoURL + ",DAY,\"1,00,000\",,,,,":          "it must be a whole number, like 1234567",
		videoURL + ",DAY,K,,,,,":                     "it must be a whole number, like 1234567",
		videoURL + ",DAY,.0,,,,,":                    "it must be a whole number, like 1234567",
		videoURL + ",DAY,NaN,,,,,":                   "it must be a whole number, like 1234567",
		videoURL + ",DAY,99999999999999999999,,,,,":  "at most",
		videoURL + ",DAY,1000000000001,,,,,":         "at most",
		videoURL + ",DAY,1,,,soon,,":                 "uploaded_at",
		videoURL + ",DAY,1,,,TOMORROW,,":             "future",
		videoURL + ",EARLY,1,,,TODAY,,":              "before the video was uploaded",
		videoURL + ",DAY,1,,,,-1,":                   "video_length",
		videoURL + ",DAY,1,,,,NaN,":                  "video_length",
		videoURL + ",DAY,1,,,,,perhaps":              "it must be true, false or empty",
		videoURL + ",DAY,1,\xff\xfe,,,,":             "UTF-8",
		videoURL + ",DAY,1,a\x00b,,,,":               "NUL",
		videoURL + ",DAY,1,,,,":                      "the row has 7 cells",
		videoURL + ",DAY,1,,,,,,":                    "the row has 9 cells",
	} {
		row := strings.NewReplacer("EARLY", (today - 2).String(), "DAY", (today - 1).String(), "TODAY", today.String(), "TOMORROW", (today + 1).String()).Replace(row)
		text := names + videoURL + "," + (today - 2).String() + ",5,,,,,\n" + row + "\n"
		_, err := runImport(t, db, o, text)
		var refused *transfer.RefusedError
		require.ErrorAs(t, err, &refused, row)
		require.ErrorContains(t, err, "line 3: ", row)
		require.ErrorContains(t, err, "nothing was imported: 1 row is invalid", row)
		_, err = runImport(t, db, o, "\n\nsep=,\n"+text)
		require.ErrorContains(t, err, "line 6: ", row)
		require.ErrorContains(t, err, want, row)
		_, err = o.Video(t.Context(), store.Ref{Link: videoLink(t)})
		require.ErrorIs(t, err, store.ErrNotFound, "nothing was imported")
	}
}

func TestImport_refusesFilesWithInvalidFormat(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o := newOrg(t, db)
	skip := func(i *transfer.Import) { i.Bad = func(transfer.BadRow) error { return nil } }
	for text, want := range map[string]string{
		"":                       "empty",
		"\xef\xbb\xbf \n":        "empty",
		"\xff\xfel\x00i\x00":     "UTF-16",
		"l\x00i\x00n\x00k\x00":   "UTF-16",
		"PK\x03\x04\x00\x00\x00": "Excel", "\x1f\x8b\x08\x00": "compressed",
		"l\xffnk,date\n":                                     "UTF-8",
		"date,views\n":                                       "no column has the video's link",
		"link,date,watch count\n":                            `column "watch count" is not known`,
		"link,views,views\n":                                 `"views" occurs twice: rename or remove one of the two in the file`,
		"link,url,date\n":                                    `columns "link" and "url" both mean link`,
		"link,date,views\n\"a,2026-01-01,1\n":                "line 2, column 17: wrong quoting",
		"link,date,views\na\"b,2026-01-01,1\n":               "wrong quoting",
		"link,date,views\n\"" + strings.Repeat("x\n", 1<<20): "a row is longer than",
		"[": "the file ends inside the list", `[{"link":"x"}`: "the file ends inside the list",
		`[{"link":`: "the file ends inside an object", `{"link":"`: "the file ends inside an object",
		"[1]": `the file has "1" where an object was expected`, "[{},]": `the file has "]" where an object was expected`,
		"[,{}]": `the file has "," where an object was expected`, "{} x": `the file has "x" where an object was expected`,
		"[ä]": `the file has "ä" where an object was expected`, "[] ä": `the file has "ä" after the end of the list`,
		"[] x": `the file has "x" after the end of the list`, "[]\n\nx": `line 3: the file has "x" after the end of the list`, "[{} {}]": `the file has "{" where an object was expected`,
		`{"link":"a","watch":1}`: `column "watch" is not known`, `[{"link":"` + strings.Repeat("x", 2<<20) + `"}]`: "a row is longer than",
	} {
		_, err := runImport(t, db, o, text, skip)
		require.Error(t, err, "%.40q", text)
		require.ErrorContains(t, err, want, "%.40q", text)
	}
	for object, want := range map[string]string{
		`{"link":"` + videoURL + `","views":[1]}`:               "views is a list or an object",
		`{"link":"` + videoURL + `","link":"` + videoURL + `"}`: `"link" occurs twice: rename or remove one of the two in the file`,
		`{"link":"` + videoURL + `","title":"\ud800"}`:          "title has an invalid Unicode escape",
		`{"link":"` + videoURL + `","title":"` + "\xff" + `"}`:  "the row is not UTF-8",
		`{"link" "x"}`: "the row is not valid JSON", `{link:1}`: "the row is not valid JSON", `{"link":"x",}`: "the row is not valid JSON", `{"link":"x"]`: "the row is not valid JSON",
		`{"link":"` + videoURL + `","date":"2026-01-01","views":true}`: "it must be a whole number, like 1234567",
		`{"title":"x"}`: "the row has no link",
	} {
		_, err := runImport(t, db, o, object)
		require.ErrorContains(t, err, "line 1: ", object)
		require.ErrorContains(t, err, want, object)
	}
	require.Error(t, transfer.Columns{Map: map[string]string{"a": "b"}}.Check())
	require.NoError(t, transfer.Columns{Map: map[string]string{"a": "views", "b": ""}}.Check())
}

// Rows with an invalid username, such as a display name, must be imported without the username.
func TestImport_dropsInvalidUsernames(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	const facebook, id = "https://www.facebook.com/reel/1139247764231866", "UCLqxVugv74EIW3VWh2NOa3Q"
	for _, c := range []struct{ link, username, want string }{
		{videoURL, "a/../b", ""}, {videoURL, "Rick Astley", ""}, {videoURL, "@Rick", "rick"}, {videoURL, id, id}, {videoURL, strings.ToLower(id), strings.ToLower(id)},
		{videoURL, "x?id=" + id, ""}, {facebook, "100064550044307", "100064550044307"}, {facebook, "100064550044307#x", ""}, {facebook, "Some.Page", "some.page"},
		{"https://www.tiktok.com/@/video/7301234567890123456", "100064550044307", "100064550044307"},
	} {
		o := newOrg(t, db)
		summary, err := runImport(t, db, o, fmt.Sprintf("link,date,views,username\n%s,%s,5,%s\n", c.link, store.DateOf(db.Clock.Now()), c.username))
		require.NoError(t, err, c.username)
		require.EqualValues(t, 1, summary.Added)
		require.Equal(t, c.want == "", summary.InvalidUsernames == 1, c.username)
		page, err := o.ListVideos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 5}})
		require.NoError(t, err)
		require.Equal(t, c.want, page.Rows[0].Username, c.username)
		require.Equal(t, c.want != "", page.Rows[0].LinkedAccountID != nil)
	}
}

// If --map names a column that the file does not have, the import must fail. Without an error, it would silently lose the data of the
// column.
func TestImport_refusesMappingOfMissingColumn(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o := newOrg(t, db)
	for _, text := range []string{"link,date,Watch count\n" + videoURL + ",2026-01-01,5\n",
		`[{"link":"` + videoURL + `","date":"2026-01-01","Watch count":5},{"link":"` + videoURL + `"}]`, `{"Watch count":5,"date":"2026-01-01","link":"` + videoURL + `"}`} {
		_, err := runImport(t, db, o, text, func(i *transfer.Import) {
			i.Columns = transfer.Columns{Map: map[string]string{"Watch Count": "views", "link": "link"}, IgnoreUnknown: true}
		})
		require.ErrorContains(t, err, `"Watch Count"=views`, text)
		require.ErrorContains(t, err, `"Watch count"`, text)
		require.NotContains(t, err.Error(), `"link"=`, text)
		_, err = o.Video(t.Context(), store.Ref{Link: videoLink(t)})
		require.ErrorIs(t, err, store.ErrNotFound, "nothing was imported")
	}
	many := `{"link":"` + videoURL + `"`
	for n := range 100 {
		many += fmt.Sprintf(`,"c%d":1`, n)
	}
	_, err := runImport(t, db, o, many+"}", func(i *transfer.Import) {
		i.Columns = transfer.Columns{Map: map[string]string{"Views": "views"}, IgnoreUnknown: true}
	})
	require.ErrorContains(t, err, "and more", "if the file has many columns, the error must list only the first columns")
	_, err = runImport(t, db, o, "[]", func(i *transfer.Import) { i.Columns.Map = map[string]string{"Watch Count": "views"} })
	require.NoError(t, err, "if the file has no rows, the import must not report missing columns")
}

func TestImport_namesTheUploadDateOfCountsFromBeforeTheUpload(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, now := newOrg(t, db), db.Clock.Now()
		today := store.DateOf(now)
		recent := fmt.Sprintf("https://www.tiktok.com/@someone/video/%d", now.AddDate(0, 0, -5).Unix()<<32)
		requireReason := func(rows, want string) {
			t.Helper()
			_, err := runImport(t, db, o, "link,date,views,uploaded_at\n"+rows)
			require.ErrorContains(t, err, want)
		}
		requireReason(fmt.Sprintf("%s,%s,1,\n", recent, today-7),
			fmt.Sprintf("line 2: the counts of %s are from %s, before the video was uploaded on %s (this date comes from the id of the video)", recent, today-7, today-5))
		requireReason(fmt.Sprintf("%[1]s,%[2]s,1,\n%[1]s,%[3]s,2,%[4]s\n", videoURL, today-5, today-1, today-2),
			fmt.Sprintf("before the video was uploaded on %s (this date comes from another row of the file)", today-2))
		_, err := runImport(t, db, o, fmt.Sprintf("link,date,views,uploaded_at\n%s,%s,1,%s\n", videoURL, today-1, today-3))
		require.NoError(t, err)
		requireReason(fmt.Sprintf("%s,%s,1,\n", videoURL, today-6), fmt.Sprintf("before the video was uploaded on %s (ReelTally already has this date)", today-3))
	})
}

func TestImport_skipsAndReportsInvalidRowsIfRequested(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o, today := newOrg(t, db), store.DateOf(db.Clock.Now())
	text := fmt.Sprintf("link,date,views,uploaded_at,more\n%[1]s,%[2]s,5,,\n%[1]s,%[2]s,6,,\n%[1]s,%[3]s,x,,\n%[1]s,%[4]s,4,%[2]s,\n%[1]s,%[5]s,3,,\nhttps://vm.tiktok.com/ZMabcdefg/,%[2]s,8,,\n",
		videoURL, today-2, today-1, today, today-4)
	for _, dry := range []bool{true, false} {
		var bad []transfer.BadRow
		summary, err := runImport(t, db, o, text, func(i *transfer.Import) {
			i.DryRun, i.Columns.IgnoreUnknown = dry, true
			i.Bad = func(r transfer.BadRow) error { bad = append(bad, r); return nil }
			i.Resolve = func(context.Context, link.Link) (link.Link, error) {
				return link.Parse("https://www.tiktok.com/@a/video/7301234567890123456")
			}
		})
		require.NoError(t, err)
		require.Len(t, bad, 3)
		require.Contains(t, bad[0].Reason, `views is "x"`)
		require.Equal(t, 4, bad[0].Line)
		require.Equal(t, transfer.BadRow{Line: 3, Reason: "line 2 has different counts for the same video and time"}, bad[1])
		require.Equal(t, 6, bad[2].Line)
		require.Contains(t, bad[2].Reason, "before the video was uploaded", "the import must compare the row with the upload date from another row of the video")
		require.Equal(t, transfer.Summary{Rows: 6, Bad: 3, Videos: 2, New: 2, Added: 3}, summary)
	}
	_, err := runImport(t, db, o, text, func(i *transfer.Import) {
		i.Columns.IgnoreUnknown, i.Bad = true, func(transfer.BadRow) error { return errors.New("test error") }
	})
	require.ErrorContains(t, err, "test error")
}

func TestImport_returnsOnlyTheErrorOfTheStepThatFailed(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	for _, rows := range []int{1, 45_000} { // more rows than sortChunkSize are sorted in temporary files
		text, err := io.ReadAll(io.MultiReader(strings.NewReader("link,date,views\n"), &rowGenerator{left: rows}))
		require.NoError(t, err)
		_, err = runImport(t, db, newOrg(t, db), "", func(i *transfer.Import) {
			i.In, i.TempDir = bytes.NewReader(text), filepath.Join(t.TempDir(), "missing")
		})
		require.ErrorContains(t, err, "no such file or directory")
		require.NotErrorIs(t, err, context.Canceled)
	}
}

// rowGenerator is an io.Reader that generates the rows of a CSV file while they are read.
type rowGenerator struct {
	left int    // number of rows left to generate
	rest []byte // unread part of the current row
}

func (g *rowGenerator) Read(p []byte) (int, error) {
	if len(g.rest) == 0 {
		if g.left == 0 {
			return 0, io.EOF
		}
		g.left--
		g.rest = fmt.Appendf(nil, "https://www.tiktok.com/@a/video/73012345%011d,%s,%d\n", g.left%1000, time.Now().UTC().AddDate(0, 0, -1-g.left/1000).Format(time.DateOnly), g.left)
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// An import of more rows than sortChunkSize must sort the rows on disk and delete its temporary files.
func TestImport_sortsManyRowsOnDisk(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	dir := t.TempDir()
	summary, err := runImport(t, db, newOrg(t, db), "", func(i *transfer.Import) {
		i.In, i.TempDir = io.MultiReader(strings.NewReader("link,date,views\n"), &rowGenerator{left: 45_000}), dir
	})
	require.NoError(t, err)
	require.EqualValues(t, 1000, summary.Videos)
	require.EqualValues(t, 45_000, summary.Added)
	require.Empty(t, fileNames(t, dir))
}
