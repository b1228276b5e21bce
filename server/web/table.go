package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// pageSize is the number of table rows on a page.
const pageSize = 50

// tableView says how the rows of a table are sorted, and which page of the table is shown.
type tableView struct {
	Column     string // the rows are sorted by this member of the API's records
	Ascending  bool
	Page       int
	TotalPages int64
	Total      int64
	ReadOnly   bool       // true if the visitor cannot change the rows
	Masked     bool       // true if the organisation's tier hides all rows except the first one
	path       string     // path of the page, without the base path of the dashboard
	query      url.Values // query of the page's URL
}

// tableView reads the order of a table and the number of the shown page from the URL. By default, the
// rows are sorted by defaultColumn.
func (v *visit) tableView(defaultColumn string) (tableView, error) {
	n, err := v.pageNumber()
	if err != nil {
		return tableView{}, err
	}
	query := v.r.URL.Query()
	t := tableView{Column: query.Get("order_by"), Ascending: query.Get("order_direction") == "asc", Page: n, ReadOnly: v.isReadOnly(), Masked: v.hidesNumbers(), path: v.r.URL.EscapedPath(), query: query}
	if t.Column == "" {
		t.Column = defaultColumn
	}
	return t, nil
}

// pageNumber returns the page number in the query parameter "page". The default is 1.
func (v *visit) pageNumber() (int, error) {
	text := v.r.URL.Query().Get("page")
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, &Problem{Status: http.StatusBadRequest, Title: "Invalid page", Detail: fmt.Sprintf("page is %q; it must be 1 or more.", text)}
	}
	return n, nil
}

// Query returns the query parameters with which the API returns the rows of this page of the table.
func (t tableView) Query() url.Values {
	direction := "desc"
	if t.Ascending {
		direction = "asc"
	}
	return url.Values{"order_by": {t.Column}, "order_direction": {direction}, "page": {strconv.Itoa(t.Page)}, "limit": {strconv.Itoa(pageSize)}}
}

// setRowCount sets the number of rows and the number of pages of the whole list.
func (t *tableView) setRowCount(total, pages int64) { t.Total, t.TotalPages = total, pages }

// redirectToLastPage redirects the browser to the last page of a list if the requested page is after it. It returns true if it has done so.
func (v *visit) redirectToLastPage(t tableView) bool {
	last := max(1, t.TotalPages)
	if int64(t.Page) <= last {
		return false
	}
	query := v.r.URL.Query()
	query.Set("page", strconv.FormatInt(last, 10))
	v.redirectTo(v.r.URL.EscapedPath() + "?" + query.Encode())
	return true
}

// refuseFilter handles an error of a list. If err is a *Problem with status 400, such as an invalid filter, refuseFilter makes the page show err
// and returns nil. It returns other errors unchanged. For a CSV file, it returns every error unchanged.
func (v *visit) refuseFilter(err error) error {
	problem, ok := errors.AsType[*Problem](err)
	if !ok || problem.Status != http.StatusBadRequest || v.csvPart() != "" {
		return err
	}
	v.refused = problem
	return nil
}

// AriaSort returns the value of the attribute aria-sort for the heading of a column. It is "" if the rows are not sorted by the column.
func (t tableView) AriaSort(column string) string {
	switch {
	case column != t.Column:
		return ""
	case t.Ascending:
		return "ascending"
	}
	return "descending"
}

// SortLink returns the URL query that sorts the rows by a column, in descending order. If the rows
// already have this order, the new order is ascending.
func (t tableView) SortLink(column string) string {
	direction := ""
	if column == t.Column && !t.Ascending {
		direction = "asc"
	}
	return "?" + withParameters(t.query, "order_by", column, "order_direction", direction, "page", "").Encode()
}

// IsOfCollection returns true if the rows are the videos of a collection.
func (t tableView) IsOfCollection() bool { return listedCollection(t.path) != "" }

// ReturnPath returns the path and the query of the page. After an action on rows of the table, the browser returns to this address.
func (t tableView) ReturnPath() string {
	return t.path + "?" + withParameters(t.query, "notice", "").Encode()
}

// PageLink returns the URL query of page n of the same list.
func (t tableView) PageLink(n int) string {
	text := ""
	if n > 1 {
		text = strconv.Itoa(n)
	}
	return "?" + withParameters(t.query, "page", text).Encode()
}

// PreviousPage returns the number of the previous page, or 0 on page 1.
func (t tableView) PreviousPage() int { return t.Page - 1 }

// NextPage returns the number of the next page, or 0 on the last page.
func (t tableView) NextPage() int {
	if int64(t.Page) >= t.TotalPages {
		return 0
	}
	return t.Page + 1
}

// FirstRow returns the number of the first row on the page. The rows of the whole list are counted from 1.
func (t tableView) FirstRow() int64 { return min(t.Total, int64(t.Page-1)*pageSize+1) }

// LastRow returns the number of the last row on the page. The rows of the whole list are counted from 1.
func (t tableView) LastRow() int64 { return min(t.Total, int64(t.Page)*pageSize) }
