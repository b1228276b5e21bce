package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// endlessBackend answers each API request with a page of a list that has no end. A page has at most 600 accounts.
type endlessBackend struct {
	Backend
	limits []string // the parameters "limit" of the requests
}

func (b *endlessBackend) Do(_ store.Identity, _ *http.Request, request APIRequest) (Response, error) {
	u, err := url.Parse(request.Target)
	if err != nil {
		return Response{}, err
	}
	b.limits = append(b.limits, u.Query().Get("limit"))
	limit, err := strconv.Atoi(u.Query().Get("limit"))
	if err != nil {
		return Response{}, err
	}
	body, err := json.Marshal(client.AccountPage{Data: make([]client.Account, min(limit, 600)), Pagination: client.Pagination{NextCursor: new("next")}})
	return Response{Status: http.StatusOK, Body: body}, err
}

func TestEachListEntry_endsAfterTheMaximumNumberOfEntries(t *testing.T) {
	t.Parallel()
	for maxEntries, limits := range map[int][]string{1000: {"1000", "400"}, 2000: {"1000", "1000", "800", "200"}, 7: {"7"}} {
		backend := &endlessBackend{}
		v := &visit{Pages: &Pages{Options: Options{Backend: backend}}}
		entries := 0
		require.NoError(t, eachListEntry(v, "/accounts", url.Values{"page": {"7"}}, maxEntries, func(*client.Account) { entries++ }))
		require.Equal(t, maxEntries, entries)
		require.Equal(t, limits, backend.limits)
	}
}
