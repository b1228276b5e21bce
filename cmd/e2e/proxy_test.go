package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// nginxConfig makes nginx run as one process that writes only to its own folder. It includes
// site.conf, which is a copy of docs/nginx.conf.
const nginxConfig = `daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include site.conf;
}
`

// proxyProgram is a proxy that can run in front of ReelTally. The folder docs has a configuration for it.
type proxyProgram struct {
	name     string
	paths    []string // names and paths under which the program may be installed; the first one that exists is used
	debian   string   // name of the Debian package that has the program
	document string   // file name of the configuration in docs
	second   func(conf, address string) string
	files    func(conf, address string) map[string]string // files returns the configuration files of a proxy that listens on address; the key is the file name
	args     []string
	// tooLargeType is the media type of the error response if a request body is too large (5 MiB).
	tooLargeType string
}

var nginx = &proxyProgram{
	name: "nginx", paths: []string{"nginx", "/usr/sbin/nginx"}, debian: "nginx-light", document: "nginx.conf",
	second: func(conf, address string) string {
		return strings.Replace(conf, "    # server 127.0.0.1:8081 max_fails=0;", "    server "+address+" max_fails=0;", 1)
	},
	files: func(conf, address string) map[string]string {
		return map[string]string{"nginx.conf": nginxConfig, "site.conf": strings.Replace(conf, "listen 443 ", "listen "+address+" ", 1)}
	},
	args: []string{"-p", ".", "-c", "nginx.conf"}, tooLargeType: "text/html",
}

var haproxy = &proxyProgram{
	name: "HAProxy", paths: []string{"haproxy", "/usr/sbin/haproxy"}, debian: "haproxy", document: "haproxy.cfg",
	second: func(conf, address string) string {
		return strings.Replace(conf, "    # server two 127.0.0.1:8081", "    server two "+address, 1)
	},
	files: func(conf, address string) map[string]string {
		conf = strings.NewReplacer("bind :443 ", "bind "+address+" ", "    user haproxy\n    group haproxy\n", "").Replace(conf)
		return map[string]string{"haproxy.cfg": conf}
	},
	args: []string{"-db", "-f", "haproxy.cfg"}, tooLargeType: "application/problem+json",
}

var caddy = &proxyProgram{
	name: "Caddy", paths: []string{"caddy"}, debian: "caddy", document: "Caddyfile",
	second: func(conf, address string) string {
		return strings.Replace(conf, "reverse_proxy 127.0.0.1:8080 {", "reverse_proxy 127.0.0.1:8080 "+address+" {", 1)
	},
	files: func(conf, address string) map[string]string {
		// Without these options, Caddy would also listen on port 80 and on a port for its administration.
		return map[string]string{"Caddyfile": "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" +
			strings.Replace(conf, "\nreeltally.example.com {", "\nhttps://"+address+" {", 1)}
	},
	args: []string{"run", "--config", "Caddyfile"}, tooLargeType: "application/problem+json",
}

// proxyPrograms are all proxies with a documented configuration.
var proxyPrograms = []*proxyProgram{nginx, haproxy, caddy}

// configuration returns the documented configuration of the proxy.
func (program *proxyProgram) configuration(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", program.document))
	require.NoError(t, err)
	return string(text)
}

// withSecondServer returns a copy of the documented configuration, to which it has added a second server with the given address.
func (program *proxyProgram) withSecondServer(t *testing.T, address string) string {
	t.Helper()
	conf := program.second(program.configuration(t), address)
	require.Contains(t, conf, address)
	return conf
}

// proxiedStack is a complete system (stack) with a proxy in front of its server. Tests send requests to the proxy.
type proxiedStack struct {
	*stack
	t      *testing.T
	direct string // the server's own HOST:PORT
	client *http.Client
}

// startProxied starts a server, and a proxy with the given configuration in front of it.
func startProxied(t *testing.T, program *proxyProgram, conf string) *proxiedStack {
	t.Helper()
	s := &stack{sandboxProcess: &sandboxProcess{}, env: []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, "sqlite"), "REELTALLY_LISTEN=127.0.0.1:0",
		"REELTALLY_TRUSTED_PROXIES=127.0.0.1/32"}}
	s.token = s.newOrganisation(t)
	s.startServer(t)
	p := &proxiedStack{stack: s, t: t, direct: strings.TrimPrefix(s.base, "http://")}
	p.startProxy(program, conf)
	return p
}

