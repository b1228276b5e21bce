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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// around is what stands around a configuration of docs/: one process that writes nowhere but in its own folder.
const around = `daemon off;
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

// proxied is an API that is reached through a proxy.
type proxied struct {
	*stack
	t      *testing.T
	direct string // the server's own address
	client *http.Client
}

// startProxied starts the server, and nginx before it. change makes another configuration of docs/nginx.conf.
func startProxied(t *testing.T, change func(conf string) string) *proxied {
	t.Helper()
	s := &stack{box: &box{}, env: []string{"REELTALLY_DATABASE_URL=" + storetest.NewURL(t, "sqlite"), "REELTALLY_LISTEN=127.0.0.1:0",
		"REELTALLY_TRUSTED_PROXIES=127.0.0.1/32"}}
	s.token = s.newOrganisation(t)
	s.startServer(t)
	p := &proxied{stack: s, t: t, direct: strings.TrimPrefix(s.base, "http://")}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "nginx.conf"))
	require.NoError(t, err)
	p.startNginx(change(string(text)))
	return p
}

func (p *proxied) startNginx(conf string) {
	p.t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/nginx") // which is not on everybody's path
	}
	require.NoError(p.t, err, "nginx is needed: the documented configuration is run; install it (apt-get install nginx-light)")
	dir := p.t.TempDir()
	trust := certificate(p.t, dir)
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(around), 0o600))
	for range 5 { // another may take the port before nginx does
		listen, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(p.t, err)
		require.NoError(p.t, listen.Close())
		address := listen.Addr().String()
		site := strings.NewReplacer("listen 443 ", "listen "+address+" ", "127.0.0.1:8080", p.direct, "/etc/ssl/", dir+"/").Replace(conf)
		require.NoError(p.t, os.WriteFile(filepath.Join(dir, "site.conf"), []byte(site), 0o600))
		nginx := run(p.t, path, nil, "-p", dir, "-c", "nginx.conf")
		// From another address than the proxy's, as callers are.
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		p.base = "https://" + address
		p.client = &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableCompression: true,
			TLSClientConfig: trust}}
		p.t.Cleanup(p.client.CloseIdleConnections)
		if p.awaitNginx(nginx) {
			return
		}
	}
	require.Fail(p.t, "nginx finds no free port")
}

// awaitNginx says whether nginx answers, or has ended since its port is taken.
func (p *proxied) awaitNginx(nginx *process) bool {
	p.t.Helper()
	answers := false
	await(p.t, soon, 50*time.Millisecond, func() string {
		select {
		case <-nginx.done:
			require.Contains(p.t, nginx.stderr.String(), "Address already in use")
			return ""
		default:
		}
		a, err := p.try(http.MethodGet, "/livez", "")
		if answers = err == nil && a.status == http.StatusOK; answers {
			return ""
		}
		return "nginx does not answer: " + nginx.stderr.String()
	})
	return answers
}

// certificate puts a certificate for 127.0.0.1 and its key where the configuration looks for them, and returns who believes it.
func certificate(t *testing.T, dir string) *tls.Config {
	t.Helper()
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	lent := lender.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(lent.PrivateKey)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"reeltally.pem": {Type: "CERTIFICATE", Bytes: lent.Certificate[0]},
		"reeltally.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	roots := x509.NewCertPool()
	roots.AddCert(lender.Certificate())
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func (p *proxied) try(method, target, body string, headers ...string) (answer, error) {
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.base+target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
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
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, text}, err
}

// send sends a request through the proxy; target is encoded already.
func (p *proxied) send(status int, method, target, body string, headers ...string) answer {
	p.t.Helper()
	a, err := p.try(method, target, body, headers...)
	require.NoError(p.t, err)
	require.Equal(p.t, status, a.status, "%s %s: %s", method, target, a.body)
	return a
}

const (
	proxiedVideo   = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234"
	proxiedAccount = "https://www.tiktok.com/@northwind.studio"
)

// awkward are endings of links that a proxy may trip over: the path has %2F, %3A, %3F, %23 and, for a percent sign, %25.
var awkward = []string{"", "?a=1&b=2", "?x=%2F", "?x=%25", "?x=100%25#top", "?x=a+b", "/"}

// inPath encodes a link for a path.
func inPath(link string) string { return strings.ReplaceAll(url.QueryEscape(link), "+", "%20") }

// track tracks a link and returns the id.
func (p *proxied) track(room, link string) string {
	p.t.Helper()
	var made struct{ VideoID, AccountID string }
	p.send(http.StatusOK, http.MethodPost, room, fmt.Sprintf(`{"link":%q}`, link)).into(p.t, &made)
	return made.VideoID + made.AccountID
}

func TestProxy_passesEverythingOn(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	p := startProxied(t, func(conf string) string { return conf })
	video, account := p.track("/videos", proxiedVideo), p.track("/accounts", proxiedAccount)

	t.Run("links in paths", func(t *testing.T) {
		for _, ending := range awkward {
			var v, a struct {
				AdID      string `json:"ad_id"`
				AccountID string `json:"account_id"`
			}
			p.send(http.StatusOK, http.MethodGet, "/videos/"+inPath(proxiedVideo+ending), "").into(t, &v)
			require.Equal(t, video, v.AdID, ending)
			p.send(http.StatusOK, http.MethodGet, "/accounts/"+inPath(proxiedAccount+ending), "").into(t, &a)
			require.Equal(t, account, a.AccountID, ending)
			require.Equal(t, "[]\n", string(p.send(http.StatusOK, http.MethodGet, "/videos/"+inPath(proxiedVideo+ending)+"/history", "").body), ending)
			for _, below := range []string{"/videos", "/history"} {
				p.send(http.StatusOK, http.MethodGet, "/accounts/"+inPath(proxiedAccount+ending)+below, "")
			}
		}
		var p400 struct{ Code string }
		p.send(http.StatusBadRequest, http.MethodDelete, "/videos/"+inPath(proxiedVideo), "").into(t, &p400)
		require.Equal(t, "invalid_request", p400.Code, "it takes ids alone, and was asked with the link as a whole")
	})
	t.Run("links in the query", func(t *testing.T) { p.findsByLink(t) })
	t.Run("bodies, also those of DELETE, and no larger ones", func(t *testing.T) {
		p.send(http.StatusOK, http.MethodDelete, "/videos", fmt.Sprintf(`{"id":%q}`, proxiedVideo))
		require.Equal(t, video, p.track("/videos", proxiedVideo))
		p.send(http.StatusOK, http.MethodDelete, "/videos/"+video, "")
		p.send(http.StatusOK, http.MethodDelete, "/accounts/bulk", fmt.Sprintf(`{"ids":[%q]}`, account))
		for size, media := range map[int]string{2<<20 + 1: "application/problem+json", 5 << 20: "text/html"} {
			a := p.send(http.StatusRequestEntityTooLarge, http.MethodPost, "/videos", `{"link":"`+strings.Repeat("a", size)+`"}`)
			require.Equal(t, media, a.header.Get("Content-Type"), "%d bytes", size)
		}
	})
	t.Run("the caller's address, and not what the caller makes up", func(t *testing.T) {
		p.send(http.StatusOK, http.MethodGet, "/authenticate", "", "X-Request-Id", "address-1", "X-Forwarded-For", "203.0.113.7")
		line := p.server.stderr.Await(t, soon, `"request_id":"address-1"`)
		require.Contains(t, line, `"address":"127.0.0.2"`)
	})
	t.Run("request ids, both ways", func(t *testing.T) {
		require.Equal(t, "mine.1", p.send(http.StatusOK, http.MethodGet, "/authenticate", "", "X-Request-Id", "mine.1").header.Get("X-Request-Id"))
		require.NotEmpty(t, p.send(http.StatusOK, http.MethodGet, "/authenticate", "").header.Get("X-Request-Id"))
	})
	t.Run("conditions and quota headers", func(t *testing.T) {
		a := p.send(http.StatusOK, http.MethodGet, "/videos/"+video, "")
		require.NotEmpty(t, a.header.Get("RateLimit-Remaining"))
		p.send(http.StatusNotModified, http.MethodGet, "/videos/"+video, "", "If-None-Match", a.header.Get("ETag"))
	})
}

// findsByLink finds a video and an account that are tracked by their links in the query.
func (p *proxied) findsByLink(t *testing.T) {
	t.Helper()
	for _, ending := range awkward {
		var videos struct{ Data []struct{} }
		p.send(http.StatusOK, http.MethodGet, "/videos?include_removed=true&link="+url.QueryEscape(proxiedVideo+ending), "").into(t, &videos)
		require.Len(t, videos.Data, 1, ending)
		var accounts []struct{}
		p.send(http.StatusOK, http.MethodGet, "/accounts?link="+url.QueryEscape(proxiedAccount+ending), "").into(t, &accounts)
		require.Len(t, accounts, 1, ending)
	}
}

func TestProxy_ofACarelessKindIsExplained(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	p := startProxied(t, func(conf string) string {
		return strings.Replace(conf, "proxy_pass http://reeltally;", "proxy_pass http://reeltally/;", 1) // decodes the path and merges slashes
	})
	video, account := p.track("/videos", proxiedVideo), p.track("/accounts", proxiedAccount)
	for _, path := range []string{"/videos/" + inPath(proxiedVideo), "/videos/" + inPath(proxiedVideo) + "/history", "/accounts/" + inPath(proxiedAccount)} {
		var problem struct{ Code, Detail string }
		p.send(http.StatusBadRequest, http.MethodGet, path, "").into(t, &problem)
		require.Equal(t, "url_not_encoded", problem.Code, path)
		require.Contains(t, problem.Detail, "?link=")
	}
	p.findsByLink(t)
	p.send(http.StatusOK, http.MethodGet, "/videos/"+video+"/history", "")
	p.send(http.StatusOK, http.MethodGet, "/accounts/"+account, "")
	p.send(http.StatusOK, http.MethodDelete, "/videos", fmt.Sprintf(`{"id":%q}`, proxiedVideo))
}
