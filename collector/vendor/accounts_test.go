package vendor_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// accountTarget returns the target that the collector creates for the link of an account.
func accountTarget(t testing.TB, pasted string, depth int) queue.Target {
	t.Helper()
	l, err := link.Parse(pasted)
	require.NoError(t, err)
	require.Equal(t, link.Account, l.Kind)
	out := queue.Target{Platform: l.Platform, Kind: queue.KindAccount, ExternalID: "@" + l.Handle, Handle: l.Handle, Link: l.Canonical, Depth: depth}
	if l.ID != "" {
		out.ExternalID, out.AccountID = l.ID, l.ID
	}
	return out
}

const miraID = "6801234567890123456"

func profileAnswer(id, handle, followers, private string) sourcetest.Reply {
	return sourcetest.Reply{Body: fmt.Sprintf(`{"data":{"user":{"id":%s,"uniqueId":%q,"nickname":"Mira","signature":"Tiny kitchen, big pancakes","verified":false,
		"privateAccount":%s,"secret":false,"bioLink":{"link":"https://mira.example/cooks","risk":0}},"stats":{"followerCount":%s,"followingCount":12,"heart":99}}}`,
		id, handle, private, followers)}
}

func listPage(next string, entries ...string) sourcetest.Reply {
	return sourcetest.Reply{Body: `{"data":[` + strings.Join(entries, ",") + `],"nextCursor":` + next + `}`}
}

func listEntryJSON(id, uploaded string) string {
	return fmt.Sprintf(`{"aweme_id":%q,"desc":"…","create_time":%s,"statistics":{"play_count":7}}`, id, uploaded)
}

func foundVideo(id string, at time.Time) ingest.FoundVideo {
	return ingest.FoundVideo{ID: id, Link: "https://www.tiktok.com/@mira.cooks/video/" + id, UploadedAt: new(store.InstantOf(at))}
}

