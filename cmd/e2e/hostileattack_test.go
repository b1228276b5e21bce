package e2e_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

// hostileAddress is the IP address of the hostile requests. Other callers use another address, because
// the server limits requests with invalid tokens by address.
const hostileAddress = "127.0.0.2"

// hostileClient returns a client whose connections come from hostileAddress.
func hostileClient() *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(hostileAddress)}}
	return &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{DialContext: dialer.DialContext, DisableCompression: true, MaxIdleConnsPerHost: 4}}
}

// attack sends requests that try to overload a server and counts the responses. It uses the token of one organisation.
type attack struct {
	*testing.T
	*hostileData
	base, token string
	client      *http.Client
	responses   map[string]int // number of responses by status and problem code
	etag        string         // ETag of the list that rememberETag requested
}

// newAttack returns an attack on the server at baseURL. It uses the token of the given organisation.
func newAttack(t *testing.T, data *hostileData, baseURL string) *attack {
	t.Helper()
	a := &attack{T: t, hostileData: data, base: baseURL, token: data.token, client: hostileClient(), responses: map[string]int{}}
	t.Cleanup(a.client.CloseIdleConnections)
	return a
}

// summary returns the counted responses as a text, most frequent first, such as "429 rate_limited × 940, 401 token_unknown × 60".
func (a *attack) summary() string {
	names := slices.SortedFunc(maps.Keys(a.responses), func(x, y string) int {
		if a.responses[x] != a.responses[y] {
			return a.responses[y] - a.responses[x]
		}
		return strings.Compare(x, y)
	})
	for i, n := range names {
		if a.responses[n] > 1 {
			names[i] = fmt.Sprintf("%s × %d", n, a.responses[n])
		}
	}
	return strings.Join(names, ", ")
}

var problemCode = regexp.MustCompile(`"code":"([a-z_]+)"`)

// countResponse counts a response, or the error if there was no response. It closes the body.
func (a *attack) countResponse(res *http.Response, err error) {
	if err != nil {
		a.responses["connection closed"]++
		return
	}
	defer func() { _ = res.Body.Close() }()
	name := fmt.Sprint(res.StatusCode)
	if res.StatusCode >= http.StatusBadRequest {
		start, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		// The last code in the body belongs to the error response itself. The codes before it belong to invalid values in the request.
		if codes := problemCode.FindAllSubmatch(start, -1); err == nil && len(codes) > 0 {
			name += " " + string(codes[len(codes)-1][1])
		}
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		name += ", cut off"
	}
	a.responses[name]++
}

// newRequest returns a request that is authorised with a.token. `headers` has the name of a header, its value, the
// name of the next header, and so on.
func (a *attack) newRequest(method, path string, body io.Reader, headers ...string) *http.Request {
	a.Helper()
	r, err := http.NewRequestWithContext(a.Context(), method, a.base+path, body)
	require.NoError(a, err)
	r.Header.Set("Authorization", "Bearer "+a.token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (a *attack) sendAndCount(r *http.Request) {
	a.Helper()
	a.countResponse(a.client.Do(r))
}

// get sends a GET request and counts the response. For `headers`, see newRequest.
func (a *attack) get(path string, headers ...string) {
	a.Helper()
	a.sendAndCount(a.newRequest(http.MethodGet, path, nil, headers...))
}

// send sends a request with a JSON body and counts the response. For `headers`, see newRequest.
func (a *attack) send(method, path, body string, headers ...string) {
	a.Helper()
	a.sendAndCount(a.newRequest(method, path, strings.NewReader(body), headers...))
}

// post sends a POST request with a JSON body and counts the response. For `headers`, see newRequest.
func (a *attack) post(path, body string, headers ...string) {
	a.Helper()
	a.send(http.MethodPost, path, body, headers...)
}

// postMCP sends a message of the Model Context Protocol to POST /mcp and counts the response.
func (a *attack) postMCP(message string) {
	a.Helper()
	a.post("/mcp", message, "Accept", "application/json, text/event-stream")
}

// dial opens a TCP connection from hostileAddress to the server.
func (a *attack) dial() net.Conn {
	a.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(hostileAddress)}}
	conn, err := dialer.DialContext(a.Context(), "tcp", strings.TrimPrefix(a.base, "http://"))
	require.NoError(a, err)
	return conn
}

