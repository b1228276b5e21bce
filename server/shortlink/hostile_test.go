package shortlink_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store/link"
)

// insiders are addresses that nothing outside may lead to, as hosts of a link.
var insiders = []string{
	"127.0.0.1", "127.1", "127.0.1", "127.127.127.127", "0", "0.0.0.0", "0177.0.0.1", "0177.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "017700000001",
	"127.0.0.1.nip.io", "localhost", "LOCALHOST", "localhost.", "localhost.localdomain", "ip6-localhost", "localtest.me", "vcap.me",
	"[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
	"[fe80::1]", "[fe80::1%25lo]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]",
	"10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "169.254.169.254",
	"169.254.170.2", "192.0.0.192", "168.63.129.16", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "metadata.google.internal",
	"224.0.0.1", "255.255.255.255", "198.18.0.1", "240.0.0.1", "①②⑦.⓪.⓪.①", "127。0。0。1", "kubernetes.default.svc", "host.docker.internal",
	"evil.net", "www.evil.net",
}

// disguises are links that look like a platform's and lead to INSIDE, which is the host and port of a listener here.
var disguises = []string{
	"https://vm.tiktok.com@INSIDE/ZMabc9999/", "https://vm.tiktok.com:443@INSIDE/ZMabc9999/", "https://vm.tiktok.com%40INSIDE/ZMabc9999/",
	"https://vm.tiktok.com%2F@INSIDE/ZMabc9999/", "https://vm.tiktok.com#@INSIDE/ZMabc9999/", "https://vm.tiktok.com?@INSIDE/ZMabc9999/",
	`https://vm.tiktok.com\@INSIDE/ZMabc9999/`, `https://INSIDE\@vm.tiktok.com/ZMabc9999/`, `https://vm.tiktok.com\.INSIDE/ZMabc9999/`,
	"https://INSIDE@vm.tiktok.com/ZMabc9999/", "https://INSIDE#vm.tiktok.com/ZMabc9999/", "https://INSIDE?vm.tiktok.com/ZMabc9999/",
	"https://INSIDE/vm.tiktok.com/ZMabc9999/", "https://INSIDE/https://vm.tiktok.com/ZMabc9999/", "//INSIDE/ZMabc9999/", "///INSIDE/ZMabc9999/",
	"https:///INSIDE/ZMabc9999/", "https:INSIDE/ZMabc9999/", "https:/INSIDE/ZMabc9999/", `https:\\INSIDE\ZMabc9999`, "http://INSIDE/ZMabc9999/",
	"HTTPS://INSIDE/ZMabc9999/", "INSIDE/ZMabc9999/", "ftp://INSIDE/", "gopher://INSIDE/_GET", "file://INSIDE/etc/passwd", "dict://INSIDE/", "ldap://INSIDE/",
	"ws://INSIDE/", "jar:https://INSIDE/!/", "https://[INSIDE]/", "https://vm.tiktok.com.INSIDE/ZMabc9999/", "https://INSIDE.vm.tiktok.com/ZMabc9999/",
	"https://vm.tiktok.com,INSIDE/ZMabc9999/", "https://vm.tiktok.com;INSIDE/ZMabc9999/", "https://vm.tiktok.com|INSIDE/ZMabc9999/",
	"https://vm.tiktok.com%00.INSIDE/ZMabc9999/", "https://vm.tiktok.com%0d%0aHost:INSIDE/ZMabc9999/", "https://vm.tiktok.com\r\nHost: INSIDE/ZMabc9999/",
	"https://vm.tiktok.com\tINSIDE/", "https://vm.tiktok.com INSIDE/", "https://vm.tiktok.com\x00INSIDE/", "https://vm.tiktok.com&@INSIDE/ZMabc9999/",
	"https://user:password@INSIDE/ZMabc9999/", "https://@INSIDE/ZMabc9999/", "https://vm.tiktok.com@@INSIDE/ZMabc9999/",
	"https://www.tiktok.com/link/v2?target=https://INSIDE/", "https://www.tiktok.com/login?redirect_url=https%3A%2F%2FINSIDE%2F",
	"https://l.facebook.com/l.php?u=https%3A%2F%2FINSIDE%2F", "https://www.youtube.com/redirect?q=https%3A%2F%2FINSIDE%2F",
	"https://l.instagram.com/?u=http://INSIDE/", "https://www.facebook.com/login/?next=https://vm.tiktok.com@INSIDE/ZMabc9999/",
}

