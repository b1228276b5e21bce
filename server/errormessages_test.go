package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

func TestInvalidRequest_namesAParameterAndItsEntries(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	video := c.track(tiktokLink).String()
	for target, want := range map[string][]string{
		"/videos/" + video + "/history?include=foo,quality": {"max_items include must have at most 1 entries, not 2", `enum include, entry 0, must be quality, not "foo"`},
		"/events?types=foo,bar":                             {"enum types, entry 0,", "enum types, entry 1,"},
	} {
		p := c.send(http.MethodGet, target, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		var got []string
		for _, f := range p.Errors {
			got = append(got, f.Code+" "+f.Detail)
		}
		require.Len(t, got, len(want), target)
		for i := range want {
			require.Contains(t, got[i], want[i])
		}
	}
}

func TestInvalidRequest_namesTheValueAndWhatIsAllowed(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	video := "/videos/" + c.track(tiktokLink).String()
	collection := "/collections/" + c.createCollection(map[string]any{"name": "Launch"}).String()
	const collectionID = "the id of a collection, a UUID such as 01938c33-1c9e-7b54-a0d2-7f6e5d4c3b2a, or the word null"
	const name = "a name with at least one character that is not white space"
	const webhookURL = "an https URL without white space, such as https://hooks.example.com/reeltally"
	for _, test := range []struct {
		method, target string
		body           any
		want           string
	}{
		{http.MethodGet, "/videos?page=2147483648", nil, "page must be at most 2147483647, not 2147483648."},
		{http.MethodGet, "/videos?page=99999999999999999999999", nil, "page must be at most 2147483647, not 99999999999999999999999."},
		{http.MethodGet, "/videos?page=-2147483649", nil, "page must be at least 1, not -2147483649."},
		{http.MethodGet, "/videos?page=1.5", nil, `page must be a whole number, not "1.5".`},
		{http.MethodGet, "/collections?parent_id=xyz", nil, fmt.Sprintf(`parent_id must be %s, not "xyz".`, collectionID)},
		{http.MethodGet, "/collections?parent_id=abcd", nil, fmt.Sprintf(`parent_id must be %s, not "abcd".`, collectionID)},
		{http.MethodGet, "/videos?username=%40", nil, `username must be a handle, with or without a leading @, not "@".`},
		{http.MethodGet, "/videos?hashtag=%23", nil, `hashtag must be a hashtag, with or without a leading #, not "#".`},
		{http.MethodGet, "/videos?q=%20", nil, `q must be a text with at least one word, not " ".`},
		{http.MethodGet, "/videos?cursor=a.b", nil, `cursor must be a cursor from an earlier response, which has only letters, digits, - and _, not "a.b".`},
		{http.MethodGet, "/videos/a%00b", nil, "ad_id contains a NUL character."},
		{http.MethodGet, video + "/history?end_date=" + a.daysAgo(40), nil, fmt.Sprintf("end_date %s is before the default start_date, which is %s (30 days ago); "+
			"send a start_date that is not after end_date.", a.daysAgo(40), a.daysAgo(30))},
		{http.MethodGet, video + "/history?start_date=" + a.daysAgo(3) + "&end_date=" + a.daysAgo(4), nil, fmt.Sprintf("end_date %s is before start_date, which is %s.", a.daysAgo(4), a.daysAgo(3))},
		{http.MethodPost, "/collections", map[string]any{"name": "   "}, fmt.Sprintf(`name must be %s, not "   ".`, name)},
		{http.MethodPost, "/collections", map[string]any{"name": ""}, "name is empty."},
		{http.MethodPost, "/collections", map[string]any{"name": strings.Repeat("😀", 101)}, "name must have at most 100 characters, not 101."},
		{http.MethodPost, "/collections", map[string]any{"name": "a", "hashtags": []string{"fit ness"}}, `hashtags.0 must be a hashtag without white space, with # only at its beginning, not "fit ness".`},
		{http.MethodPatch, collection, map[string]any{"password": "secret"}, "password must have at least 8 characters, not 6."},
		{http.MethodPost, "/videos/bulk", map[string]any{"links": []string{}}, "links must have at least 1 entry, not 0."},
		{http.MethodPost, "/webhooks", map[string]any{"url": "nope", "description": "a"}, fmt.Sprintf(`url must be %s, not "nope".`, webhookURL)},
		{http.MethodPost, "/webhooks", map[string]any{"url": "ftp://example.com/x", "description": "a"}, fmt.Sprintf(`url must be %s, not "ftp://example.com/x".`, webhookURL)},
		{http.MethodPost, "/tokens", `{"name": "a", "scopes": ["read"], "expires_in_days": 99999999999}`, "expires_in_days must be at most 3650, not 99999999999."},
		{http.MethodPost, "/tokens", `{"name": "a", "scopes": ["read"], "expires_in_days": -99999999999}`, "expires_in_days must be at least 1, not -99999999999."},
		{http.MethodPost, "/tokens", `{"name": "a", "scopes": ["read"], "expires_in_days": 1.5}`, "expires_in_days must be a whole number, not 1.5."},
		{http.MethodPost, "/tokens", `{"name": true, "scopes": ["read"]}`, "name must be a string, not true."},
		{http.MethodPatch, "/collections/01938c32-8f07-7a46-93be-1d2c3b4a5968", `{"password": 12345678}`, "password must be a string, not a number."},
		{http.MethodPost, "/videos/bulk", map[string]any{"links": strings.Repeat("a", 200)}, fmt.Sprintf(`links must be an array, not "%s…".`, strings.Repeat("a", 99))},
		{http.MethodPost, "/videos/bulk", map[string]any{"links": []any{[]string{"a"}}}, "links.0 must be a string, not an array."},
		{http.MethodDelete, collection, map[string]any{"x": 1}, "x is not a known member; the object must be empty."},
	} {
		p := c.send(test.method, test.target, test.body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, test.want, p.Detail, "%s %s", test.method, test.target)
		require.Len(t, p.Errors, 1, "%s %s", test.method, test.target)
	}
	p := c.send(http.MethodPost, "/collections", map[string]any{"name": "a"}, "Idempotency-Key", "a b").requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	require.Equal(t, `Idempotency-Key must be a key of visible ASCII characters without spaces, not "a b".`, p.Detail)
}

func TestNotFound_saysWhyATextIsNeitherAnIDNorALink(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	const noHost = `"hello" is not the host name of a website; a link looks like https://www.tiktok.com/@handle/video/ID.`
	const account, noVideo = "https://www.tiktok.com/@northwind", "The link leads to the account https://www.tiktok.com/@northwind, but this operation needs the link of a video."
	const handle = `"@northwind" is a handle and not a link such as https://www.tiktok.com/@handle.`
	const sendVideo, sendAccount = "Send the id, which is a UUID, or the link of a video. ", "Send the id, which is a UUID, or the link of an account. "
	for _, test := range []struct {
		method, target string
		body           any
		want           string
	}{
		{http.MethodGet, "/videos/hello", nil, "Your organisation has no video hello. " + sendVideo + noHost},
		{http.MethodGet, "/videos/@northwind", nil, "Your organisation has no video @northwind. " + sendVideo + handle},
		{http.MethodGet, "/videos/hello/history", nil, "Your organisation has no video hello. " + sendVideo + noHost},
		{http.MethodGet, "/videos/" + url.PathEscape(account), nil, "Your organisation has no video " + account + ". " + noVideo},
		{http.MethodGet, "/videos/" + url.PathEscape(tiktokLink), nil, "Your organisation has no video " + tiktokLink + "."},
		{http.MethodGet, "/accounts/@northwind", nil, "Your organisation has no account @northwind. " + sendAccount + handle},
		{http.MethodDelete, "/videos", map[string]any{"id": "hello"}, "Your organisation has no video hello. " + sendVideo + noHost},
		{http.MethodDelete, "/videos/bulk", map[string]any{"ids": []string{"hello", account, tiktokLink}},
			"Nothing was stopped. Your organisation tracks no video hello. " + sendVideo + noHost + " Your organisation tracks no video " + account + ". " + noVideo + " Your organisation tracks no video " + tiktokLink + "."},
		{http.MethodPost, "/refresh/videos", map[string]any{"link": "hello"}, "Your organisation tracks no video hello. " + sendVideo + noHost},
		{http.MethodPost, "/refresh/accounts", map[string]any{"link": "@northwind"}, "Your organisation tracks no account @northwind. " + sendAccount + handle},
	} {
		p := c.send(test.method, test.target, test.body).requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Equal(t, test.want, p.Detail, "%s %s", test.method, test.target)
	}
	t.Run("many long texts", func(t *testing.T) {
		texts := make([]string, 10)
		for n := range texts {
			texts[n] = strings.Repeat("é", 2040) + fmt.Sprint(n)
		}
		// The client of the tests requires that the detail is no longer than the contract allows.
		p := c.send(http.MethodDelete, "/videos/bulk", map[string]any{"ids": texts}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Len(t, p.Errors, 10)
		require.True(t, strings.HasSuffix(p.Detail, ` The member "errors" lists the other links.`))
	})
}

func TestWrongKind_namesTheLinkAndItsPlaceInTheRequest(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	const account = "https://www.tiktok.com/@northwind"
	for path, test := range map[string]struct{ link, want string }{
		"/videos":           {account + "?lang=en", "The link leads to the account " + account + ", but this operation needs the link of a video."},
		"/refresh/videos":   {account + "?lang=en", "The link leads to the account " + account + ", but this operation needs the link of a video."},
		"/accounts":         {tiktokLink, "The link leads to the video " + tiktokLink + ", but this operation needs the link of an account."},
		"/refresh/accounts": {tiktokLink, "The link leads to the video " + tiktokLink + ", but this operation needs the link of an account."},
	} {
		p := c.send(http.MethodPost, path, map[string]any{"link": test.link}).requireProblem(http.StatusBadRequest, server.CodeWrongKind)
		require.Equal(t, test.want, p.Detail, path)
		require.Len(t, p.Errors, 1, path)
		require.Equal(t, "/link", *p.Errors[0].Pointer, path)
	}
}

func TestUnknownPath_namesThePathAndWhatIsAllowed(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	for path, want := range map[string]string{
		"/api/v1/videos":                  "The path /api/v1/videos does not exist. /docs lists all operations.",
		"/videos/":                        "The path /videos/ does not exist. Check the slash at its end: perhaps an id is missing after it, or there must be no slash. /docs lists all operations.",
		"/" + strings.Repeat("a", 10_001): "This path does not exist. /docs lists all operations.",
	} {
		require.Equal(t, want, c.send(http.MethodGet, path, nil).requireProblem(http.StatusNotFound, server.CodeNotFound).Detail)
	}
	for method, shown := range map[string]string{http.MethodPut: "PUT", strings.Repeat("A", 30_000): strings.Repeat("A", 99) + "…"} {
		p := c.send(method, "/statistics/videos", nil).requireProblem(http.StatusMethodNotAllowed, server.CodeMethodNotAllowed)
		require.Equal(t, fmt.Sprintf("The path /statistics/videos does not support the method %q; it supports OPTIONS, GET, HEAD.", shown), p.Detail)
	}
}

func TestErrorMessages_sayWhatIsWrongWithHeaders(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, header := range []string{c.token, "Basic dXNlcjpwYXNz", "Bearer"} {
		p := a.send(t, http.MethodGet, "/videos", nil, "Authorization", header).requireProblem(http.StatusUnauthorized, server.CodeTokenMalformed)
		require.Equal(t, "The Authorization header does not consist of the word Bearer and a token. Send the header Authorization: Bearer rt_….", p.Detail)
	}
	collection := "/collections/" + c.createCollection(map[string]any{"name": "Launch"}).String()
	p := c.send(http.MethodPatch, collection, map[string]any{"name": "Spring"}, "If-Match", `"never"`).requireProblem(http.StatusPreconditionFailed, server.CodePreconditionFailed)
	require.Contains(t, p.Detail, "the collection was changed after it was read, or it never had this ETag")
}

func TestRefresh_messageNamesTheTimeOfTheNextPossibleRefresh(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	for n, tier := range []store.Tier{store.TierPremium, store.TierBasic} {
		c := a.newCaller(t, tier)
		c.track(videoURL(n))
		fetchDueItems(a)
		a.Clock.Advance(90 * time.Second)
		got := decode[client.RefreshNotDue](c.send(http.MethodPost, "/refresh/videos", map[string]any{"link": videoURL(n)}).requireStatus(http.StatusOK))
		require.Contains(t, got.Message, "nothing was scheduled. They can be refreshed from ")
		_, text, _ := strings.Cut(got.Message, " from ")
		from, err := time.Parse("2006-01-02 15:04 UTC on.", text)
		require.NoError(t, err, text)
		require.False(t, from.Before(got.RefreshAfter), "%s is before %s", from, got.RefreshAfter)
		require.Less(t, from.Sub(got.RefreshAfter), time.Minute)
	}
}

func TestContract_explainsEachRegularExpressionInWords(t *testing.T) {
	t.Parallel()
	const anyText = `^[^\x00]*$`                          // the server refuses NUL characters before it checks patterns
	anyLine := regexp.MustCompile(`^\^\[\^[^\]]*\]\*\$$`) // for a schema with x-text, the error names the forbidden character, so x-allowed is not needed
	var requireWords func(name string, s *openapi3.Schema)
	requireWords = func(name string, s *openapi3.Schema) {
		allowed, _ := s.Extensions["x-allowed"].(string)
		needsWords := s.Pattern != "" && s.Pattern != anyText && (s.Extensions["x-text"] == nil || !anyLine.MatchString(s.Pattern))
		require.Equal(t, needsWords, allowed != "", "%s must have x-allowed if it has a pattern", name)
		if s.Items != nil {
			requireWords(name+"[]", s.Items.Value)
		}
		for member, child := range s.Properties {
			requireWords(name+"."+member, child.Value)
		}
	}
	for _, op := range sharedContract().operations {
		for _, p := range op.Operation.Parameters {
			requireWords(op.id+" "+p.Value.Name, p.Value.Schema.Value)
		}
		if b := op.Operation.RequestBody; b != nil {
			requireWords(op.id, b.Value.Content.Get("application/json").Schema.Value)
		}
	}
}

func TestAuthentication_describesTheErrorInASCII(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	for _, header := range []string{"Bearer x", "Basic abc", "Bearer", "Bearer rt_\"\\é" + strings.Repeat("x", 200)} {
		got := a.send(t, http.MethodGet, "/videos", nil, "Authorization", header).requireStatus(http.StatusUnauthorized)
		// RFC 6750, section 3, allows these characters.
		require.Regexp(t, `^Bearer realm="ReelTally", error="invalid_token", error_description="[\x20-\x21\x23-\x5b\x5d-\x7e]+"$`, got.Header.Get("WWW-Authenticate"))
	}
}