func TestEnsembleData_fetchesAccounts(t *testing.T) {
	t.Parallel()
	ok := source.AccountFacts{
		ID: new(miraID), Username: new("mira.cooks"), Name: new("Mira"), Bio: new("Tiny kitchen, big pancakes"), ProfileLink: new("https://mira.example/cooks"),
		Followers: new(int64(1200)), Following: new(int64(12)), Private: new(false), Listed: true,
		Videos: []ingest.FoundVideo{
			foundVideo(pancakes, time.Date(2024, 6, 21, 8, 53, 20, 0, time.UTC)), foundVideo(train, time.Date(2025, 10, 14, 0, 0, 0, 0, time.UTC)),
		},
	}
	quoted := `"` + miraID + `"`
	mira := profileAnswer(quoted, "Mira.Cooks", "1200", "false")
	pages := []sourcetest.Reply{listPage("1718960000000", listEntryJSON(pancakes, "1718960000")), listPage("null", listEntryJSON(train, "1760400000"))}
	refusal := []sourcetest.Reply{{Status: 472, Body: `{"detail":"Private user"}`}}
	bare, private, empty := source.AccountFacts{ID: new(miraID), Listed: true}, ok, ok
	private.Private, private.Listed, private.Videos = new(true), false, nil
	empty.Videos = nil

	answers := map[sourcetest.Case]sourcetest.AccountAnswer{
		sourcetest.OK:             {Profile: mira, Pages: pages, Class: source.OK, Account: &ok},
		sourcetest.Bare:           {Profile: sourcetest.Reply{Body: `{"data":{"user":{"id":` + quoted + `}}}`}, Pages: []sourcetest.Reply{listPage("null")}, Class: source.OK, Account: &bare},
		sourcetest.Gone:           {Profile: sourcetest.Reply{Status: 473, Body: `{"detail":"User not found"}`}, Class: source.Gone},
		sourcetest.WrongTypes:     {Profile: profileAnswer(quoted, "mira.cooks", `{"n":1}`, "false"), Class: source.Temporary},
		sourcetest.Strings:        {Profile: profileAnswer(miraID, "mira.cooks", `"1200"`, `"0"`), Pages: []sourcetest.Reply{listPage(`"1718960000000"`, listEntryJSON(pancakes, `"1718960000"`)), pages[1]}, Class: source.OK},
		sourcetest.Big:            {Profile: profileAnswer(quoted, "mira.cooks", "9007199254740993", "false"), Class: source.Temporary},
		sourcetest.Foreign:        {Profile: profileAnswer(`"42"`, "rails_rain", "5", "false"), Class: source.Temporary},
		sourcetest.PrivateAccount: {Profile: mira, Pages: refusal, Class: source.OK, Account: &private},
		sourcetest.Empty:          {Profile: mira, Pages: []sourcetest.Reply{listPage("null")}, Class: source.OK, Account: &empty},
		sourcetest.Pinned:         {Profile: mira, Pages: []sourcetest.Reply{pages[0], listPage("null", listEntryJSON(train, "1760400000"), listEntryJSON(pancakes, "1718960000"))}, Class: source.OK},
		sourcetest.BrokenEntry:    {Profile: mira, Pages: []sourcetest.Reply{listPage("1718960000000", listEntryJSON(pancakes, "1718960000"), `{"aweme_id":["7"]}`, `7`), pages[1]}, Class: source.OK},
		sourcetest.BrokenList:     {Profile: mira, Pages: []sourcetest.Reply{listPage("null", `{"id":"7382991827364555321"}`)}, Class: source.Temporary},
	}
	refusals := map[sourcetest.Case]sourcetest.Answer{}
	ensembleRefusals(refusals)
	for c, r := range refusals {
		answers[c] = sourcetest.AccountAnswer{Profile: sourcetest.Reply{Status: r.Status, Body: r.Body}, RetryAt: r.RetryAt}
	}
	sourcetest.RunAccountTests(t, sourcetest.AccountHarness{
		New: newTestSource("ensembledata"), Target: accountTarget(t, "https://www.tiktok.com/@Mira.Cooks", 120), Answers: answers,
		IsList: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/tt/user/posts") },
	})
}

