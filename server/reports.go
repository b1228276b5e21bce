package server

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

const (
	// maxRankedVideos is the maximum number of best videos and of worst videos in a collection's
	// statistics. The best videos gained the most views.
	maxRankedVideos = 5
	// reportFormat is the version number of the JSON format of reports.
	reportFormat = 1
)

// GetCollectionHistory answers GET /collections/{collection_id}/history with the daily sums of a collection.
func (s *Server) GetCollectionHistory(ctx context.Context, r api.GetCollectionHistoryRequestObject) (api.GetCollectionHistoryResponseObject, error) {
	caller := CallerFrom(ctx)
	from, to, err := s.historyRange(caller, r.Params.StartDate, r.Params.EndDate)
	if err != nil {
		return nil, err
	}
	query := store.CollectionTotalsQuery{Collection: r.CollectionID, IncludeChildren: isTrue(r.Params.IncludeChildren), From: from, To: to}
	org, err := s.checkNotModified(ctx, "getCollectionHistory", query)
	if err != nil {
		return nil, err
	}
	totals, err := org.CollectionTotals(ctx, query)
	if err != nil {
		return nil, err
	}
	return api.GetCollectionHistory200JSONResponse(toAPICollectionDays(totals.Days, caller.View)), nil
}

// GetCollectionStatistics answers GET /collections/{collection_id}/statistics: the sums of the counts of a collection's videos, and how
// much the views grew in a period.
func (s *Server) GetCollectionStatistics(ctx context.Context, r api.GetCollectionStatisticsRequestObject) (api.GetCollectionStatisticsResponseObject, error) {
	caller := CallerFrom(ctx)
	from, to, err := s.totalsPeriod(caller, r.Params.StartDate, r.Params.EndDate)
	if err != nil {
		return nil, err
	}
	query := store.CollectionTotalsQuery{Collection: r.CollectionID, IncludeChildren: isTrue(r.Params.IncludeChildren), From: from, To: to}
	org, err := s.checkNotModified(ctx, "getCollectionStatistics", query)
	if err != nil {
		return nil, err
	}
	totals, err := org.CollectionTotals(ctx, query)
	if err != nil {
		return nil, err
	}
	t := toAPICollectionStatistics(query, totals, caller.View)
	return api.GetCollectionStatistics200JSONResponse(api.CollectionStatistics{
		CollectionID: t.CollectionID, StartDate: t.StartDate, EndDate: t.EndDate, IncludeChildren: t.IncludeChildren, Videos: t.Videos, VideosRemoved: t.VideosRemoved,
		Views: t.Views, Likes: t.Likes, Comments: t.Comments, Shares: t.Shares, Bookmarks: t.Bookmarks, Engagements: t.Engagements,
		UnknownViews: t.UnknownViews, UnknownLikes: t.UnknownLikes, UnknownComments: t.UnknownComments, UnknownShares: t.UnknownShares,
		UnknownBookmarks: t.UnknownBookmarks, UnknownEngagements: t.UnknownEngagements, UnknownGains: t.UnknownGains, ViewsAtStart: t.ViewsAtStart, ViewsGained: t.ViewsGained, ViewsCorrected: t.ViewsCorrected,
		Increase: t.Increase, Best: toAPIRankedVideos(totals, true, caller.View), Worst: toAPIRankedVideos(totals, false, caller.View),
		MetricsMasked: t.MetricsMasked,
	}), nil
}

// totalsPeriod returns the result of historyRange, but the last day is never after today. It also
// fails if startDate is in the future.
func (s *Server) totalsPeriod(caller Caller, startDate, endDate *openapi_types.Date) (from, to store.Date, err error) {
	if from, to, err = s.historyRange(caller, startDate, endDate); err != nil {
		return 0, 0, err
	}
	today := store.DateOf(s.now())
	if from > today {
		return 0, 0, invalidRequest(queryFault("start_date", faultRange, "start_date %s is in the future; the latest day allowed is today, %s", from, today))
	}
	return from, min(to, today), nil
}

