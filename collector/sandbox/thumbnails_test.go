package sandbox

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThumbnails_allowOnlyGetAndHeadOfValidPaths(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	const path = "/thumbnails/i.ytimg.com/vi/abcdefghijk/mqdefault.jpg"
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		a := r.mustSend(t, method, path, "")
		require.Equal(t, http.StatusOK, a.StatusCode, method)
		require.Equal(t, "image/jpeg", a.Header.Get("Content-Type"), method)
		require.Equal(t, method == http.MethodGet, a.text != "", "only the answer to GET must have the picture")
	}
	a := r.mustSend(t, http.MethodPost, path, "")
	require.Equal(t, http.StatusMethodNotAllowed, a.StatusCode)
	require.Equal(t, "GET, HEAD", a.Header.Get("Allow"))
	require.Equal(t, "POST is not allowed here; use GET or HEAD", a.decodeJSON(t)["detail"])
	a = r.mustSend(t, http.MethodGet, "/thumbnails/i.ytimg.com", "")
	require.Equal(t, http.StatusNotFound, a.StatusCode)
	require.Contains(t, a.decodeJSON(t)["detail"], "/thumbnails/HOST/PATH")
}