func TestSource_sendsAccountRequestsInFormatOfEachVendor(t *testing.T) {
	t.Parallel()
	const key = "s3cret%2BKey%2F42"
	for name, tt := range map[string]struct {
		vendor, link string
		depth        int
		answer       string
		want         []string
		planned      int64
	}{
		"a list that is requested by handle, with several pages in one call": {
			"ensembledata", "https://www.tiktok.com/@mira.cooks", 30, strings.Replace(profileAnswer(`"1"`, "mira.cooks", "5", "false").Body, `{"data":`, `{"nextCursor":9,"data":`, 1),
			[]string{"GET /tt/user/info?username=mira.cooks&token=" + key + " [ ] ", "GET /tt/user/posts?username=mira.cooks&depth=3&token=" + key + " [ ] "}, 4,
		},
		"a list that is requested with the account id from the profile": {
			"ensembledata", "https://www.instagram.com/mira_cooks/", 0, `{"data":{"id":"178","username":"mira_cooks","reels":[],"nextCursor":"next"}}`,
			[]string{
				"GET /instagram/user/detailed-info?username=mira_cooks&token=" + key + " [ ] ", "GET /instagram/user/reels?user_id=178&depth=2&token=" + key + " [ ] ",
				"GET /instagram/user/reels?user_id=178&depth=2&start_cursor=next&token=" + key + " [ ] ",
			}, 4,
		},
		"a list with one page per call": {
			"scrapecreators", "https://www.tiktok.com/@mira.cooks", 0,
			`{"user":{"id":"1","uniqueId":"mira.cooks"},"aweme_list":[],"max_cursor":"c 1","has_more":1}`,
			[]string{
				"GET /v1/tiktok/profile?handle=mira.cooks [ " + sourcetest.Credential + "] ", "GET /v3/tiktok/profile/videos?handle=mira.cooks [ " + sourcetest.Credential + "] ",
				"GET /v3/tiktok/profile/videos?handle=mira.cooks&max_cursor=c+1 [ " + sourcetest.Credential + "] ",
			}, 5,
		},
		"list that is shorter than the wanted number of videos": {
			"scrapecreators", "https://www.tiktok.com/@mira.cooks", 0,
			`{"user":{"id":"1","uniqueId":"mira.cooks"},"aweme_list":[],"max_cursor":"0","has_more":0}`,
			[]string{
				"GET /v1/tiktok/profile?handle=mira.cooks [ " + sourcetest.Credential + "] ", "GET /v3/tiktok/profile/videos?handle=mira.cooks [ " + sourcetest.Credential + "] ",
			}, 5,
		},
		"profile and list in one answer, which can have 1000 entries": {
			"apify", "https://www.tiktok.com/@mira.cooks", 5000, `[{"authorMeta":{"id":"1","name":"mira.cooks"},"id":"7382991827364555321"}]`,
			[]string{
				"POST /acts/clockworks~tiktok-scraper/runs?timeout=3300 [Bearer " + sourcetest.Credential + " ] " +
					`{"profiles":["mira.cooks"],"resultsPerPage":1000,"shouldDownloadCovers":false,"shouldDownloadSlideshowImages":false,` +
					`"shouldDownloadSubtitles":false,"shouldDownloadVideos":false}`,
			}, 1,
		},
		"profile and list in one answer": {
			"apify", "https://www.tiktok.com/@mira.cooks", 200, `[{"authorMeta":{"id":"1","name":"mira.cooks"},"id":"7382991827364555321"}]`,
			[]string{
				"POST /acts/clockworks~tiktok-scraper/runs?timeout=3300 [Bearer " + sourcetest.Credential + " ] " +
					`{"profiles":["mira.cooks"],"resultsPerPage":200,"shouldDownloadCovers":false,"shouldDownloadSlideshowImages":false,` +
					`"shouldDownloadSubtitles":false,"shouldDownloadVideos":false}`,
			}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := startRecorder(t, tt.answer)
			s := newSource(t, tt.vendor, web.base, nil)
			batch := []queue.Target{accountTarget(t, tt.link, tt.depth)}
			require.Equal(t, tt.planned, s.Plan(batch)[0][0].Units)
			_, _ = s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			for _, want := range tt.want {
				require.Equal(t, want, <-web.requests)
			}
			require.Empty(t, web.requests)
		})
	}
}

func TestSource_detectsReusedHandle(t *testing.T) {
	t.Parallel()
	known := accountTarget(t, "https://www.tiktok.com/@mira.cooks", 0)
	known.AccountID = miraID
	for name, tt := range map[string]struct {
		answer sourcetest.Reply
		class  source.Class
	}{
		"the profile of another account": {profileAnswer(`"42"`, "mira.cooks", "5", "false"), source.OtherOwner},
		"a renamed account":              {profileAnswer(`"`+miraID+`"`, "mira.bakes", "5", "true"), source.OK},
		"a profile without id":           {sourcetest.Reply{Body: `{"data":{"stats":{"followerCount":5}}}`}, source.Temporary},
		"a list without a profile":       {sourcetest.Reply{Body: `{"data":[]}`}, source.Temporary},
		"a profile that is a string":     {sourcetest.Reply{Body: `{"data":"x"}`}, source.Temporary},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, "ensembledata", startRecorder(t, tt.answer.Body).base, nil)
			results, err := s.Fetch(t.Context(), []queue.Target{known}, source.NewCallBudget(nil))
			var f *source.Failure
			if tt.class == source.Temporary && err != nil {
				require.ErrorAs(t, err, &f)
				require.Equal(t, source.Temporary, f.Class)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.class, results[0].Class, results[0].Detail)
		})
	}
	t.Run("does not serve an account if no call can request it", func(t *testing.T) {
		t.Parallel()
		s := newSource(t, "ensembledata", "http://127.0.0.1:1", nil)
		for _, pasted := range []string{"https://www.tiktok.com/share/user/6801234567890123456", "https://www.youtube.com/@mira", "https://www.facebook.com/mira"} {
			_, ok := s.Serves(accountTarget(t, pasted, 0))
			require.False(t, ok, pasted)
		}
		for _, p := range []link.Platform{link.TikTok, link.Instagram} {
			size, ok := s.Serves(queue.Target{Platform: p, Kind: queue.KindAccount})
			require.True(t, ok)
			require.Equal(t, 1, size)
		}
	})
}

