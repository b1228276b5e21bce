package sourcetest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/sandbox"
)

// Sandbox is a running sandbox whose clock returns Now.
type Sandbox struct {
	*sandbox.Sandbox
	URL string
	Env map[string]string // maps the name of an environment variable to its value; with these settings, sources use this sandbox
	// Client sends the requests of sources. It does not ask for compression, because compressing the large malformed answers would take most
	// of a test's time.
	Client *fetch.Client
}

// StartSandbox starts a sandbox, which stops when the test ends.
func StartSandbox(t *testing.T) Sandbox {
	t.Helper()
	box := sandbox.New(sandbox.Options{Now: func() time.Time { return Now }})
	web := httptest.NewServer(box.Handler())
	t.Cleanup(web.Close)
	client := fetch.New(fetch.Options{Transport: &http.Transport{DisableCompression: true}})
	t.Cleanup(client.Close)
	return Sandbox{box, web.URL, box.Settings(web.URL), client}
}

// SendControlRequest sends a request with a JSON body to the control interface of the sandbox at baseURL. For example, the path "faults"
// makes the sandbox return errors.
func SendControlRequest(t *testing.T, baseURL, path, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, baseURL+"/_control/"+path, strings.NewReader(body))
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	require.NoError(t, res.Body.Close())
	require.Less(t, res.StatusCode, 300, "%s %s", path, body)
}
