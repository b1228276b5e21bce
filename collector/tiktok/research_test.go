package tiktok_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/store/queue"
)

func newResearch(t testing.TB, base string, client *fetch.Client) *tiktok.Research {
	t.Helper()
	if client == nil {
		client = fetch.New(fetch.Options{Timeout: 10 * time.Second})
		t.Cleanup(client.Close)
	}
	r, err := tiktok.NewResearch(tiktok.ResearchOptions{BaseURL: base, ClientKey: "aw9876", ClientSecret: sourcetest.Credential, Client: client,
		Now: func() time.Time { return sourcetest.Now }})
	require.NoError(t, err)
	return r
}

const clientToken = `{"access_token":"` + sourcetest.Credential + `","expires_in":7200,"token_type":"Bearer"}`

// researchVideoJSON returns an item in an answer of the Research API. Its id is a JSON number, not a string. moreMembers is the JSON text of additional
// members.
func researchVideoJSON(id, moreMembers string) string {
	return fmt.Sprintf(`{"id":%s,"create_time":1766782800,"username":"soup.season","video_description":"Leek soup, slowly","video_duration":58,"music_id":7050000000000000001,%s}`, id, moreMembers)
}

const rowCounts = counts + `,"favorites_count":77`

// nearID is the id of a second video, which was uploaded in the same month as the first video. One query therefore finds both videos.
const nearID = "7588213403351190999"

func TestResearch_fetchesVideos(t *testing.T) {
	t.Parallel()
	first := source.Facts{
		Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)), Shares: new(int64(311)), Bookmarks: new(int64(77)),
		Title: new("Leek soup, slowly"), Username: new(owner), UploadedAt: new(time.Date(2025, 12, 26, 21, 0, 0, 0, time.UTC)), LengthSeconds: new(58.0),
		SongLink: new("https://www.tiktok.com/music/x-7050000000000000001"), HiddenStats: new(false),
	}
	second, british := first, first
	second.Views, second.Likes, second.Comments, second.Shares, second.Bookmarks = new(int64(12)), new(int64(0)), new(int64(0)), new(int64(0)), nil
	british.Bookmarks = new(int64(77))
	bare := &source.Facts{Views: new(int64(5)), HiddenStats: new(true)}
	both := []*source.Facts{&first, &second}
	good, gone, doubtful := []source.Class{source.OK}, []source.Class{source.Missing, source.OK}, []source.Class{source.Temporary, source.OK}

	answers := refusalAnswers()
	spent := answers[sourcetest.QuotaSpent]
	spent.Budget = tiktok.BudgetRequests
	answers[sourcetest.QuotaSpent] = spent
	maps.Copy(answers, map[sourcetest.Case]sourcetest.Answer{
		sourcetest.OK:         {Body: videoListAnswer(researchVideoJSON(soup, rowCounts), researchVideoJSON(nearID, counts2)), Classes: good, Facts: both},
		sourcetest.Bare:       {Body: videoListAnswer(`{"id":`+soup+`,"view_count":5}`, `{"id":`+nearID+`,"view_count":5}`), Classes: good, Facts: []*source.Facts{bare, bare}},
		sourcetest.Gone:       {Body: videoListAnswer(researchVideoJSON(nearID, counts2)), Classes: gone},
		sourcetest.Private:    {Body: videoListAnswer(researchVideoJSON(nearID, counts2)), Classes: gone}, // TikTok leaves out a private video in the same way as a deleted video
		sourcetest.Restricted: {Body: videoListAnswer(researchVideoJSON(soup, counts+`,"favourites_count":77`), researchVideoJSON(nearID, counts2)), Classes: good, Facts: []*source.Facts{&british, &second}},
		sourcetest.WrongTypes: {Body: videoListAnswer(researchVideoJSON(soup, `"view_count":{}`), researchVideoJSON(nearID, counts2)), Classes: doubtful},
		sourcetest.Strings:    {Body: videoListAnswer(strings.Replace(strings.Replace(researchVideoJSON(soup, rowCounts), soup, `"`+soup+`"`, 1), "90211", `"90211"`, 1), researchVideoJSON(nearID, counts2)), Classes: good},
		sourcetest.Big:        {Body: videoListAnswer(researchVideoJSON(soup, counts+`,"favorites_count":9007199254740993`), researchVideoJSON(nearID, counts2)), Classes: doubtful},
		sourcetest.Duplicates: {Body: videoListAnswer(researchVideoJSON(soup, rowCounts), researchVideoJSON(nearID, counts2), researchVideoJSON(soup, counts2)), Classes: doubtful},
		sourcetest.Foreign:    {Body: videoListAnswer(researchVideoJSON(foreign, counts), researchVideoJSON(soup, rowCounts), researchVideoJSON(nearID, counts2)), Classes: good},
		// The id in the answer differs from the requested id, but both ids are equal after a conversion to float64.
		sourcetest.GoneForeign: {Body: videoListAnswer(researchVideoJSON("7588213403351190802", counts), researchVideoJSON(nearID, counts2)), Classes: doubtful},
	})
	sourcetest.Run(t, sourcetest.Harness{
		New: func(t *testing.T, base string, client *fetch.Client) source.Source {
			return newResearch(t, base, client)
		},
		Targets: []queue.Target{videoTarget(soup, owner, true), videoTarget(nearID, "", true)},
		IsMain:  func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/video/query/") },
		Side:    http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, clientToken) }),
		Answers: answers,
	})
}

