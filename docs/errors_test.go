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
	out.WriteString("# Error codes\n\n`go test ./docs -update` writes this page from the server's tables of codes.\n\n" +
		"Every error is `application/problem+json` (RFC 9457). `code` is for programs, and its meaning never changes. `detail` is for people, and its text may change.\n" +
		"`type` links to the code on the server's page `/errors`. A 429, a 503 and `idempotency_key_in_use` say in `Retry-After` how many seconds to wait.\n\n" +
		"| Code | Status | Title | Meaning |\n| --- | --- | --- | --- |\n")
	for _, c := range server.Codes() {
		fmt.Fprintf(&out, "| `%s` | %d | %s | %s |\n", c.Code, c.Status, c.Title, c.Meaning)
	}
	out.WriteString("\n## Codes of faults\n\nEach entry of `errors` describes one fault of the request. `location` is `body`, `query`, `path` or `header`. A fault of the body has `pointer`, a JSON pointer (RFC 6901);\n" +
		"other faults have `name`. `detail` names the value and what is allowed. A fault of a link, an id or a collection can have a code of the table above, such as `invalid_url` or `not_found`.\n\n" +
		"| Code | Meaning |\n| --- | --- |\n")
	for _, c := range server.FaultCodes() {
		fmt.Fprintf(&out, "| `%s` | %s |\n", c.Code, c.Meaning)
	}
	out.WriteString("\n## Codes of bulk entries\n\nIf entries of a bulk request fail, its response is not an error of this page. It has the status 207, or 422 if all links of a request to track failed. Each failed entry of `results` has its own `code`: see [the conventions](contract.md#codes-of-bulk-entries).\n")
	requireGeneratedText(t, "errors.md", out.String())
}
