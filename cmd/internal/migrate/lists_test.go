package migrate

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A ReelTally server ends a page before its limit if the page would be too large.
func TestListAll_readsEveryEntryOfPagesThatAreCut(t *testing.T) {
	t.Parallel()
	const total, cut = 2500, 700
	var numbers []int
	for n := range total {
		numbers = append(numbers, n)
	}
	list := func(cursors bool, cut int) ([]account, []string, error) {
		s := newService(t)
		s.intercept = func(w http.ResponseWriter, r *http.Request, _ int) bool {
			q := r.URL.Query()
			limit, err := strconv.Atoi(q.Get("limit"))
			start, wrong := 0, error(nil)
			switch {
			case !q.Has("cursor"):
				if n, failed := strconv.Atoi(q.Get("page")); failed == nil {
					start = (n - 1) * limit
				}
			case q.Has("page"):
				wrong = errors.New("a cursor together with a page")
			default:
				start, wrong = strconv.Atoi(q.Get("cursor"))
			}
			if err = errors.Join(err, wrong); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return true
			}
			end := min(start+min(limit, cut), total)
			answer := map[string]any{"total": total, "total_pages": (total + limit - 1) / limit, "next_cursor": nil}
			if cursors && end < total {
				answer["next_cursor"] = strconv.Itoa(end)
			}
			var data []map[string]any
			for _, n := range numbers[start:end] {
				data = append(data, map[string]any{"account_id": strconv.Itoa(n)})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "pagination": answer})
			return true
		}
		accounts, err := listAll(t.Context(), s.newRemote(t), "/accounts", nil, func(a *account) string { return a.ID })
		return accounts.Entries, s.requests, err
	}
	for _, c := range []struct {
		cursors       bool
		cut, requests int
	}{{true, cut, 4}, {true, pageSize, 3}, {false, pageSize, 3}} {
		accounts, requests, err := list(c.cursors, c.cut)
		require.NoError(t, err)
		require.Equal(t, total, len(accounts)) //nolint:testifylint // Len would print all entries
		require.Len(t, requests, c.requests)
	}
	_, _, err := list(false, cut)
	require.ErrorContains(t, err, "GET /accounts: page 2 of the list does not begin where page 1 ends")
}

// numberedList is a list of a hosted service that has page numbers and no cursors.
type numberedList struct {
	entries  int
	deleted  int  // number of entries at the start of the list that are deleted after the first request
	total    int  // the reported number of entries; 0 if it is exact
	most     int  // the maximum number of entries on a page
	refuses  bool // true if the service answers 404 for a page after the last one
	noTotal  bool // true if the reported total is 0 on a page after the last one
	samePage bool // true if the service ignores the number of the page
}

// read reads the list with listAll. It also returns the number of requests.
func (l numberedList) read(t *testing.T) (list[[]account], int, error) {
	t.Helper()
	s := newService(t)
	s.intercept = func(w http.ResponseWriter, r *http.Request, request int) bool {
		n, wrong := strconv.Atoi(r.URL.Query().Get("page"))
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err = errors.Join(wrong, err); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
		first := 0
		if request > 1 {
			first = l.deleted
		}
		if limit = min(limit, l.most); l.samePage {
			n = 1
		}
		total := l.entries - first
		if l.total > 0 {
			total = l.total
		}
		start := first + (n-1)*limit
		if l.refuses && start >= l.entries {
			http.Error(w, "no such page", http.StatusNotFound)
			return true
		}
		if l.noTotal && start >= l.entries {
			total = 0
		}
		data := []map[string]any{}
		for id := start; id < min(start+limit, l.entries); id++ {
			data = append(data, map[string]any{"account_id": strconv.Itoa(id)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "pagination": map[string]any{"total": total, "total_pages": (total + limit - 1) / limit}})
		return true
	}
	all, err := listAll(t.Context(), s.newRemote(t), "/accounts", nil, func(a *account) string { return a.ID })
	return all, len(s.requests), err
}

// The total of a service can be an approximation, and entries can be deleted while the list is read.
func TestListAll_readsEveryEntryOfNumberedPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		numberedList
		missing  int64
		requests int
	}{
		"an exact total":                            {numberedList{entries: 2500, most: pageSize}, 0, 3},
		"an exact total, and only full pages":       {numberedList{entries: 2000, most: pageSize}, 0, 3},
		"an empty list":                             {numberedList{most: pageSize}, 0, 1},
		"pages with at most 100 entries":            {numberedList{entries: 250, most: 100}, 0, 3},
		"a total that is too high":                  {numberedList{entries: 2500, total: 2600, most: pageSize}, 100, 4},
		"a total with too many pages":               {numberedList{entries: 2500, total: 4600, most: pageSize}, 2100, 5},
		"a total that is too low":                   {numberedList{entries: 2500, total: 1900, most: pageSize}, 0, 4},
		"a total that is too low, with short pages": {numberedList{entries: 250, total: 90, most: 100}, 0, 4},
		"no page after the last one":                {numberedList{entries: 2500, total: 2600, most: pageSize, refuses: true}, 100, 4},
		"no total after the last page":              {numberedList{entries: 2500, total: 2600, most: pageSize, noTotal: true}, 100, 6},
		"entries that are deleted":                  {numberedList{entries: 2500, deleted: 2, most: pageSize}, 0, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, requests, err := c.read(t)
			require.NoError(t, err)
			require.Equal(t, c.entries, len(all.Entries), "each entry must be returned once") //nolint:testifylint // Len would print all entries
			require.Equal(t, c.missing, all.Missing)
			require.Equal(t, c.requests, requests)
		})
	}
	_, _, err := numberedList{entries: 2500, most: pageSize, samePage: true}.read(t)
	require.ErrorContains(t, err, "GET /accounts: page 2 of the list does not begin where page 1 ends")
}

// A list can change while it is read. Deleted entries must not make the migration fail.
func TestListAll_acceptsListsThatChange(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.intercept = func(w http.ResponseWriter, r *http.Request, n int) bool {
		_, _ = w.Write([]byte([]string{
			`{"data":[{"account_id":"1"},{"account_id":"2"}],"pagination":{"total":3,"total_pages":2,"next_cursor":"a"}}`,
			`{"data":[{"account_id":"3"},{"account_id":"4"}],"pagination":{"total":3,"total_pages":2,"next_cursor":"b"}}`,
			`{"data":[],"pagination":{"total":2,"total_pages":1,"next_cursor":null}}`}[n-1]))
		return true
	}
	accounts, err := listAll(t.Context(), s.newRemote(t), "/accounts", nil, func(a *account) string { return a.ID })
	require.NoError(t, err)
	require.Len(t, accounts.Entries, 4)
	require.Zero(t, accounts.Missing)
}