// videoIDOf returns the id of the nth video that was uploaded on the given day.
func videoIDOf(day string, n int) string {
	when, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return strconv.FormatInt(when.Add(12*time.Hour).Unix()<<32|int64(n), 10)
}

func TestResearch_splitsQueriesByUploadTime(t *testing.T) {
	t.Parallel()
	base, requests := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/oauth/token/") {
			_, _ = io.WriteString(w, clientToken)
			return
		}
		_, _ = io.WriteString(w, videoListAnswer(researchVideoJSON(videoIDOf("2026-03-28", 3), counts)))
	})
	s := newResearch(t, base, nil)
	batch := []queue.Target{
		videoTarget(videoIDOf("2026-03-01", 1), "", false), videoTarget(videoIDOf("2026-03-30", 2), "", false), videoTarget(videoIDOf("2026-03-28", 3), "", false), videoTarget(videoIDOf("2024-12-31", 4), "", false),
		videoTarget(videoIDOf("2026-03-28", 3), "", false), videoTarget("1000000000000000", "", false),
	}
	plan := s.Plan(batch)[0]
	require.Equal(t, []source.Call{{Budget: tiktok.BudgetRequests, Units: 4}, {Budget: tiktok.BudgetRecords, Units: 6}}, plan)
	budget := source.NewCallBudget(plan)
	results, err := s.Fetch(t.Context(), batch, budget)
	require.NoError(t, err)
	require.Equal(t, plan, budget.Spent(), "the number of spent records is not known, so no unit must be returned")
	require.Equal(t, []source.Class{
		source.Missing, source.Temporary, source.OK, source.Temporary, source.OK, source.Unsupported,
	}, resultClasses(results), "the class must be Temporary if the answer has only videos that were not requested")
	require.True(t, results[2].Lags)
	all := requests()
	require.Equal(t, request{"POST /v2/oauth/token/", "", "application/x-www-form-urlencoded", "client_key=aw9876&client_secret=s3cret%2BKey%2F42&grant_type=client_credentials"}, all[0])
	require.Len(t, all, 4)
	const path = "POST /v2/research/video/query/?fields=id%2Ccreate_time%2Cusername%2Cvideo_description%2Cvideo_duration%2Cmusic_id%2Cview_count%2Clike_count%2Ccomment_count%2Cshare_count%2Cfavorites_count"
	for i, want := range []struct {
		from, to string
		ids      []string
	}{
		{"20241230", "20250101", []string{videoIDOf("2024-12-31", 4)}},
		{"20260228", "20260329", []string{videoIDOf("2026-03-01", 1), videoIDOf("2026-03-28", 3)}},
		{"20260329", "20260331", []string{videoIDOf("2026-03-30", 2)}},
	} {
		require.Equal(t, path, all[i+1].line)
		ids, err := json.Marshal(want.ids)
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`{"query":{"and":[{"operation":"IN","field_name":"video_id","field_values":%s}]},"start_date":%q,"end_date":%q,"max_count":100}`,
			ids, want.from, want.to), all[i+1].body)
	}
}

