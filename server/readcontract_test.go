package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally"
)

func TestReadContract_refusesAnOperationWithoutRequiredMembers(t *testing.T) {
	t.Parallel()
	for fact, replacement := range map[string]string{
		"x-rate-group: authenticate": "x-rate-group: often",
		"x-scope: any":               "x-scope: root",
		"x-tier-masked: false":       "x-tier-masked: sometimes",
		"operationId: authenticate":  "x-operation: authenticate",
	} {
		for _, with := range []string{replacement, ""} {
			broken := strings.Replace(reeltally.OpenAPI, "      "+fact+"\n", "      "+with+"\n", 1)
			require.NotEqual(t, reeltally.OpenAPI, broken)
			_, err := readContract(broken)
			require.ErrorContains(t, err, "/authenticate", "readContract must return an error if the contract has %q instead of %q", with, fact)
		}
	}
	_, err := readContract(strings.Replace(reeltally.OpenAPI, "maximum: 5000, default: 5000", "maximum: 5000", 1))
	require.ErrorContains(t, err, "the query parameter limit has no default")
	_, err = readContract(reeltally.OpenAPI)
	require.NoError(t, err)
}

// TestETagInputs_changeWithTheTextOfTheContract requires that ETags depend on the text of the contract. So after an upgrade, a request with an
// ETag from the old version never gets status 304.
func TestETagInputs_changeWithTheTextOfTheContract(t *testing.T) {
	t.Parallel()
	inputs := func(document string) []string {
		parsed, err := readContract(document)
		require.NoError(t, err)
		s := &Server{now: func() time.Time { return time.Unix(0, 0) }, contract: parsed}
		request := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/videos", nil), nil)
		b, err := s.etagInputs(&requestState{echo: request, conditional: &conditionalResponse{}}, nil)
		require.NoError(t, err)
		return []string{string(b), s.partOfReportETag([]byte("checksum"), true)}
	}
	shipped := inputs(reeltally.OpenAPI)
	require.Equal(t, shipped, inputs(reeltally.OpenAPI))
	newer := inputs(reeltally.OpenAPI + "# a newer contract with the same version\n")
	for n := range shipped {
		require.NotEqual(t, shipped[n], newer[n])
	}
}
