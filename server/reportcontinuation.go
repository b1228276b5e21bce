package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// continuedReport is a report that a new report continues, with what the new report needs of it. The numbers are those of the continued report, and
// never change.
type continuedReport struct {
	store.Report

	// viewsAtEnd has the views of the videos at the end of the report, by the ids of the videos. It lacks videos whose views are unknown.
	viewsAtEnd map[uuid.UUID]store.FrozenViews
	toRegain   map[accountKey]viewsToRegain
	accountOf  map[uuid.UUID]accountKey // the account of each video
}

// viewsToRegain says how many views an account has lost by the end of a report, since the highest sum of its gains in this report and the reports that it
// continues. Until the account has gained as many views again, its gains are views that earlier reports counted. A number below 0 means the same as 0.
type viewsToRegain struct {
	views     int64 // if only gained views are added
	withStart int64 // if the views at the start of videos that were uploaded in the period of a report are added, too
}

// accountKey identifies an account of a report. All videos of a platform whose account is unknown have the same key.
type accountKey struct {
	id       uuid.UUID     // the zero value if the account has no id
	platform link.Platform // "" if the account has an id
	username string        // "" if the account has an id, or if its name is unknown
}

func newAccountKey(id *uuid.UUID, platform link.Platform, username string) accountKey {
	if id != nil {
		return accountKey{id: *id}
	}
	return accountKey{platform: platform, username: username}
}