func TestResearch_returnsTemporaryForMissingNewVideo(t *testing.T) {
	t.Parallel()
	reply := videoListAnswer()
	base, _ := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/oauth/token/") {
			_, _ = io.WriteString(w, clientToken)
			return
		}
		_, _ = io.WriteString(w, reply)
	})
	s := newResearch(t, base, nil)
	old, fresh := videoTarget(videoIDOf("2026-03-01", 1), owner, false), videoTarget(videoIDOf("2026-11-15", 1), owner, false)
	fetchClass := func(of queue.Target) source.Class {
		batch := []queue.Target{of}
		results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
		require.NoError(t, err)
		return results[0].Class
	}
	require.Equal(t, source.Missing, fetchClass(old))
	require.Equal(t, source.Temporary, fetchClass(fresh), "the class must be temporary, because a new video may not be indexed yet")
	for _, reply = range []string{okAnswer(`{"videos":[],"has_more":true}`), okAnswer(`{}`)} {
		require.Equal(t, source.Temporary, fetchClass(old), reply)
	}
	_, serves := s.Serves(videoTarget(videoIDOf("2026-11-23", 1), owner, false))
	require.False(t, serves, "an id with a future upload time must not be served")
	_, serves = s.Serves(videoTarget("1000000000000000", owner, false))
	require.False(t, serves, "an id without an upload time must not be served")
	_, serves = s.Serves(accountTarget(owner, 1))
	require.True(t, serves)
}

func TestResearch_returnsVideosFetchedBeforeFailure(t *testing.T) {
	t.Parallel()
	n := 0
	base, _ := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/oauth/token/") {
			_, _ = io.WriteString(w, clientToken)
			return
		}
		if n++; n > 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, errorAnswer("daily_quota_limit_exceeded", "x"))
			return
		}
		_, _ = io.WriteString(w, videoListAnswer(researchVideoJSON(videoIDOf("2024-12-31", 4), counts)))
	})
	s := newResearch(t, base, nil)
	batch := []queue.Target{videoTarget(videoIDOf("2026-03-01", 1), "", false), videoTarget(videoIDOf("2024-12-31", 4), "", false)}
	results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
	require.NoError(t, err)
	require.Equal(t, []source.Class{source.Temporary, source.OK}, resultClasses(results))
}

func TestResearch_fetchesProfiles(t *testing.T) {
	t.Parallel()
	const known = `{"display_name":"Soup Season","bio_description":"Soup","follower_count":1000000000000,"following_count":7,"likes_count":1,"video_count":2,"is_verified":false}`
	for name, c := range map[string]struct {
		status  int
		body    string
		class   source.Class
		account *source.AccountFacts
	}{
		"complete profile": {200, okAnswer(known), source.OK,
			&source.AccountFacts{Username: new(owner), Name: new("Soup Season"), Bio: new("Soup"), Followers: new(int64(1000000000000)), Following: new(int64(7))}},
		"numbers as strings":          {200, okAnswer(strings.Replace(known, "1000000000000", `"12"`, 1)), source.OK, &source.AccountFacts{Username: new(owner), Name: new("Soup Season"), Bio: new("Soup"), Followers: new(int64(12)), Following: new(int64(7))}},
		"list instead of a number":    {200, okAnswer(strings.Replace(known, "1000000000000", `[12]`, 1)), source.Temporary, nil},
		"more followers than allowed": {200, okAnswer(strings.Replace(known, "1000000000000", "1000000000001", 1)), source.Temporary, nil},
		"empty profile":               {200, okAnswer(`{}`), source.Temporary, nil},
		"missing account":             {400, errorAnswer("invalid_params", "username is invalid: cannot find the user"), source.Unsupported, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, requests := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/oauth/token/") {
					_, _ = io.WriteString(w, clientToken)
					return
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			s := newResearch(t, base, nil)
			batch := []queue.Target{accountTarget(owner, 30)}
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err)
			require.Equal(t, c.class, results[0].Class, results[0].Detail)
			require.Equal(t, c.account, results[0].Account)
			require.JSONEq(t, `{"username":"soup.season"}`, requests()[1].body)
		})
	}
	base, _ := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/oauth/token/") {
			_, _ = io.WriteString(w, clientToken)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, errorAnswer("scope_not_authorized", "The project is not approved."))
	})
	s := newResearch(t, base, nil)
	batch := []queue.Target{accountTarget(owner, 30)}
	_, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.AuthFailed, f.Class)
}

func TestResearch_countsQuotaPerUTCDay(t *testing.T) {
	t.Parallel()
	for _, b := range newResearch(t, "https://research.example", nil).Budgets() {
		id, ends := b.Window(time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC))
		require.Equal(t, "2026-11-21", id)
		require.Equal(t, midnight, ends)
		require.Equal(t, map[string]int64{tiktok.BudgetRequests: 1_000, tiktok.BudgetRecords: 100_000}[b.Name], b.Limit)
	}
}