// startProxy starts a proxy on a free port with the given configuration, and waits until the proxy forwards requests.
func (p *proxiedStack) startProxy(program *proxyProgram, conf string) {
	p.t.Helper()
	var path string
	for _, candidate := range program.paths {
		if found, err := exec.LookPath(candidate); err == nil {
			path = found
			break
		}
	}
	require.NotEmpty(p.t, path, "this test needs %s: apt-get install %s", program.name, program.debian)
	dir := p.t.TempDir()
	trust := writeCertificate(p.t, dir)
	for range 5 { // try several ports, because another program may take the free port before the proxy does
		listen, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(p.t, err)
		require.NoError(p.t, listen.Close())
		address := listen.Addr().String()
		for name, text := range program.files(strings.NewReplacer("127.0.0.1:8080", p.direct, "/etc/ssl/", dir+"/").Replace(conf), address) {
			require.NoError(p.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		proxy := startInFolder(p.t, dir, path, nil, program.args...)
		// The test sends requests from 127.0.0.2, because the address of a caller must differ from the address of the proxy, 127.0.0.1.
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		p.base = "https://" + address
		p.client = &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableCompression: true,
			TLSClientConfig: trust}}
		p.t.Cleanup(p.client.CloseIdleConnections)
		if p.awaitProxy(proxy) {
			p.t.Cleanup(func() {
				if p.t.Failed() {
					p.t.Logf("%s wrote: %s", program.name, proxy.stderr)
				}
			})
			return
		}
	}
	require.Fail(p.t, program.name+" found no free port")
}

// awaitProxy waits until the proxy forwards requests to the server. It returns false if the proxy has ended because its port was in use.
func (p *proxiedStack) awaitProxy(proxy *process) bool {
	p.t.Helper()
	ready := false
	await(p.t, waitTimeout, 50*time.Millisecond, func() string {
		select {
		case <-proxy.done:
			require.Contains(p.t, strings.ToLower(proxy.stderr.String()), "address already in use")
			return ""
		default:
		}
		a, err := p.sendToProxy(http.MethodGet, "/livez", "")
		if ready = err == nil && a.status == http.StatusOK; ready {
			return ""
		}
		return "the proxy does not answer: " + proxy.stderr.String()
	})
	return ready
}

