package web

import (
	"net/url"
	"strconv"
)

// pageSize is the number of rows of a page of a table.
const pageSize = 50

// tableView says how the rows of a table are sorted and which page of them is shown. Both are in the address of the page, so that visitors
// can bookmark and share it.
type tableView struct {
	Column     string // member by which the rows are sorted
	Ascending  bool
	Page       int
	TotalPages int64
	Total      int64
	path       string     // path of the page, without the base path of the dashboard
	query      url.Values // query of the page
}

// tableView reads from the query how a table is sorted and which page of it is shown. defaultColumn is the member by which the rows are
// sorted if the query contains no order.
func (v *visit) tableView(defaultColumn string) (tableView, error) {
	n, err := v.pageNumber()
	if err != nil {
		return tableView{}, err
	}
	query := v.r.URL.Query()
	t := tableView{Column: query.Get("order_by"), Ascending: query.Get("order_direction") == "asc", Page: n, path: v.r.URL.EscapedPath(), query: query}
	if t.Column == "" {
		t.Column = defaultColumn
	}
	return t, nil
}

// Query returns the parameters with which the API returns the shown page of the table.
func (t tableView) Query() url.Values {
	direction := "desc"
	if t.Ascending {
		direction = "asc"
	}
	return url.Values{"order_by": {t.Column}, "order_direction": {direction}, "page": {strconv.Itoa(t.Page)}, "limit": {strconv.Itoa(pageSize)}}
}

// count sets the number of rows and the number of pages of the whole list.
func (t *tableView) count(total, pages int64) { t.Total, t.TotalPages = total, pages }

// Sorted returns the value of aria-sort for the head of a column: "" if the rows are not sorted by it.
func (t tableView) Sorted(column string) string {
	switch {
	case column != t.Column:
		return ""
	case t.Ascending:
		return "ascending"
	}
	return "descending"
}

// SortLink returns the query of the page with the rows sorted by a column. The order is ascending if the rows are already sorted by the
// column in descending order, and descending otherwise.
func (t tableView) SortLink(column string) string {
	direction := ""
	if column == t.Column && !t.Ascending {
		direction = "asc"
	}
	return "?" + with(t.query, "order_by", column, "order_direction", direction, "page", "").Encode()
}

// Back returns the path and the query of the page. After an action on rows of the table, the browser returns to this address.
func (t tableView) Back() string { return t.path + "?" + with(t.query, "notice", "").Encode() }

// PageLink returns the query of page n of the same list.
func (t tableView) PageLink(n int) string {
	text := ""
	if n > 1 {
		text = strconv.Itoa(n)
	}
	return "?" + with(t.query, "page", text).Encode()
}

// Previous returns the number of the page before, or 0 if there is none.
func (t tableView) Previous() int { return t.Page - 1 }

// Next returns the number of the next page, or 0 if there is none.
func (t tableView) Next() int {
	if int64(t.Page) >= t.TotalPages {
		return 0
	}
	return t.Page + 1
}

// First returns the number of the first row of the page, beginning with 1.
func (t tableView) First() int64 { return min(t.Total, int64(t.Page-1)*pageSize+1) }

// Last returns the number of the last row of the page.
func (t tableView) Last() int64 { return min(t.Total, int64(t.Page)*pageSize) }