// CreateReport answers POST /collections/{collection_id}/reports: it creates a report of a collection. The numbers of a report never
// change.
func (s *Server) CreateReport(ctx context.Context, r api.CreateReportRequestObject) (api.CreateReportResponseObject, error) {
	caller := CallerFrom(ctx)
	from, to, err := s.totalsPeriod(caller, r.Body.StartDate, r.Body.EndDate)
	if err != nil {
		return nil, moveFaultsToBody(err)
	}
	made, err := caller.Org.CreateReport(ctx, store.NewReport{ID: recordIDFrom(ctx), CollectionID: r.CollectionID, IncludeChildren: isTrue(r.Body.IncludeChildren),
		From: from, To: to, CreatedBy: caller.Token.ID, Document: writeReport})
	if err != nil {
		return nil, err
	}
	return api.CreateReport201JSONResponse(toAPIReportSummary(made, FullView)), nil
}

// moveFaultsToBody changes the faults in err: it replaces the name of a query parameter by the path of the body member with the same name.
func moveFaultsToBody(err error) error {
	e := toError(err)
	for i, f := range e.Faults {
		if f.Name != nil {
			e.Faults[i] = bodyFault("/"+*f.Name, f.Code, "%s", f.Detail)
		}
	}
	return e
}

// writeReport writes the JSON of a report to w. It encodes one video at a time, because all videos together can take 20 MB.
func writeReport(w io.Writer, r store.Report, c store.CollectionTotals) error {
	query := store.CollectionTotalsQuery{Collection: r.CollectionID, IncludeChildren: r.IncludeChildren, From: r.StartDate, To: r.EndDate}
	report := api.Report{Format: reportFormat, ID: r.ID, Number: r.Number, OrganisationID: r.OrganisationID, CreatedBy: r.CreatedBy, CreatedAt: toAPITime(r.CreatedAt),
		Collections: make([]api.ReportCollection, len(c.Collections)), Statistics: toAPICollectionStatistics(query, c, FullView),
		Days: toAPICollectionDays(c.Days, FullView), Videos: []api.ReportVideo{}}
	for i, collection := range c.Collections {
		report.Collections[i] = api.ReportCollection{ID: collection.ID, Name: collection.Name}
	}
	encoded, err := json.Marshal(report)
	if err != nil {
		return err
	}
	const end = "]}" // the JSON of a report ends with these characters, because its last member is the array "videos"
	if _, err := w.Write(bytes.TrimSuffix(encoded, []byte(end))); err != nil {
		return err
	}
	for i := range c.Videos {
		if encoded, err = json.Marshal(toAPIReportVideo(&c.Videos[i])); err != nil {
			return err
		}
		if i > 0 {
			encoded = append([]byte{','}, encoded...)
		}
		if _, err := w.Write(encoded); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, end)
	return err
}

// toAPIReportVideo converts a video of a report, with its gained views and its stored points, to the JSON type of the API.
func toAPIReportVideo(v *store.CollectionVideo) api.ReportVideo {
	g := toAPICollectionGain(*v, FullView)
	out := api.ReportVideo{AdID: g.AdID, AdLink: g.AdLink, Removed: g.Removed, AddedAt: g.AddedAt, StartDay: g.StartDay, EndDay: g.EndDay, ViewsAtStart: g.ViewsAtStart,
		ViewsAtEnd: g.ViewsAtEnd, ViewsGained: g.ViewsGained, Increase: g.Increase, Points: make([]api.ReportPoint, len(v.StoredPoints))}
	for n, p := range v.StoredPoints {
		out.Points[n] = api.ReportPoint{Date: toAPIDate(p.Day), Views: p.Views, Likes: p.Likes, Comments: p.Comments, Shares: p.Shares,
			Bookmarks: p.Bookmarks, Quality: api.HistoryQuality(p.Quality), Source: *p.Source, FetchedAt: toAPITime(*p.FetchedAt)}
	}
	return out
}

// ListReports answers GET /collections/{collection_id}/reports with the reports of a collection.
func (s *Server) ListReports(ctx context.Context, r api.ListReportsRequestObject) (api.ListReportsResponseObject, error) {
	p := r.Params
	query := store.ReportQuery{CollectionID: r.CollectionID, Order: store.Order{Column: "number", Descending: p.OrderDirection == nil || *p.OrderDirection == api.OrderDirectionDesc}}
	page, err := s.readPage(ctx, "listReports", pageParams{p.Page, memberLimit(p.Limit), p.Cursor, true}, query.Order, nil, r.CollectionID)
	if err != nil {
		return nil, err
	}
	return answerList(ctx, s, listRequest[store.Report]{page: page, tag: []any{r.CollectionID, p}, encode: newRowEncoder(toAPIReportSummary),
		find: func(o *store.Org, w store.Window) (*store.List[store.Report], error) {
			query.Window = w
			return o.ListReports(ctx, query)
		}})
}