func TestSource_fetchesAccountsFromSandbox(t *testing.T) {
	t.Parallel()
	for name, platforms := range map[string][]link.Platform{
		"ensembledata":   {link.TikTok, link.Instagram},
		"sandbox":        {link.TikTok, link.Instagram, link.Facebook},
		"scrapecreators": {link.TikTok, link.Instagram, link.Facebook},
		"apify":          {link.TikTok},
	} {
		for _, p := range platforms {
			for _, category := range sandbox.AccountCategories(p) {
				t.Run(name+" "+string(p)+" "+string(category), func(t *testing.T) {
					t.Parallel()
					s, world, _ := startSandbox(t, name)
					truth, ok := world.Account(p, world.FindAccount(p, category), sourcetest.Now)
					require.True(t, ok)
					batch := []queue.Target{accountTarget(t, truth.Link, 5000)}
					results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
					require.NoError(t, err)
					requireAccount(t, name, world, truth, results[0])
				})
			}
		}
	}
	t.Run("Facebook by id", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{"sandbox", "scrapecreators"} {
			s, world, _ := startSandbox(t, name)
			truth, ok := world.Account(link.Facebook, world.FindAccount(link.Facebook, sandbox.AccountNormal), sourcetest.Now)
			require.True(t, ok)
			batch := []queue.Target{accountTarget(t, "https://www.facebook.com/profile.php?id="+truth.ID, 5000)}
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err)
			requireAccount(t, name, world, truth, results[0])
		}
	})
}

func requireAccount(t *testing.T, name string, world *sandbox.World, truth sandbox.AccountTruth, r source.Result) {
	t.Helper()
	if name == "apify" {
		// Apify's TikTok scraper returns videos only. For an account without videos it returns nothing. For a private account it returns
		// the same error as for a missing one.
		switch truth.Category {
		case sandbox.AccountEmpty:
			require.Equal(t, source.Temporary, r.Class)
			return
		case sandbox.AccountPrivate:
			require.Equal(t, source.Gone, r.Class)
			return
		}
	}
	if truth.Category == sandbox.AccountGone {
		require.Equal(t, source.Gone, r.Class)
		return
	}
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.True(t, r.Sandbox)
	a := r.Account
	require.Equal(t, truth.ID, *a.ID)
	require.Equal(t, truth.Handle, *a.Username)
	require.Equal(t, truth.Name, *a.Name)
	require.Equal(t, truth.Bio, *a.Bio)
	require.Equal(t, truth.Followers, a.Followers)
	require.Equal(t, truth.Following, *a.Following)
	if name != "apify" && truth.BioLink != "" {
		require.Equal(t, truth.BioLink, *a.ProfileLink)
	} else {
		require.Nil(t, a.ProfileLink)
	}
	if truth.State == sandbox.Private {
		require.True(t, *a.Private)
		require.False(t, a.Listed)
		require.Empty(t, a.Videos)
		return
	}
	require.True(t, a.Private == nil || !*a.Private)
	require.True(t, a.Listed)
	ids := make([]string, len(a.Videos))
	for i, v := range a.Videos {
		ids[i] = v.ID
		video, ok := world.Video(truth.Platform, v.ID, sourcetest.Now)
		require.True(t, ok)
		require.Equal(t, video.UploadedAt, v.UploadedAt.Time())
	}
	require.ElementsMatch(t, world.Uploads(truth.Platform, truth.Handle, sourcetest.Now), ids)
}

