package web

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server/formula"
)

const (
	listPageSize = 1000 // number of entries that eachListEntry requests from the API in one call; it holds the response in memory
	maxCSVRows   = 5000 // maximum number of rows in the CSV file of a list
)

// csvPart returns the data that the visitor requests as a CSV file: "videos", "accounts", "collections" or "history". It returns "" if the visitor
// requests the page itself.
func (v *visit) csvPart() string { return v.r.URL.Query().Get("csv") }

// sendCSV sends a CSV file. The first row has the column names. The name of the file is
// fileNamePrefix and the current UTC date, with "made-up-" in front if the numbers are made up.
func (v *visit) sendCSV(fileNamePrefix string, rows [][]string) error {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	if v.Backend.IsDataMadeUp() {
		fileNamePrefix = "made-up-" + fileNamePrefix
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileNamePrefix + "-" + v.Now().UTC().Format(time.DateOnly) + ".csv"}))
	_, err := v.w.Write(out.Bytes())
	return err
}

// csvNumber returns the digits of a number for a CSV file, without thousands separators. It returns "" if the number is unknown.
func csvNumber(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// csvValue returns the text of a table cell for a CSV file. Times are in UTC. The text is "" if the
// value is unknown.
func csvValue(cell any) string {
	switch typed := cell.(type) {
	case *openapi_types.Date:
		if typed == nil {
			return ""
		}
		return typed.String()
	case *time.Time:
		if typed == nil {
			return ""
		}
		return typed.UTC().Format(time.RFC3339)
	case time.Time:
		return typed.UTC().Format(time.RFC3339)
	case client.FetchStatus:
		return string(typed)
	}
	return formatPlain(cell)
}

// eachListEntry calls handle for each of the first maxEntries entries of a list of the API. The query has the order and the filters of the list.
func eachListEntry[T any](v *visit, path string, query url.Values, maxEntries int, handle func(entry *T)) error {
	query = maps.Clone(query)
	query.Set("page", "1")
	for remaining := maxEntries; remaining > 0; {
		query.Set("limit", strconv.Itoa(min(remaining, listPageSize)))
		var page struct {
			Data       []T               `json:"data"`
			Pagination client.Pagination `json:"pagination"`
		}
		if err := v.getFromAPI(path, query, &page); err != nil {
			return err
		}
		for n := range page.Data {
			handle(&page.Data[n])
		}
		// A page can have fewer entries than its limit, because the API limits the size of a page.
		remaining -= len(page.Data)
		if page.Pagination.NextCursor == nil {
			return nil
		}
		query.Set("cursor", *page.Pagination.NextCursor)
	}
	return nil
}

// sendVideos sends a list of videos of the API as a CSV file with the shown columns.
func (v *visit) sendVideos(name string, t tableView, path string, query url.Values) error {
	columns := t.Columns()
	head := []string{"link", "platform", "username", "title"}
	for _, c := range columns {
		head = append(head, c.Name)
	}
	rows := [][]string{head}
	err := eachListEntry(v, path, query, maxCSVRows, func(video *client.Video) {
		row := []string{formula.Escape(video.AdLink), string(video.Platform), formula.Escape(video.DisplayUsername), formula.Escape(video.Title)}
		for _, c := range columns {
			row = append(row, csvValue(c.Value(video)))
		}
		rows = append(rows, row)
	})
	if err != nil {
		return err
	}
	return v.sendCSV(name, rows)
}

// sendAccounts sends the list of accounts of the API as a CSV file.
func (v *visit) sendAccounts(query url.Values) error {
	rows := [][]string{{"link", "platform", "username", "followers", "total_views", "views_gained_7d", "median_views", "videos", "last_uploaded_at", "fetch_status"}}
	err := eachListEntry(v, "/accounts", query, maxCSVRows, func(a *client.Account) {
		rows = append(rows, []string{formula.Escape(a.AccountLink), string(a.Platform), formula.Escape(a.DisplayUsername), csvNumber(a.LatestFollowersCount), csvNumber(a.TotalViews), csvNumber(a.ViewsGained7D),
			formatPlain(a.MedianViews), csvNumber(a.TotalVideosTracked), csvValue(a.LastUploadedAt), textOrEmpty(a.FetchStatus)})
	})
	if err != nil {
		return err
	}
	return v.sendCSV("accounts", rows)
}

// sendCollections sends the list of collections as a CSV file. Each collection is followed by the collections below it.
func (v *visit) sendCollections(collections []treeNode) error {
	names := map[uuid.UUID]string{}
	for _, c := range collections {
		names[c.ID] = c.Name
	}
	rows := [][]string{{"name", "parent", "videos", "views", "access", "hashtags", "created_at", "id"}}
	for _, c := range collections {
		parent := ""
		if c.ParentID != nil {
			parent = names[*c.ParentID]
		}
		rows = append(rows, []string{formula.Escape(c.Name), formula.Escape(parent), csvNumber(c.Videos), csvNumber(c.Views), string(c.Access),
			formula.Escape(strings.Join(c.Hashtags, " ")), csvValue(c.CreatedAt), c.ID.String()})
	}
	return v.sendCSV("collections", rows)
}

// sendHistory sends the points of a chart as a CSV file, the oldest first. It returns a *Problem if the visitor requests data other than
// the history.
func (v *visit) sendHistory(name string, c chart) error {
	if v.csvPart() != "history" {
		return v.refuseCSV()
	}
	head := []string{"date"}
	switch {
	case c.Compared: // each video or account has a second column, which says whether the number is interpolated
		for _, name := range c.CSVNames {
			head = append(head, name, name+" computed")
		}
	case c.CSVNames != nil:
		head = append(head, c.CSVNames...)
	default:
		for _, m := range c.Metrics {
			head = append(head, m.Name)
		}
	}
	if c.GainedColumn {
		head = append(head, "gained")
	}
	if c.Joined {
		head = append(head, "videos_joined")
	}
	if c.Sums {
		head = append(head, "videos_interpolated", "videos_carried")
	}
	if c.Quality {
		head = append(head, "quality", "source", "fetched_at")
	}
	rows := [][]string{head}
	for n := range c.Points {
		p := c.Points[len(c.Points)-1-n]
		row := []string{p.Day.String()}
		for m, value := range p.Values {
			row = append(row, csvNumber(value))
			if c.Compared && value != nil {
				row = append(row, strconv.FormatBool(p.IsComputed(m)))
			} else if c.Compared {
				row = append(row, "")
			}
		}
		if c.GainedColumn {
			row = append(row, csvNumber(p.Gains[c.indexOf("views")]))
		}
		if c.Joined {
			row = append(row, csvNumber(p.Joined))
		}
		if c.Sums {
			row = append(row, csvNumber(p.Interpolated), csvNumber(p.Carried))
		}
		if c.Quality {
			row = append(row, p.Quality, p.Source, csvValue(p.Fetched))
		}
		rows = append(rows, row)
	}
	return v.sendCSV(name, rows)
}

// CSVLink returns the URL query that downloads the points of the chart as a CSV file.
func (c chart) CSVLink() string { return "?" + withParameters(c.query, "csv", "history").Encode() }

// refuseCSV returns the *Problem for a request for a CSV file that the page does not offer.
func (v *visit) refuseCSV() error {
	return &Problem{Status: http.StatusBadRequest, Title: "Unknown file", Detail: fmt.Sprintf("csv is %q; this page has no such file.", v.csvPart())}
}