// GetReport answers GET /reports/{report_id} with the stored bytes of a report. If the organisation's tier masks metrics, it answers with
// the masked report.
func (s *Server) GetReport(ctx context.Context, r api.GetReportRequestObject) (api.GetReportResponseObject, error) {
	caller := CallerFrom(ctx)
	if caller.View.masked {
		return maskedReport(ctx, caller, r)
	}
	report, err := caller.Org.Report(ctx, r.ReportID)
	if err != nil {
		return nil, err
	}
	sum, err := hex.DecodeString(report.Checksum)
	if err != nil {
		return nil, err
	}
	if err := setETag(ctx, hashToETag(sum)); err != nil {
		return nil, err
	}
	_, document, err := caller.Org.ReportDocument(ctx, r.ReportID)
	return reportBytes(document), err
}

// reportBytes is the response of getReport: the stored bytes of a report.
type reportBytes []byte

// VisitGetReportResponse implements the generated response interface of getReport.
func (b reportBytes) VisitGetReportResponse(w http.ResponseWriter) error {
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(b)
	return err
}

// maskedReport returns a report for a tier that does not show metrics: its numbers are null, and it has no days and no videos.
func maskedReport(ctx context.Context, caller Caller, r api.GetReportRequestObject) (api.GetReportResponseObject, error) {
	_, document, err := caller.Org.ReportDocument(ctx, r.ReportID)
	if err != nil {
		return nil, err
	}
	var stored struct {
		api.Report
		Days   skippedValue `json:"days"`
		Videos skippedValue `json:"videos"`
	}
	if err := json.Unmarshal(document, &stored); err != nil {
		return nil, err
	}
	out := stored.Report
	out.Statistics = api.ReportStatistics{CollectionID: out.Statistics.CollectionID, StartDate: out.Statistics.StartDate, EndDate: out.Statistics.EndDate,
		IncludeChildren: out.Statistics.IncludeChildren, MetricsMasked: caller.View.MetricsMasked()}
	out.Days, out.Videos = []api.CollectionHistoryPoint{}, []api.ReportVideo{}
	return api.GetReport200JSONResponse(out), nil
}

// skippedValue is the type of a JSON value that is read but not decoded.
type skippedValue struct{}

// UnmarshalJSON implements json.Unmarshaler and ignores the value.
func (skippedValue) UnmarshalJSON([]byte) error { return nil }

// toAPIReportSummary converts the description of a report to the JSON type of the API. It ignores
// the View, because a summary contains no metrics.
func toAPIReportSummary(r store.Report, _ View) api.ReportSummary {
	return api.ReportSummary{ID: r.ID, Number: r.Number, CollectionID: r.CollectionID, CollectionName: r.CollectionName, IncludeChildren: r.IncludeChildren,
		StartDate: toAPIDate(r.StartDate), EndDate: toAPIDate(r.EndDate), CreatedBy: r.CreatedBy, CreatedAt: toAPITime(r.CreatedAt),
		Checksum: r.Checksum, Bytes: r.Bytes}
}

