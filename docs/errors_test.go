package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reeltally/reeltally/server"
)

func TestErrors_listEveryCode(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("# Error codes\n\nMade by `go test ./docs -update` from the server's own table.\n\n" +
		"Every error is `application/problem+json` (RFC 9457). `code` is for programs and never changes its meaning; `detail` is for people and may.\n" +
		"`type` points at the code's line on the server's own page, `/errors`. A 429 and a 503 say in `Retry-After` how many seconds to wait.\n\n" +
		"| Code | Status | Title | Meaning |\n| --- | --- | --- | --- |\n")
	for _, c := range server.Codes() {
		fmt.Fprintf(&out, "| `%s` | %d | %s | %s |\n", c.Code, c.Status, c.Title, c.Meaning)
	}
	isMade(t, "errors.md", out.String())
}
