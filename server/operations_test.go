package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally"
)

func TestReadOperations_refusesAnOperationWithoutRequiredMembers(t *testing.T) {
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
			_, err := readOperations(broken)
			require.ErrorContains(t, err, "/authenticate", "readOperations must return an error if the contract has %q instead of %q", with, fact)
		}
	}
	_, err := readOperations(reeltally.OpenAPI)
	require.NoError(t, err)
}
