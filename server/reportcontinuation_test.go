package server

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// payments are the views of an account that the reports of a series have paid, and what they should have paid: the highest sum of its views so far.
type payments struct{ sum, highest, paid int64 }

// add adds a report in which the account has the given views, of which it must regain some before they are paid.
func (p *payments) add(views, toRegain int64) {
	p.sum += views
	p.highest = max(p.highest, p.sum)
	p.paid += max(0, views-toRegain)
}

func TestViewsToRegain_letASeriesOfReportsPayEachViewOnce(t *testing.T) {
	t.Parallel()
	id, november := uuid.New(), time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	period := store.Report{StartDate: store.DateOf(november), EndDate: store.DateOf(november) + 29}
	rapid.Check(t, func(t *rapid.T) {
		var continued *continuedReport
		var gains, withStart payments
		for range rapid.IntRange(1, 6).Draw(t, "reports") {
			accounts := []api.ReportAccount{{Platform: api.PlatformTiktok}, {AccountID: &id, Platform: api.PlatformTiktok}}
			account := &accounts[1]
			var gained int64
			if rapid.Bool().Draw(t, "gain is known") {
				gained = rapid.Int64Range(-10, 10).Draw(t, "gained")
				account.ViewsGained = &gained
			}
			start := rapid.Int64Range(0, 10).Draw(t, "views at the start")
			continued.setViewsToRegain(accounts, nil)
			require.Zero(t, *accounts[0].ViewsToRegain, "an account must not regain the views of another")
			gains.add(gained, *account.ViewsToRegain)
			withStart.add(gained+start, *account.ViewsToRegainWithStart)

			encoded, err := json.Marshal(accounts)
			require.NoError(t, err)
			continued = &continuedReport{Report: period, viewsAtEnd: map[uuid.UUID]store.FrozenViews{}, toRegain: map[accountKey]viewsToRegain{}, accountOf: map[uuid.UUID]accountKey{}}
			require.NoError(t, continued.addAccounts(encoded))
			video := continuedVideo{AdLink: "https://www.tiktok.com/@some/video/7000000000000000001", AccountID: &id, ViewsAtStart: &start,
				UploadedAt: &openapi_types.Date{Time: november}, StartDay: &openapi_types.Date{Time: november.AddDate(0, 0, rapid.IntRange(0, 29).Draw(t, "day"))}}
			continued.addVideo(&video)
			old := video
			old.UploadedAt = &openapi_types.Date{Time: november.AddDate(0, 0, -1)} // not uploaded in the period
			continued.addVideo(&old)
		}
		require.Equal(t, gains.highest, gains.paid)
		require.Equal(t, withStart.highest, withStart.paid)
	})
}

func TestViewsToRegain_followTheVideosOfAnAccount(t *testing.T) {
	t.Parallel()
	first, second, merged, other := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	r := &continuedReport{toRegain: map[accountKey]viewsToRegain{}, accountOf: map[uuid.UUID]accountKey{}}
	var videos []store.CollectionVideo
	add := func(before, after accountKey) {
		id := uuid.New()
		r.accountOf[id] = before
		v := store.CollectionVideo{ID: id}
		v.Details.Platform, v.Details.Username = after.platform, after.username
		if after.id != uuid.Nil {
			v.Details.AccountID = &after.id
		}
		videos = append(videos, v)
	}
	named := accountKey{platform: link.Instagram, username: "mira"}
	for key, lost := range map[accountKey]int64{{id: first}: 100, {id: second}: 20, named: 3, {id: other}: -5, {id: uuid.New()}: 7000} {
		r.toRegain[key] = viewsToRegain{lost, 2 * lost}
	}
	add(accountKey{id: first}, accountKey{id: merged})
	add(accountKey{id: first}, accountKey{id: other}) // one of its three videos moved to another account
	add(accountKey{id: first}, accountKey{id: merged})
	add(accountKey{id: second}, accountKey{id: merged})
	add(named, accountKey{id: merged})
	add(accountKey{id: other}, accountKey{id: other})
	accounts := []api.ReportAccount{{AccountID: &merged}, {AccountID: &other}, {AccountID: &first}}
	r.setViewsToRegain(accounts, videos)
	for n, want := range []int64{123, 0, 0} {
		require.Equal(t, []int64{want, 2 * want}, []int64{*accounts[n].ViewsToRegain, *accounts[n].ViewsToRegainWithStart}, "account %d", n)
	}
}
