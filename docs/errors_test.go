package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reeltally/reeltally/server"
)

func TestErrors_pageListsEveryCode(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("# Error codes\n\n`go test ./docs -update` writes this page from the server's table of codes.\n\n" +
		"Every error is `application/problem+json` (RFC 9457). `code` is for programs, and its meaning never changes. `detail` is for people, and its text may change.\n" +
		"`type` links to the code on the server's page `/errors`. A 429, a 503 and `idempotency_key_in_use` say in `Retry-After` how many seconds to wait.\n\n" +
		"| Code | Status | Title | Meaning |\n| --- | --- | --- | --- |\n")
	for _, c := range server.Codes() {
		fmt.Fprintf(&out, "| `%s` | %d | %s | %s |\n", c.Code, c.Status, c.Title, c.Meaning)
	}
	requireGeneratedText(t, "errors.md", out.String())
}