func TestScrapeCreators_refusesProfileOfAnotherFacebookPage(t *testing.T) {
	t.Parallel()
	for username, class := range map[string]source.Class{
		`"other"`: source.Temporary, `"Mira.Cooks"`: source.OK, `"miracooks"`: source.OK, `null`: source.OK, `""`: source.OK,
	} {
		answer := `{"success":true,"id":"100099999999999","username":` + username + `,"name":"Mira","follower_count":5,"reels":[]}`
		r := fetchTarget(t, "scrapecreators", http.StatusOK, answer, accountTarget(t, "https://www.facebook.com/mira.cooks", 0))
		require.Equal(t, class, r.Class, username)
		if class == source.Temporary {
			require.Equal(t, "the answer has an account that was not requested", r.Detail)
		}
		r = fetchTarget(t, "scrapecreators", http.StatusOK, answer, accountTarget(t, "https://www.facebook.com/profile.php?id=100099999999999", 0))
		require.Equal(t, source.OK, r.Class, "a page that is requested by id can have any username, such as %s", username)
	}
}

func TestSource_leavesOutVideosOfOtherAuthors(t *testing.T) {
	t.Parallel()
	const reposted, unknown = "7382991827364555322", "7382991827364555323"
	profile := `"user":{"id":"1","uniqueId":"mira.cooks"}`
	mobile := `{"aweme_id":"` + reposted + `","author":{"uid":"2","unique_id":"stranger"}},{"aweme_id":"` + unknown + `"},` +
		`{"aweme_id":"` + pancakes + `","author":{"uid":1,"unique_id":"Mira.Bakes"}},{"aweme_id":"` + train + `","author":{"unique_id":"Mira.Cooks"}}`
	for vendor, answer := range map[string]string{
		"scrapecreators": `{"success":true,` + profile + `,"aweme_list":[` + mobile + `],"has_more":0}`,
		"apify": `[{"id":"` + pancakes + `","authorMeta":{"id":"1","name":"mira.cooks"}},{"id":"` + reposted + `","authorMeta":{"id":"2","name":"stranger"}},` +
			`{"id":"` + unknown + `"},{"id":"` + train + `","authorMeta":{"name":"mira.cooks"}}]`,
	} {
		s := newSource(t, vendor, startRecorder(t, answer).base, nil)
		results, err := s.Fetch(t.Context(), []queue.Target{accountTarget(t, "https://www.tiktok.com/@mira.cooks", 0)}, source.NewCallBudget(nil))
		require.NoError(t, err)
		require.Equal(t, source.OK, results[0].Class, results[0].Detail)
		require.True(t, results[0].Account.Listed)
		var ids []string
		for _, v := range results[0].Account.Videos {
			ids = append(ids, v.ID)
		}
		require.ElementsMatch(t, []string{pancakes, train, unknown}, ids, vendor)
	}
}

// Apify can return some more items than requested.
func TestSource_readsListWithOneMoreThanTheLargestRequestedNumber(t *testing.T) {
	t.Parallel()
	answer := `[{"id":"` + pancakes + `","authorMeta":{"id":"1","name":"mira.cooks"}}` + strings.Repeat(`,{"id":"`+train+`"}`, 1000) + `]`
	r := fetchTarget(t, "apify", http.StatusOK, answer, accountTarget(t, "https://www.tiktok.com/@mira.cooks", 5000))
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Len(t, r.Account.Videos, 2)
}

