package web

import (
	"net/url"
	"slices"
	"strings"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// videoColumn is a column that a table of videos can show.
type videoColumn struct {
	Name  string // name of the column in the query parameter "columns" of a page; the display settings of share pages use the same names
	Order string // value of the API's parameter order_by that sorts by the column; "" if the API cannot sort by it
	Label string
	Kind  string // how the values are shown: count, trend, percent, multiple, day, time or state
	Value func(*client.Video) any
}

// videoColumns are all columns that a table of videos can have, from left to right.
var videoColumns = []videoColumn{
	{"views", "latest_views", "Views", "count", func(v *client.Video) any { return v.LatestViews }},
	{"views_gained_7d", "views_gained_7d", "Gained 7 d", "trend", func(v *client.Video) any { return v.ViewsGained7D }},
	{"likes", "latest_likes", "Likes", "count", func(v *client.Video) any { return v.LatestLikes }},
	{"comments", "latest_comments", "Comments", "count", func(v *client.Video) any { return v.LatestComments }},
	{"shares", "latest_shares", "Shares", "count", func(v *client.Video) any { return v.LatestShares }},
	{"bookmarks", "latest_bookmarks", "Bookmarks", "count", func(v *client.Video) any { return v.LatestBookmarks }},
	{"engagement", "latest_engagement", "Engagements", "count", func(v *client.Video) any { return v.LatestEngagement }},
	{"increase_1d", "increase_1d", "Change 1 d", "percent", func(v *client.Video) any { return v.Increase1D }},
	{"increase_7d", "increase_7d", "Change 7 d", "percent", func(v *client.Video) any { return v.Increase7D }},
	{"increase_14d", "increase_14d", "Change 14 d", "percent", func(v *client.Video) any { return v.Increase14D }},
	{"increase_30d", "increase_30d", "Change 30 d", "percent", func(v *client.Video) any { return v.Increase30D }},
	{"outlier_multiplier", "outlier_multiplier", "Outlier", "multiple", func(v *client.Video) any { return outlierMultiplier(v) }},
	{"uploaded_at", "uploaded_at", "Uploaded", "day", func(v *client.Video) any { return v.UploadedAt }},
	{"created_at", "created_at", "Tracked since", "time", func(v *client.Video) any { return v.CreatedAt }},
	{"latest_updated_at", "latest_updated_at", "Last fetch", "time", func(v *client.Video) any { return v.LatestUpdatedAt }},
	{"fetch_status", "", "Status", "state", func(v *client.Video) any { return v.FetchStatus }},
}

// outlierMultiplier returns the outlier multiplier of a video, or nil if it is unknown or out of
// date.
func outlierMultiplier(v *client.Video) *float64 {
	// The stored multiplier of a video that is no longer tracked is out of date.
	if v.Removed {
		return nil
	}
	return v.OutlierMultiplier
}

// standardColumns are the names of the columns that a table shows if the visitor has not chosen others.
var standardColumns = []string{"views", "views_gained_7d", "likes", "comments", "outlier_multiplier", "uploaded_at", "fetch_status"}

// Meaning explains the values of the column. It returns "" if the label alone explains them.
func (c videoColumn) Meaning() string {
	switch {
	case c.Name == "outlier_multiplier":
		return "views of the video divided by the median views of its account's videos"
	case c.Name == "views_gained_7d":
		return "views gained in the 7 days before the last fetch of the video"
	case c.Kind == "percent":
		return "growth of the views in percent. The period ends with the last fetch of the video. The label says how many days the period has"
	}
	return ""
}

func (c videoColumn) kind() string                  { return c.Kind }
func (c videoColumn) value(video *client.Video) any { return c.Value(video) }

// reasonUnknown returns the text that says why the cell is empty, if the column is that of the views gained in 7 days, and the video has numbers but has
// been tracked for less than 7 days. Otherwise it returns "".
func (c videoColumn) reasonUnknown(video *client.Video) string {
	if c.Name != "views_gained_7d" || video.ViewsGained7D != nil || video.LatestViews == nil || video.LatestUpdatedAt == nil {
		return ""
	}
	if tracked := store.DateOf(video.CreatedAt); store.DateOf(*video.LatestUpdatedAt)-tracked < 7 {
		return "tracked only since " + tracked.String()
	}
	return ""
}

// IsNumber returns true if the values of the column are numbers, dates or times, which are aligned on the right.
func (c videoColumn) IsNumber() bool { return c.Kind != "state" }

// findColumn returns the column with the given name. ok is false if there is no such column.
func findColumn(name string) (c videoColumn, ok bool) {
	at := slices.IndexFunc(videoColumns, func(c videoColumn) bool { return c.Name == name })
	if at < 0 {
		return c, false
	}
	return videoColumns[at], true
}

// chosenColumns returns the columns whose names are in the query parameter "columns", separated by commas. Unknown names are left out. If
// no known name remains, chosenColumns returns the standard columns.
func chosenColumns(query url.Values) []videoColumn {
	names := standardColumns
	if chosen := query["columns"]; len(chosen) > 0 {
		names = strings.Split(strings.Join(chosen, ","), ",")
	}
	var out []videoColumn
	for _, c := range videoColumns {
		if slices.Contains(names, c.Name) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return chosenColumns(nil)
	}
	return out
}

// columnChoice is a column that the visitor can choose in a form. Shown is true if the column is chosen.
type columnChoice struct {
	videoColumn
	Shown bool
}

// hiddenField is the name and the value of a hidden input in a form.
type hiddenField struct{ Name, Value string }

// Columns returns the columns that a table of videos shows: those in the query of the page, or the standard columns.
func (t tableView) Columns() []videoColumn { return chosenColumns(t.query) }

// ColumnChoices returns all columns. Shown is true for the columns that the table shows.
func (t tableView) ColumnChoices() []columnChoice {
	shown := t.Columns()
	out := make([]columnChoice, len(videoColumns))
	for n, c := range videoColumns {
		out[n] = columnChoice{c, slices.ContainsFunc(shown, func(s videoColumn) bool { return s.Name == c.Name })}
	}
	return out
}

// HiddenFormFields returns the hidden inputs of the form that chooses columns: all query parameters of the page except "columns"
// and "notice".
func (t tableView) HiddenFormFields() []hiddenField {
	return hiddenFields(withParameters(t.query, "columns", ""))
}

// hiddenFields returns hidden form inputs that contain the parameters of a URL query, sorted by name.
func hiddenFields(query url.Values) []hiddenField {
	var out []hiddenField
	for name, values := range query {
		for _, value := range values {
			out = append(out, hiddenField{name, value})
		}
	}
	slices.SortStableFunc(out, func(a, b hiddenField) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// CustomColumns returns the values of the page's query parameter "columns". The filter form
// contains them as hidden inputs, so that the table keeps its columns.
func (t tableView) CustomColumns() []string { return t.query["columns"] }

// CSVLink returns the URL query that downloads a CSV file with the list in the table. dataName is the value of the query parameter "csv", for
// example "videos".
func (t tableView) CSVLink(dataName string) string {
	return "?" + withParameters(t.query, "csv", dataName, "page", "").Encode()
}
