package instagram_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ownID = "17841405822304914"

func videoTarget(code, name string) queue.Target {
	return queue.Target{Platform: link.Instagram, Kind: queue.KindVideo, ExternalID: code, Handle: name, Link: "https://www.instagram.com/reel/" + code + "/"}
}

func accountTarget(name string, depth int) queue.Target {
	return queue.Target{Platform: link.Instagram, Kind: queue.KindAccount, ExternalID: "@" + name, Handle: name,
		Link: "https://www.instagram.com/" + name + "/", Depth: depth}
}

func newSource(t testing.TB, base string, change func(*instagram.Options)) *instagram.Source {
	t.Helper()
	client := fetch.New(fetch.Options{Timeout: 10 * time.Second})
	t.Cleanup(client.Close)
	o := instagram.Options{BaseURL: base, Token: sourcetest.Credential, AccountID: ownID, Client: client, Now: func() time.Time { return sourcetest.Now }}
	if change != nil {
		change(&o)
	}
	s, err := instagram.New(o)
	require.NoError(t, err)
	return s
}
