package facebook_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func videoTarget(id string) queue.Target {
	return queue.Target{Platform: link.Facebook, Kind: queue.KindVideo, ExternalID: id, Link: "https://www.facebook.com/reel/" + id, NeedDetails: true}
}

func accountTarget(name string, depth int) queue.Target {
	return queue.Target{Platform: link.Facebook, Kind: queue.KindAccount, ExternalID: "@" + name, Handle: name,
		Link: "https://www.facebook.com/" + name, Depth: depth}
}

func newSource(t testing.TB, base string, change func(*facebook.Options)) *facebook.Source {
	t.Helper()
	client := fetch.New(fetch.Options{Timeout: 10 * time.Second})
	t.Cleanup(client.Close)
	o := facebook.Options{BaseURL: base, Token: sourcetest.Credential, Client: client, Now: func() time.Time { return sourcetest.Now }}
	if change != nil {
		change(&o)
	}
	s, err := facebook.New(o)
	require.NoError(t, err)
	return s
}