// formatRequestHead returns the part of an HTTP/1.1 request before the body. In headers, each name is
// followed by its value.
func (a *attack) formatRequestHead(method, path string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: hostile\r\nAuthorization: Bearer %s\r\n", method, path, a.token)
	for i := 0; i < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	b.WriteString("\r\n")
	return b.String()
}

// sendAndHangUp sends the given head and body of a request, which can be incomplete. It then waits for waitTime and closes the connection
// without reading a response.
func (a *attack) sendAndHangUp(waitTime time.Duration, head, body string) {
	a.Helper()
	conn := a.dial()
	_, err := io.WriteString(conn, head+body)
	if waitTime > 0 {
		pause(a.T, waitTime)
	}
	require.NoError(a, errors.Join(err, conn.Close()))
	a.responses["hung up"]++
}

// sendInParts opens a connection and reads n responses from it. At the same time, writeParts writes requests to the connection, in parts.
func (a *attack) sendInParts(n int, writeParts func(write func(string) error) error) {
	a.Helper()
	conn := a.dial()
	defer func() { _ = conn.Close() }()
	written := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(conn)
		err := writeParts(func(s string) error {
			_, err := w.WriteString(s)
			return errors.Join(err, w.Flush())
		})
		written <- err
	}()
	responses := bufio.NewReader(conn)
	for range n {
		res, err := http.ReadResponse(responses, nil)
		a.countResponse(res, err)
		if err != nil {
			break
		}
	}
	_ = conn.Close() // end the goroutine: without this, it could hang in a write, because the server may have stopped reading
	<-written        //nolint:errcheck // the write can fail, because the server does not have to read all bytes
}

// getWithETag sends n GET requests for a list. Their header If-None-Match has the ETag that rememberETag
// stored.
func (a *attack) getWithETag(path string, n int) {
	a.Helper()
	for range n {
		a.get(path, "If-None-Match", a.etag)
	}
}

// rememberETag returns a function for hostileCase.prepare. The function requests a list and stores the ETag of the response in a.etag.
func rememberETag(path string) func(a *attack) {
	return func(a *attack) {
		res, err := a.client.Do(a.newRequest(http.MethodGet, path, nil))
		require.NoError(a, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(a, errors.Join(err, res.Body.Close()))
		a.etag = res.Header.Get("ETag")
	}
}

// pause waits for the given time, or until the test ends.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// unknownToken returns a token that the server did not issue, but whose form and checksum are valid. Each n gives a different token.
func unknownToken(t *testing.T, n int) string {
	t.Helper()
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	body := fmt.Sprintf("rt_%040d", n)
	sum, rest := make([]byte, 6), crc32.ChecksumIEEE([]byte(body))
	for i := len(sum) - 1; i >= 0; i-- {
		sum[i], rest = digits[rest%62], rest/62
	}
	token := body + string(sum)
	require.True(t, store.WellFormedToken(token))
	return token
}

// repeatedJSON returns a JSON array of n copies of a JSON value.
func repeatedJSON(value string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(value+",", n), ",") + "]"
}

// jsonStrings returns a JSON array of n strings: item(0) to item(n-1).
func jsonStrings(n int, item func(i int) string) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, ",%q", item(i))
	}
	return "[" + strings.TrimPrefix(b.String(), ",") + "]"
}

// randomText returns n letters and digits that do not compress well. It returns the same text for the same seed.
func randomText(seed uint64, n int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	dice := rand.New(rand.NewPCG(seed, seed))
	out := make([]byte, n)
	for i := range out {
		out[i] = digits[dice.IntN(len(digits))]
	}
	return string(out)
}