// writeCertificate writes a TLS certificate for 127.0.0.1 and its private key to files in dir. It
// returns a client configuration that trusts the certificate.
func writeCertificate(t *testing.T, dir string) *tls.Config {
	t.Helper()
	tlsServer := httptest.NewTLSServer(nil) // start a server of httptest to get its self-signed certificate; the server itself is not used
	defer tlsServer.Close()
	cert := tlsServer.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	for name, text := range map[string][]byte{"reeltally.pem": public, "reeltally.key": private, "reeltally-with-key.pem": slices.Concat(public, private)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	roots := x509.NewCertPool()
	roots.AddCert(tlsServer.Certificate())
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func (p *proxiedStack) sendToProxy(method, target, body string, headers ...string) (response, error) {
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.base+target, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, text}, err
}

// send sends a request through the proxy and requires that the response has the given status. target is the percent-encoded path with the
// query.
func (p *proxiedStack) send(status int, method, target, body string, headers ...string) response {
	p.t.Helper()
	a, err := p.sendToProxy(method, target, body, headers...)
	require.NoError(p.t, err)
	require.Equal(p.t, status, a.status, "%s %s: %s", method, target, a.body)
	return a
}

const (
	proxiedVideo   = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234"
	proxiedAccount = "https://www.tiktok.com/@northwind.studio"
)

// linkSuffixes are suffixes that tests append to links. A percent-encoded link with a suffix contains %2F, %3F, %23 or %25, which some
// proxies change.
var linkSuffixes = []string{"", "?a=1&b=2", "?x=%2F", "?x=%25", "?x=100%25#top", "?x=a+b", "/"}

// escapeForPath percent-encodes a link, so that it can be a segment of a URL path.
func escapeForPath(link string) string { return strings.ReplaceAll(url.QueryEscape(link), "+", "%20") }

// trackLink tracks a link with POST to path, which is "/videos" or "/accounts", and returns the id of the video or account.
func (p *proxiedStack) trackLink(path, link string) string {
	p.t.Helper()
	var made struct{ VideoID, AccountID string }
	p.send(http.StatusOK, http.MethodPost, path, fmt.Sprintf(`{"link":%q}`, link)).decode(p.t, &made)
	return made.VideoID + made.AccountID
}

func TestProxy_documentedConfigurationPreservesRequests(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, program := range proxyPrograms {
		t.Run(program.name, func(t *testing.T) {
			t.Parallel()
			requireRequestsPreserved(t, startProxied(t, program, program.configuration(t)), program.tooLargeType)
		})
	}
}

// requireRequestsPreserved requires that requests and responses pass the proxy unchanged. tooLargeType is the media type of the
// error response if a request body is too large (5 MiB).
func requireRequestsPreserved(t *testing.T, p *proxiedStack, tooLargeType string) {
	t.Helper()
	video, account := p.trackLink("/videos", proxiedVideo), p.trackLink("/accounts", proxiedAccount)

	t.Run("links in paths", func(t *testing.T) {
		for _, ending := range linkSuffixes {
			var v, a struct {
				AdID      string `json:"ad_id"`
				AccountID string `json:"account_id"`
			}
			p.send(http.StatusOK, http.MethodGet, "/videos/"+escapeForPath(proxiedVideo+ending), "").decode(t, &v)
			require.Equal(t, video, v.AdID, ending)
			p.send(http.StatusOK, http.MethodGet, "/accounts/"+escapeForPath(proxiedAccount+ending), "").decode(t, &a)
			require.Equal(t, account, a.AccountID, ending)
			require.Equal(t, "[]\n", string(p.send(http.StatusOK, http.MethodGet, "/videos/"+escapeForPath(proxiedVideo+ending)+"/history", "").body), ending)
			for _, below := range []string{"/videos", "/history"} {
				p.send(http.StatusOK, http.MethodGet, "/accounts/"+escapeForPath(proxiedAccount+ending)+below, "")
			}
		}
		var p400 struct{ Code string }
		p.send(http.StatusBadRequest, http.MethodDelete, "/videos/"+escapeForPath(proxiedVideo), "").decode(t, &p400)
		require.Equal(t, "invalid_request", p400.Code, "if the proxy does not change the link, the server must answer with invalid_request, because DELETE accepts only ids in the path")
	})
	t.Run("links in the query string", func(t *testing.T) { p.requireQueriesByLinkWork(t) })
	t.Run("DELETE requests with a body, and bodies that are too large", func(t *testing.T) {
		p.send(http.StatusOK, http.MethodDelete, "/videos", fmt.Sprintf(`{"id":%q}`, proxiedVideo))
		require.Equal(t, video, p.trackLink("/videos", proxiedVideo))
		p.send(http.StatusOK, http.MethodDelete, "/videos/"+video, "")
		p.send(http.StatusOK, http.MethodDelete, "/accounts/bulk", fmt.Sprintf(`{"ids":[%q]}`, account))
		for size, media := range map[int]string{2<<20 + 1: "application/problem+json", 5 << 20: tooLargeType} {
			a := p.send(http.StatusRequestEntityTooLarge, http.MethodPost, "/videos", `{"link":"`+strings.Repeat("a", size)+`"}`)
			require.Equal(t, media, a.header.Get("Content-Type"), "%d bytes", size)
		}
	})
	t.Run("a forged address of the caller", func(t *testing.T) {
		p.send(http.StatusOK, http.MethodGet, "/authenticate", "", "X-Request-Id", "address-1", "X-Forwarded-For", "203.0.113.7")
		line := p.server.stderr.Await(t, waitTimeout, `"request_id":"address-1"`)
		require.Contains(t, line, `"address":"127.0.0.2"`)
	})
	t.Run("X-Request-Id in requests and responses", func(t *testing.T) {
		require.Equal(t, "own.1", p.send(http.StatusOK, http.MethodGet, "/authenticate", "", "X-Request-Id", "own.1").header.Get("X-Request-Id"))
		require.NotEmpty(t, p.send(http.StatusOK, http.MethodGet, "/authenticate", "").header.Get("X-Request-Id"))
	})
	t.Run("conditional requests and the headers of rate limits", func(t *testing.T) {
		a := p.send(http.StatusOK, http.MethodGet, "/videos/"+video, "")
		require.NotEmpty(t, a.header.Get("RateLimit-Remaining"))
		p.send(http.StatusNotModified, http.MethodGet, "/videos/"+video, "", "If-None-Match", a.header.Get("ETag"))
	})
}

// requireQueriesByLinkWork requires that the query parameter "link" finds the tracked video and the
// tracked account, even if the link ends with one of linkSuffixes.
func (p *proxiedStack) requireQueriesByLinkWork(t *testing.T) {
	t.Helper()
	for _, ending := range linkSuffixes {
		var videos struct{ Data []struct{} }
		p.send(http.StatusOK, http.MethodGet, "/videos?include_removed=true&link="+url.QueryEscape(proxiedVideo+ending), "").decode(t, &videos)
		require.Len(t, videos.Data, 1, ending)
		var accounts []struct{}
		p.send(http.StatusOK, http.MethodGet, "/accounts?link="+url.QueryEscape(proxiedAccount+ending), "").decode(t, &accounts)
		require.Len(t, accounts, 1, ending)
	}
}

func TestProxy_errorExplainsThatProxyChangedPath(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	conf := strings.Replace(nginx.configuration(t), "proxy_pass http://reeltally;", "proxy_pass http://reeltally/;", 1) // because of the final slash, nginx decodes the path and merges slashes
	p := startProxied(t, nginx, conf)
	video, account := p.trackLink("/videos", proxiedVideo), p.trackLink("/accounts", proxiedAccount)
	for _, path := range []string{"/videos/" + escapeForPath(proxiedVideo), "/videos/" + escapeForPath(proxiedVideo) + "/history", "/accounts/" + escapeForPath(proxiedAccount)} {
		var problem struct{ Code, Detail string }
		p.send(http.StatusBadRequest, http.MethodGet, path, "").decode(t, &problem)
		require.Equal(t, "url_not_encoded", problem.Code, path)
		require.Contains(t, problem.Detail, "?link=")
	}
	p.requireQueriesByLinkWork(t)
	p.send(http.StatusOK, http.MethodGet, "/videos/"+video+"/history", "")
	p.send(http.StatusOK, http.MethodGet, "/accounts/"+account, "")
	p.send(http.StatusOK, http.MethodDelete, "/videos", fmt.Sprintf(`{"id":%q}`, proxiedVideo))
}