// toAPICollectionDays returns the daily sums of a collection, the newest day first. If view is
// MaskedView, it returns only the newest day, whose numbers are null.
func toAPICollectionDays(days []store.CollectionDay, view View) []api.CollectionHistoryPoint {
	newest := slices.Clone(days)
	slices.Reverse(newest)
	out := make([]api.CollectionHistoryPoint, len(visiblePoints(newest, view)))
	for i := range out {
		d := &newest[i]
		sums := d.KnownSums()
		out[i] = api.CollectionHistoryPoint{
			Date: toAPIDate(d.Day), Videos: view.Count(&d.Videos), VideosAdded: view.Count(&d.Added), Measured: view.Count(&d.Measured),
			Rounded: view.Count(&d.Rounded), Interpolated: view.Count(&d.Interpolated), Carried: view.Count(&d.Carried), WithoutPoint: view.Count(&d.WithoutPoint),
			Views: view.Count(sums.Views), Likes: view.Count(sums.Likes), Comments: view.Count(sums.Comments), Shares: view.Count(sums.Shares),
			Bookmarks: view.Count(sums.Bookmarks), Engagements: view.Count(sums.Engagement()),
			UnknownViews: view.Count(&d.Unknown.Views), UnknownLikes: view.Count(&d.Unknown.Likes), UnknownComments: view.Count(&d.Unknown.Comments),
			UnknownShares: view.Count(&d.Unknown.Shares), UnknownBookmarks: view.Count(&d.Unknown.Bookmarks),
			ViewsGained: view.Count(&d.ViewsGained), ViewsCorrected: view.Count(&d.ViewsCorrected), ViewsFromAdded: view.Count(&d.ViewsFromAdded),
			ViewsFromKnown: view.Count(&d.ViewsFromKnown), MetricsMasked: view.MetricsMasked(),
		}
	}
	return out
}

// toAPICollectionStatistics converts the sums and gains of a collection to the JSON type of the API. If view is MaskedView, the numbers are
// null.
func toAPICollectionStatistics(q store.CollectionTotalsQuery, c store.CollectionTotals, view View) api.ReportStatistics {
	g := c.Gains()
	sums, unknown := g.Last.KnownSums(), g.Last.Unknown
	return api.ReportStatistics{
		CollectionID: q.Collection, StartDate: toAPIDate(q.From), EndDate: toAPIDate(q.To), IncludeChildren: q.IncludeChildren,
		Videos: view.Count(&g.Last.Videos), VideosRemoved: view.Count(&g.Removed),
		Views: view.Count(sums.Views), Likes: view.Count(sums.Likes), Comments: view.Count(sums.Comments), Shares: view.Count(sums.Shares),
		Bookmarks: view.Count(sums.Bookmarks), Engagements: view.Count(sums.Engagement()),
		UnknownViews: view.Count(&unknown.Views), UnknownLikes: view.Count(&unknown.Likes), UnknownComments: view.Count(&unknown.Comments),
		UnknownShares: view.Count(&unknown.Shares), UnknownBookmarks: view.Count(&unknown.Bookmarks),
		UnknownEngagements: view.Count(&g.Last.UnknownEngagements), UnknownGains: view.Count(&g.Unknown),
		ViewsAtStart: view.Count(g.StartViews), ViewsGained: view.Count(g.Gained), ViewsCorrected: view.Count(&g.Corrected),
		Increase: view.Ratio(percentOf(g.Gained, g.StartViews)), MetricsMasked: view.MetricsMasked(),
	}
}

// percentOf returns gained/start in percent. If gained is 5 and start is 10, it returns 50. It returns nil if gained or start is nil, or if
// start is 0.
func percentOf(gained, start *int64) *float64 {
	if gained == nil || start == nil || *start == 0 {
		return nil
	}
	percent := float64(*gained) / float64(*start) * 100
	return &percent
}

// toAPIRankedVideos returns the best or worst videos of a collection. For MaskedView, it returns no
// videos, because their order would reveal which videos gained more.
func toAPIRankedVideos(c store.CollectionTotals, wantBest bool, view View) []api.CollectionGain {
	out := []api.CollectionGain{}
	if view.masked {
		return out
	}
	for _, v := range c.RankByGain(wantBest, maxRankedVideos) {
		out = append(out, toAPICollectionGain(v, view))
	}
	return out
}

// toAPICollectionGain converts the views that a video gained in a period to the JSON type of the API. If view is MaskedView, the numbers are
// null.
func toAPICollectionGain(v store.CollectionVideo, view View) api.CollectionGain {
	return api.CollectionGain{AdID: v.ID, AdLink: v.Link, Removed: v.Removed, AddedAt: toAPITime(v.AddedAt), StartDay: toAPIDatePtr(v.StartDay), EndDay: toAPIDatePtr(v.EndDay),
		ViewsAtStart: view.Count(v.StartViews), ViewsAtEnd: view.Count(v.EndViews), ViewsGained: view.Count(v.Gained),
		Increase: view.Ratio(percentOf(v.Gained, v.StartViews))}
}