func TestSource_acceptsListWithVideosOfOtherAuthorsOnly(t *testing.T) {
	t.Parallel()
	answer := `{"success":true,"user":{"id":"1","uniqueId":"mira.cooks"},"aweme_list":[{"aweme_id":"` + train + `","author":{"uid":"2"}}],"has_more":0}`
	s := newSource(t, "scrapecreators", startRecorder(t, answer).base, nil)
	results, err := s.Fetch(t.Context(), []queue.Target{accountTarget(t, "https://www.tiktok.com/@mira.cooks", 0)}, source.NewCallBudget(nil))
	require.NoError(t, err)
	require.True(t, results[0].Account.Listed)
	require.Empty(t, results[0].Account.Videos)
}

// minimalAccount is the smallest valid vendor description (JSON that describes a vendor's API) with a call for accounts.
const minimalAccount = `{
	"name": "mine", "base_url": "https://vendor.example", "auth": {"in": "bearer"},
	"calls": [{
		"platform": "tiktok", "kind": "account", "path": "/u", "query": [{"name": "name", "value": "{handle}"}],
		"items": ["data"], "fields": {"account_id": "id"},
		"list": {"path": "/l/{id}", "query": [{"name": "from", "value": "{cursor}"}], "items": ["data"], "page": 10, "next": ["next"], "fields": {"id": "id"}}
	}]
}`

func TestSource_doesNotUseAUserNameOfYouTubeAsAHandle(t *testing.T) {
	t.Parallel()
	for placeholder, want := range map[string]bool{"{handle}": false, "{link}": true} {
		config, err := vendor.Decode([]byte(strings.NewReplacer("tiktok", "youtube", "{handle}", placeholder).Replace(minimalAccount)))
		require.NoError(t, err)
		client := fetch.New(fetch.Options{})
		t.Cleanup(client.Close)
		s, err := vendor.New(config, vendor.Options{Key: sourcetest.Credential, Client: client, Now: func() time.Time { return sourcetest.Now }})
		require.NoError(t, err)
		_, ok := s.Serves(accountTarget(t, "https://www.youtube.com/@mira", 0))
		require.True(t, ok, placeholder)
		_, ok = s.Serves(accountTarget(t, "https://www.youtube.com/user/mira", 0))
		require.Equal(t, want, ok, placeholder)
	}
}