// findContinuedReport returns the report that a request wants to continue, without its numbers. The new report begins on the day after its end. The
// function fails if the collection has no such report, if this day is in the future or too old for the tier, or if start_date, end_date or
// include_children of the request do not fit the report.
func (s *Server) findContinuedReport(ctx context.Context, caller Caller, collection uuid.UUID, b api.CreateReportRequest) (*continuedReport, error) {
	refuse := func(pointer, format string, args ...any) (*continuedReport, error) {
		fault := bodyFault(pointer, faultConflict, format, args...)
		return nil, &Error{Code: CodeConflict, Faults: []api.Fault{fault}, Detail: withFullStop(fault.Detail)}
	}
	earlier, err := caller.Org.Report(ctx, *b.ContinuesReportID)
	if errors.Is(err, store.ErrNotFound) || err == nil && earlier.CollectionID != collection {
		e := problem(CodeNotFound, "Collection %s has no report %s.", collection, b.ContinuesReportID)
		e.Faults = []api.Fault{bodyFault("/continues_report_id", string(e.Code), "%s", e.Detail)}
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	start, today := earlier.EndDate+1, store.DateOf(s.now())
	oldest := s.oldestDay(caller)
	switch {
	case earlier.IncludeChildren != isTrue(b.IncludeChildren):
		return refuse("/include_children", "include_children is %t; it must be %t, as in report %d, which the new report continues",
			isTrue(b.IncludeChildren), earlier.IncludeChildren, earlier.Number)
	case start > today:
		return refuse("/continues_report_id", "report %d ends on %s; a report can continue it from %s on, and today is %s", earlier.Number, earlier.EndDate, start, today)
	case start < oldest:
		return refuse("/continues_report_id", "report %d ends on %s; for the tier %s, a report can begin on %s at the earliest", earlier.Number, earlier.EndDate, caller.Organisation.Tier, oldest)
	case b.StartDate != nil && store.DateOf(b.StartDate.Time) != start:
		return refuse("/start_date", "start_date is %s; it must be %s, the day after the end of report %d, which the new report continues",
			b.StartDate, start, earlier.Number)
	case b.EndDate != nil && store.DateOf(b.EndDate.Time) < start:
		return refuse("/end_date", "end_date is %s; it must not be before %s, the day after the end of report %d, which the new report continues", b.EndDate, start, earlier.Number)
	}
	return &continuedReport{Report: earlier}, nil
}

// read sets the numbers of the report from its document.
func (r *continuedReport) read(ctx context.Context, org *store.Org) error {
	r.viewsAtEnd, r.toRegain, r.accountOf = map[uuid.UUID]store.FrozenViews{}, map[accountKey]viewsToRegain{}, map[uuid.UUID]accountKey{}
	return org.ReadReport(ctx, r.ID, func(document io.Reader) error {
		decoder := json.NewDecoder(document)
		members, err := decodeUntilVideos(decoder)
		if err != nil {
			return err
		}
		if err := r.addAccounts(members["accounts"]); err != nil {
			return err
		}
		for decoder.More() {
			var video continuedVideo
			if err := decoder.Decode(&video); err != nil {
				return err
			}
			r.addVideo(&video)
		}
		return nil
	})
}

// addAccounts adds the accounts of the report to toRegain. The parameter is their JSON, or nil for an older report without accounts.
func (r *continuedReport) addAccounts(encoded json.RawMessage) error {
	if encoded == nil {
		return nil
	}
	var accounts []struct {
		AccountID              *uuid.UUID    `json:"account_id"`
		Platform               link.Platform `json:"platform"`
		Username               string        `json:"username"`
		ViewsGained            int64         `json:"views_gained"` // 0 if it is unknown
		ViewsToRegain          int64         `json:"views_to_regain"`
		ViewsToRegainWithStart int64         `json:"views_to_regain_with_start"`
	}
	if err := json.Unmarshal(encoded, &accounts); err != nil {
		return err
	}
	for _, a := range accounts {
		r.toRegain[newAccountKey(a.AccountID, a.Platform, a.Username)] =
			viewsToRegain{views: a.ViewsToRegain - a.ViewsGained, withStart: a.ViewsToRegainWithStart - a.ViewsGained}
	}
	return nil
}

// continuedVideo has the members of a video of a report that the next report needs. Decoding all members would need much more memory.
type continuedVideo struct {
	AdID         uuid.UUID           `json:"ad_id"`
	AdLink       string              `json:"ad_link"`
	AccountID    *uuid.UUID          `json:"account_id"`
	Username     string              `json:"username"`
	UploadedAt   *openapi_types.Date `json:"uploaded_at"`
	StartDay     *openapi_types.Date `json:"start_day"`
	EndDay       *openapi_types.Date `json:"end_day"`
	ViewsAtStart *int64              `json:"views_at_start"`
	ViewsAtEnd   *int64              `json:"views_at_end"`
}

// addVideo adds the views of a video of the report. The last day of the report's period counts as the day of the views at the end if the report is older
// and does not have this day.
func (r *continuedReport) addVideo(v *continuedVideo) {
	if v.ViewsAtEnd != nil {
		frozen := store.FrozenViews{Views: *v.ViewsAtEnd, Day: r.EndDate}
		if v.EndDay != nil {
			frozen.Day = store.DateOf(v.EndDay.Time)
		}
		r.viewsAtEnd[v.AdID] = frozen
	}
	parsed, err := link.Parse(v.AdLink)
	if err != nil { // the stored link of a video is always valid, except in a damaged report
		return
	}
	key := newAccountKey(v.AccountID, parsed.Platform, v.Username)
	r.accountOf[v.AdID] = key
	if v.ViewsAtStart == nil || v.StartDay == nil || v.UploadedAt == nil ||
		!store.IsNewInPeriod(store.DateOf(v.UploadedAt.Time), store.DateOf(v.StartDay.Time), r.StartDate, r.EndDate) {
		return
	}
	if sum, found := r.toRegain[key]; found {
		sum.withStart -= *v.ViewsAtStart
		r.toRegain[key] = sum
	}
}

// setViewsToRegain sets the views to regain of the accounts of a report that continues r. The parameter videos has the videos of that report. If r is nil,
// the report continues none, and the views to regain are 0.
func (r *continuedReport) setViewsToRegain(accounts []api.ReportAccount, videos []store.CollectionVideo) {
	sums := map[accountKey]viewsToRegain{}
	if r != nil {
		present := r.presentAccounts(videos)
		for key, lost := range r.toRegain {
			if now, found := present[key]; found {
				key = now
			}
			sum := sums[key]
			sum.views += max(0, lost.views)
			sum.withStart += max(0, lost.withStart)
			sums[key] = sum
		}
	}
	for i := range accounts {
		a, username := &accounts[i], ""
		if a.Username != nil {
			username = *a.Username
		}
		sum := sums[newAccountKey(a.AccountID, link.Platform(a.Platform), username)]
		a.ViewsToRegain, a.ViewsToRegainWithStart = &sum.views, &sum.withStart
	}
}

// presentAccounts maps the key of each account of r to the key that most of its videos have now. The key of an account changes if the account was unknown and
// is now known, and if two records of the account are merged. An account without videos in the list is not in the map.
func (r *continuedReport) presentAccounts(videos []store.CollectionVideo) map[accountKey]accountKey {
	type change struct{ from, to accountKey }
	present, counts := map[accountKey]accountKey{}, map[change]int{}
	for i := range videos {
		v := &videos[i]
		from, found := r.accountOf[v.ID]
		if !found {
			continue
		}
		to := newAccountKey(v.Details.AccountID, v.Details.Platform, link.DisplayUsername(v.Details.Username))
		counts[change{from, to}]++
		best, found := present[from]
		if n, most := counts[change{from, to}], counts[change{from, best}]; !found || n > most || n == most && to == from {
			present[from] = to
		}
	}
	return present
}
