package server_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

// things are what a request can name.
type things struct {
	video, account, collection, label string // ids, and the collection's name
	link, accountLink                 string
	cursor                            string
}

// probes try each operation with named things. An operation that is missing here fails the test.
var probes = map[string]func(c *caller, x things) []answer{
	"authenticate": func(c *caller, _ things) []answer {
		return []answer{c.send(http.MethodGet, "/authenticate", nil)}
	},
	"listVideos": func(c *caller, x things) []answer {
		var out []answer
		for _, query := range []string{"linked_account_id=" + x.account, "link=" + url.QueryEscape(x.link), "collections=" + x.collection,
			"collections=" + x.label, "limit=1&include_removed=true&cursor=" + x.cursor} {
			out = append(out, c.send(http.MethodGet, "/videos?"+query, nil))
		}
		return out
	},
	"getVideo": func(c *caller, x things) []answer {
		return []answer{c.send(http.MethodGet, "/videos/"+x.video, nil), c.send(http.MethodGet, "/videos/"+url.PathEscape(x.link), nil),
			c.send(http.MethodHead, "/videos/"+x.video, nil)}
	},
	"getVideoHistory": func(c *caller, x things) []answer {
		return []answer{c.send(http.MethodGet, "/videos/"+x.video+"/history", nil), c.send(http.MethodGet, "/videos/"+url.PathEscape(x.link)+"/history", nil)}
	},
	"trackVideo": func(c *caller, x things) []answer {
		return []answer{c.send(http.MethodPost, "/videos", map[string]any{"link": x.link, "collection_ids": []string{x.collection}})}
	},
	"trackVideos": func(c *caller, x things) []answer {
		return []answer{c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": []string{x.link}, "label_ids": []string{x.collection}})}
	},
	"stopVideo": func(c *caller, x things) []answer {
		return []answer{c.send(http.MethodDelete, "/videos", map[string]any{"id": x.video}), c.send(http.MethodDelete, "/videos", map[string]any{"id": x.link})}
	},
	"stopVideoById": func(c *caller, x things) []answer {
		return []answer{c.send(http.MethodDelete, "/videos/"+x.video, nil)}
	},
	"listCollections":  probeListCollections,
	"createCollection": probeCreateCollection,
	"getCollection":    probeGetCollection,
	"updateCollection": probeUpdateCollection,
	"deleteCollection": probeDeleteCollection,

	"listCollectionVideos":     probeMembers("videos", http.MethodGet),
	"addCollectionVideos":      probeMembers("videos", http.MethodPost),
	"removeCollectionVideos":   probeMembers("videos", http.MethodDelete),
	"listCollectionAccounts":   probeMembers("accounts", http.MethodGet),
	"addCollectionAccounts":    probeMembers("accounts", http.MethodPost),
	"removeCollectionAccounts": probeMembers("accounts", http.MethodDelete),

	"listAccounts":         probeListAccounts,
	"getAccount":           probeAccount(""),
	"listAccountVideos":    probeAccount("/videos"),
	"getAccountHistory":    probeAccount("/history"),
	"trackAccount":         probeTrackAccount,
	"trackAccounts":        probeTrackAccounts,
	"stopAccount":          probeStopAccount,
	"stopAccountById":      probeStopAccountByID,
	"stopAccounts":         probeStopAccounts,
	"refreshVideo":         probeRefreshVideo,
	"refreshAccount":       probeRefreshAccount,
	"getVideoStatistics":   probePath("/statistics/videos"),
	"getAccountStatistics": probePath("/statistics/accounts"),

	"getOrganisationHistory": probePath("/organisation/history"),

	"stopVideos": func(c *caller, x things) []answer {
		return []answer{c.send(http.MethodDelete, "/videos/bulk", map[string]any{"ids": []string{x.video}}),
			c.send(http.MethodDelete, "/videos/bulk", map[string]any{"ids": []string{x.video, x.link}})}
	},
}

// TestTenancy_anotherOrganisationsThingsDoNotExist tries every operation with what another organisation has, and with what nobody
// has: the answers are the same, to the byte, but for the ids themselves. The other organisation notices nothing.
func TestTenancy_anotherOrganisationsThingsDoNotExist(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *app) {
		theirs := a.newCaller(t, store.TierPremium)
		for _, l := range series(1, 3) {
			theirs.send(http.MethodPost, "/videos", map[string]any{"link": l, "collection_names": []string{"Secret plans"}}).is(http.StatusOK)
		}
		theirs.follow("https://www.tiktok.com/@user7300000000000000001")
		a.fetch(views(77))
		page := theirs.list("limit=1&include_removed=true")
		v := page.Data[0]
		foreign := things{video: v.AdID.String(), account: v.LinkedAccountID.String(), collection: v.LabelIds[0].String(), label: "Secret+plans",
			link: v.AdLink, accountLink: "https://www.tiktok.com/@user7300000000000000001", cursor: *page.Pagination.NextCursor}
		changed := []byte(foreign.cursor)
		if changed[3] != 'A' { // another letter of a cursor's alphabet
			changed[3] = 'A'
		} else {
			changed[3] = 'B'
		}
		nobodys := things{video: store.NewID().String(), account: store.NewID().String(), collection: store.NewID().String(), label: "Secret+plane",
			link: numbered(9), accountLink: "https://www.tiktok.com/@user7300000000000000009", cursor: string(changed)}

		const everything = "?include_removed=true"
		before := theirs.send(http.MethodGet, "/videos"+everything, nil).body
		accounts := theirs.send(http.MethodGet, "/accounts"+everything, nil).body
		ours := a.newCaller(t, store.TierPremium)
		ours.track(tiktokLink)
		for _, op := range theContract().operations {
			probe := probes[op.id]
			require.NotNil(t, probe, "%s has no probe", op.id)
			got, want := probe(ours, foreign), probe(ours, nobodys)
			for i := range want {
				require.Equal(t, plain(want[i]), plain(got[i]), "%s, request %d", op.id, i)
			}
		}
		require.Equal(t, string(before), string(theirs.send(http.MethodGet, "/videos"+everything, nil).body))
		require.Equal(t, string(accounts), string(theirs.send(http.MethodGet, "/accounts"+everything, nil).body))
	})
}

// naming is what differs between two answers that say the same of different things.
var naming = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{19}|Secret plan[se]`)

// plain is an answer without the names in it.
func plain(a answer) map[string]any {
	h := a.Header.Clone()
	h.Del("X-Request-Id")
	h.Del("Date")
	h.Del("ETag") // made from the body, and so from the names in it
	for name := range h {
		if regexp.MustCompile(`^Ratelimit`).MatchString(name) {
			h.Del(name)
		}
	}
	return map[string]any{"status": a.StatusCode, "header": h, "body": naming.ReplaceAllString(string(a.body), "…")}
}