func TestDecode_refusesInvalidAccountCalls(t *testing.T) {
	t.Parallel()
	_, err := vendor.Decode([]byte(minimalAccount))
	require.NoError(t, err)
	for name, tt := range map[string]struct{ old, new, want string }{
		"a batch size of 2 in a call for accounts":                        {`"items": ["data"], "fields": {"account_id"`, `"items": ["data"], "batch": {"size": 2, "join": ","}, "fields": {"account_id"`, "calls[0].batch is for videos only"},
		"the member `match` in a call for accounts":                       {`"items": ["data"], "fields": {"account_id"`, `"items": ["data"], "match": {"sole": ["post_id"]}, "fields": {"account_id"`, "calls[0].match is for videos only"},
		"the member `details` in a call for accounts":                     {`"kind": "account"`, `"kind": "account", "details": true`, "calls[0].details is for videos only"},
		"the member `hidden_when_absent` in a call for accounts":          {`"kind": "account"`, `"kind": "account", "hidden_when_absent": ["likes"]`, "calls[0].hidden_when_absent is for videos only"},
		"a profile with a field that only videos have":                    {`"account_id": "id"`, `"account_id": "id", "views": "v"`, "calls[0].fields.views is not a known fact; the facts are account_id, account_name, bio, followers, following, private, profile_link, username"},
		"a profile without the members `account_id` and `username`":       {`"account_id": "id"`, `"bio": "id"`, "calls[0].fields must have \"account_id\" or \"username\""},
		"the member `list` in a call for videos":                          {`"kind": "account"`, `"kind": "video"`, "calls[0].list is for accounts only"},
		"a list request without {id}, {link} and {handle}":                {`/l/{id}`, `/l`, "calls[0].list must have {id}, {link} or {handle} in its path, query or body"},
		"an unknown placeholder":                                          {`{cursor}`, `{pages}`, "calls[0].list.query[0].value has the unknown placeholder {pages}; use {id}, {link}, {handle}, {cursor}, {page}, {units} or {count}"},
		"a profile request with {cursor}":                                 {`"{handle}"`, `"{handle}{cursor}"`, "calls[0].query[0].value has the unknown placeholder {cursor}; use {id}, {link} or {handle}"},
		"a list request with {cursor}, but without the member `next`":     {`"next": ["next"], `, ``, "calls[0].list.next must have a path if {cursor} is used, and no path otherwise"},
		"a list with the member `next`, but without {cursor}":             {`{cursor}`, `0`, "calls[0].list.next must have a path if {cursor} is used, and no path otherwise"},
		"a page size of 0":                                                {`"page": 10`, `"page": 0`, "calls[0].list.page must be 1 to 1000, not 0"},
		"a list request with {units}, but without the member `max_units`": {`{cursor}`, `{cursor}{units}`, "calls[0].list.max_units must be at least 1 if {units} is used, and 0 otherwise, not 0"},
		"a list with the member `max_units`, but without {units}":         {`"page": 10`, `"page": 10, "max_units": 3`, "calls[0].list.max_units must be at least 1 if {units} is used, and 0 otherwise, not 3"},
		"a list whose member `fresh` is above 1000":                       {`"page": 10`, `"page": 10, "fresh": 1001`, "calls[0].list.fresh must be 0 to 1000, not 1001"},
		"a list entry without id":                                         {`{"id": "id"}`, `{"uploaded_at": {"path": "t", "unit": "unix"}}`, "calls[0].list.fields must have id"},
		"a list entry with a field that only videos have":                 {`{"id": "id"}`, `{"id": "id", "views": "v"}`, "calls[0].list.fields.views is not a known fact; the facts are account_id, id, uploaded_at, username"},
		"a list whose member `more` has an empty path":                    {`"page": 10`, `"page": 10, "more": {"path": ""}`, "calls[0].list.more.path must be a simple gjson path such as data.items"},
		"a list with the member `query`, but without the member `path`":   {`"path": "/l/{id}", `, ``, `calls[0].list.path must be set if "method", "query", "body", "next", "next_page", "more" or "max_units" is set`},
		"an unknown member":                                               {`"page": 10`, `"page": 10, "pages": 2`, `unknown field "pages"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, minimalAccount, tt.old)
			_, err := vendor.Decode([]byte(strings.Replace(minimalAccount, tt.old, tt.new, 1)))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestSource_stopsRequestingListPagesWhenBudgetIsSpent(t *testing.T) {
	t.Parallel()
	web := startRecorder(t, `{"user":{"id":"1","uniqueId":"mira.cooks"},"aweme_list":[],"max_cursor":"c 1","has_more":1}`)
	s := newSource(t, "scrapecreators", web.base, nil)
	deep := []queue.Target{accountTarget(t, "https://www.tiktok.com/@mira.cooks", 5000)}
	plan := s.Plan(deep)[0]
	require.Greater(t, plan[0].Units, int64(100))
	plan[0].Units = 2
	budget := source.NewCallBudget(plan)
	results, err := s.Fetch(t.Context(), deep, budget)
	require.NoError(t, err)
	require.Equal(t, source.OK, results[0].Class)
	require.True(t, results[0].Account.ListContinues)
	require.True(t, results[0].Account.Unfinished)
	require.Len(t, web.requests, 2, "there must be one request for the profile and one for a page of the list")
	require.EqualValues(t, 2, budget.Spent()[0].Units)

	plan[0].Units = 1
	_, err = s.Fetch(t.Context(), deep, source.NewCallBudget(plan))
	require.ErrorIs(t, err, source.ErrNoUnits, "an account whose list was not requested must not count as an account without videos")
	require.Len(t, web.requests, 3)
}