// hosts are names whose owners might be fooled, under the platform's own names or beside them.
var hosts = []string{
	"vm.tiktok.com.", "vm.tiktok.com..", ".vm.tiktok.com", "vm..tiktok.com", "vm.tiktok.com.evil.net", "vm.tiktok.com.127.0.0.1.nip.io", "eviltiktok.com",
	"vm.tiktok.com-evil.net", "vm.tiktok.co", "vm-tiktok.com", "vmtiktok.com", "vm.t1ktok.com", "vm.tіktok.com", "vm.tiktοk.com", "vm.ｔｉｋｔｏｋ.com",
	"vm.tiktok。com", "vm.xn--tktok-q4a.com", "vm.tiktok%2ecom", "vm%2etiktok.com", "vm.tiktok.com%20", "VM.TIKTOK.COM.EVIL.NET", "fb.watch.evil.net", "evilfb.watch",
	"fb.watch.", "fb.mе", "www.facebook.com.evil.net", "instagr.am.evil.net", "www.lnstagram.com",
	// Names of the platform itself that a hostile name server, or the platform, points inside.
	"ip-127-0-0-1.tiktok.com", "ip-10-0-0-1.tiktok.com", "ip-172-16-0-1.tiktok.com", "ip-192-168-0-1.tiktok.com", "ip-169-254-169-254.tiktok.com",
	"ip-100-64-0-1.tiktok.com", "ip-0-0-0-0.tiktok.com", "ip-224-0-0-1.tiktok.com", "ip-255-255-255-255.tiktok.com", "ip-198-18-0-1.tiktok.com",
	"ip-168-63-129-16.tiktok.com", "ip-v6---1.tiktok.com", "ip-v6---.tiktok.com", "ip-v6-fe80--1.tiktok.com", "ip-v6-fc00--1.tiktok.com",
	"ip-v6-fd00-ec2--254.tiktok.com", "ip-v6-ff02--1.tiktok.com", "ip-v6-2002-7f00-1--.tiktok.com", "ip-v6-64-ff9b--7f00-1.tiktok.com",
	"ip-v6---ffff-7f00-1.tiktok.com", "ip-v6-2001-db8--1.tiktok.com",
}

// hostileLinks is the whole table; inside is the "host:port" of the listener that must not be reached.
func hostileLinks(inside string) []string {
	_, port, _ := strings.Cut(inside, ":")
	var links []string
	for _, host := range insiders {
		links = append(links, "https://"+host+":"+port+"/t/ZMabc9999/", "http://"+host+"/t/ZMabc9999/")
	}
	for _, disguise := range disguises {
		links = append(links, strings.ReplaceAll(disguise, "INSIDE", inside))
	}
	for _, host := range hosts {
		links = append(links, "https://"+host+"/t/ZMabc9999/", "https://"+host+":"+port+"/t/ZMabc9999/")
	}
	return links
}

func TestResolver_reachesNothingInside(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	links := hostileLinks(canary.addr)
	distinct := map[string]bool{}
	for _, raw := range links {
		distinct[raw] = true
	}
	require.GreaterOrEqual(t, len(distinct), 150)
	require.Len(t, distinct, len(links))

	t.Run("as the link of a caller", func(t *testing.T) {
		w := newWorld(t, nil)
		r := w.resolver(t, shortlink.Options{Lookup: insideLookup})
		for _, raw := range links {
			l, err := link.Parse(raw)
			if err == nil {
				require.Equal(t, link.Short, l.Kind, "%q is neither a video nor an account", raw)
				_, err = r.Resolve(t.Context(), l)
			}
			require.Error(t, err, raw)
		}
		requireDialed(t, w, net.JoinHostPort(publicAddress, "443"))
	})

	t.Run("as the target of a redirect", func(t *testing.T) {
		for _, raw := range links {
			w := newWorld(t, routes{"vm.tiktok.com/ZMabc1234/": moved(strings.ToValidUTF8(raw, ""))})
			_, err := w.resolver(t, shortlink.Options{Lookup: insideLookup}).Resolve(t.Context(), parse(t, "https://vm.tiktok.com/ZMabc1234/"))
			require.Error(t, err, raw)
			requireDialed(t, w, net.JoinHostPort(publicAddress, "443"))
		}
	})

	t.Run("as the target of a redirect of the stand-in", func(t *testing.T) {
		sites := routes{}
		for i, raw := range links {
			sites["standin.example/vm.tiktok.com/"+codeOf(i)+"/"] = moved(raw)
		}
		w := newWorld(t, sites)
		r := w.resolver(t, shortlink.Options{BaseURL: w.plain.URL, Lookup: insideLookup})
		for i, raw := range links {
			_, err := r.Resolve(t.Context(), parse(t, "https://vm.tiktok.com/"+codeOf(i)+"/"))
			require.Error(t, err, raw)
		}
		requireDialed(t, w, w.plain.Listener.Addr().String())
	})

	require.Zero(t, canary.visits(t), "nobody came")
}

// requireDialed wants every connection of a world to be one to the address.
func requireDialed(t *testing.T, w *world, address string) {
	t.Helper()
	for _, dialed := range w.dialed() {
		require.Equal(t, address, dialed)
	}
}

func codeOf(i int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return "ZMcode" + string([]byte{letters[i/26%26], letters[i%26]})
}

// insideLookup is a name server in the hands of the attacker: names of the platforms are public, or what they say, and
// all others stand for this machine.
func insideLookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if _, ok := link.HostPlatform(host); ok {
		return lookup(ctx, network, host)
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// canary is a listener that nobody may reach.
type canary struct {
	addr  string
	inner net.Listener
	done  sync.WaitGroup
	count int
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &canary{addr: inner.Addr().String(), inner: inner}
	c.done.Go(func() {
		for {
			conn, err := inner.Accept()
			if err != nil {
				return
			}
			c.count++
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = inner.Close()
		c.done.Wait()
	})
	return c
}

// visits counts who came. It comes itself last: connections are handed out in their order, so nobody before is missed.
func (c *canary) visits(t *testing.T) int {
	t.Helper()
	conn, err := net.DialTimeout("tcp", c.addr, time.Minute)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, c.inner.Close())
	c.done.Wait()
	return c.count - 1
}
