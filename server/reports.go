package server

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// reportFormat is the version number of the JSON format of reports.
const reportFormat = 1

// CreateReport answers POST /collections/{collection_id}/reports: it creates a report of a collection. The numbers of a report never
// change.
func (s *Server) CreateReport(ctx context.Context, r api.CreateReportRequestObject) (api.CreateReportResponseObject, error) {
	caller, b := callerFrom(ctx), *r.Body
	var continued *continuedReport // nil if the report continues none
	if b.ContinuesReportID != nil {
		var err error
		if continued, err = s.findContinuedReport(ctx, caller, r.CollectionID, b); err != nil {
			return nil, err
		}
		b.StartDate = new(toAPIDate(continued.EndDate + 1))
	}
	from, to, err := s.totalsPeriod(caller, b.StartDate, b.EndDate)
	if err != nil {
		return nil, moveFaultsToBody(err)
	}
	report := store.NewReport{ID: recordIDFrom(ctx), CollectionID: r.CollectionID, IncludeChildren: isTrue(b.IncludeChildren),
		From: from, To: to, ContinuesReportID: b.ContinuesReportID, CreatedBy: caller.Token.ID}
	if continued != nil {
		if err := continued.read(ctx, caller.Org); err != nil {
			return nil, err
		}
		report.FrozenViews = continued.viewsAtEnd
	}
	report.Document = func(w io.Writer, r store.Report, c store.CollectionTotals) error {
		return writeReport(w, r, c, continued)
	}
	made, err := caller.Org.CreateReport(ctx, report)
	if err != nil {
		return nil, err
	}
	summary, err := toAPIReportSummary(made, caller.View)
	return api.CreateReport201JSONResponse(summary), err
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

// writeReport writes the JSON of a report to w. It encodes one video at a time, because all videos together can take 20 MB. continued is nil if the report
// continues no other.
func writeReport(w io.Writer, r store.Report, c store.CollectionTotals, continued *continuedReport) error {
	accounts := sumByAccount(c.Videos)
	continued.setViewsToRegain(accounts, c.Videos)
	query := store.CollectionTotalsQuery{Collection: r.CollectionID, IncludeChildren: r.IncludeChildren, From: r.StartDate, To: r.EndDate}
	report := api.Report{Format: reportFormat, ID: r.ID, Number: r.Number, OrganisationID: r.OrganisationID, CreatedBy: r.CreatedBy, CreatedAt: toAPITime(r.CreatedAt),
		ContinuesReportID: r.ContinuesReportID, Collections: make([]api.ReportCollection, len(c.Collections)), Statistics: toAPICollectionStatistics(query, c, FullView),
		Days: toAPICollectionDays(c.Days, FullView), Accounts: accounts, Videos: []api.ReportVideo{}}
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
		video := toAPIReportVideo(&c.Videos[i])
		if continued != nil {
			if before, found := continued.viewsAtEnd[video.AdID]; found {
				video.ContinuedViewsAtEnd = &before.Views
			}
		}
		if encoded, err = json.Marshal(video); err != nil {
			return err
		}
		if i > 0 {
			if _, err := io.WriteString(w, ","); err != nil {
				return err
			}
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
		ViewsAtEnd: g.ViewsAtEnd, ViewsGained: g.ViewsGained, Increase: g.Increase, Points: make([]api.ReportPoint, len(v.StoredPoints)),
		AccountID: v.Details.AccountID, Username: displayUsername(v.Details.Username), UploadedAt: toAPIDatePtr(v.Details.UploadedAt)}
	if v.Details.Title != "" {
		out.Title = &v.Details.Title
	}
	for n, p := range v.StoredPoints {
		out.Points[n] = api.ReportPoint{Date: toAPIDate(p.Day), Views: p.Views, Likes: p.Likes, Comments: p.Comments, Shares: p.Shares,
			Bookmarks: p.Bookmarks, Quality: api.HistoryQuality(p.Quality), Source: *p.Source, FetchedAt: toAPITime(*p.FetchedAt)}
	}
	return out
}

// displayUsername returns the name of an account in the form that people know, or nil if username is "". The stored name of an account from a YouTube link
// with /user/ has a suffix, which displayUsername removes.
func displayUsername(username string) *string {
	if username == "" {
		return nil
	}
	return new(link.DisplayUsername(username))
}

// sumByAccount returns the sums of the videos of each account, the account with the most gained views first. Accounts without a known gain come last.
func sumByAccount(videos []store.CollectionVideo) []api.ReportAccount {
	sums := []api.ReportAccount{}
	seen := map[accountKey]int{} // the value is an index in sums
	for i := range videos {
		v := &videos[i]
		key := newAccountKey(v.Details.AccountID, v.Details.Platform, v.Details.Username)
		n, found := seen[key]
		if !found {
			n = len(sums)
			seen[key], sums = n, append(sums, api.ReportAccount{AccountID: v.Details.AccountID, Platform: api.Platform(v.Details.Platform), Username: displayUsername(v.Details.Username)})
		}
		sum := &sums[n]
		sum.Videos++
		addKnown(&sum.ViewsAtEnd, &sum.UnknownViews, v.EndViews)
		addKnown(&sum.ViewsGained, &sum.UnknownGains, v.Gained)
	}
	slices.SortStableFunc(sums, func(a, b api.ReportAccount) int { return store.CompareGains(a.ViewsGained, b.ViewsGained) })
	return sums
}

// addKnown adds a count to a sum, or 1 to unknown if the count is unknown. The sum stays nil until the first known count.
func addKnown(sum **int64, unknown *int64, count *int64) {
	switch {
	case count == nil:
		*unknown++
	case *sum == nil:
		*sum = new(*count)
	default:
		**sum += *count
	}
}

// ListReports answers GET /collections/{collection_id}/reports with the reports of a collection.
func (s *Server) ListReports(ctx context.Context, r api.ListReportsRequestObject) (api.ListReportsResponseObject, error) {
	p := r.Params
	query := store.ReportQuery{CollectionID: r.CollectionID, Order: orderOf(nil, "number", p.OrderDirection)}
	page, err := s.readPage(ctx, pageParams{page: p.Page, limit: p.Limit, cursor: p.Cursor}, query.Order, nil, r.CollectionID)
	if err != nil {
		return nil, err
	}
	return answerList(ctx, s, listRequest[store.Report]{page: page, encode: encodeReportSummary, allRows: true,
		find: func(o *store.Org, w store.Window, _ func(*store.Report) error) (*store.List[store.Report], error) {
			query.Window = w
			return o.ListReports(ctx, query)
		}})
}

// UpdateReport answers PATCH /reports/{report_id}: it changes who can open the share page of a report, and what the page shows.
func (s *Server) UpdateReport(ctx context.Context, r api.UpdateReportRequestObject) (api.UpdateReportResponseObject, error) {
	patch, err := readSharing(r.Body.Access, r.Body.ShareExpiresAt, r.Body.DisplaySettings)
	if err != nil {
		return nil, err
	}
	org := callerFrom(ctx).Org
	patch.PasswordHash, err = hashPassword(ctx, r.Body.Password, func() error {
		_, err := org.Report(ctx, r.ReportID)
		return err
	})
	if err != nil {
		return nil, err
	}
	_, err = org.UpdateReport(ctx, r.ReportID, patch)
	if errors.Is(err, store.ErrPasswordRequired) {
		return nil, passwordRequiredError("report")
	}
	return api.UpdateReport204Response{}, err
}

// GetReport answers GET /reports/{report_id} with the stored bytes of a report. If the organisation's tier masks metrics, or the caller does not
// want all videos and points, it answers with a part of the report.
func (s *Server) GetReport(ctx context.Context, r api.GetReportRequestObject) (api.GetReportResponseObject, error) {
	caller := callerFrom(ctx)
	withVideos, withPoints := r.Params.IncludeVideos == nil || *r.Params.IncludeVideos, r.Params.IncludePoints == nil || *r.Params.IncludePoints
	if caller.View.masked {
		part, err := readPartOfReport(ctx, caller.Org, r.ReportID, false)
		return api.GetReport200JSONResponse(maskReport(part, caller.View)), err
	}
	report, err := caller.Org.Report(ctx, r.ReportID)
	if err != nil {
		return nil, err
	}
	sum, err := hex.DecodeString(report.Checksum)
	if err != nil {
		return nil, err
	}
	if withVideos && withPoints {
		if err := setETag(ctx, hashToETag(sum)); err != nil {
			return nil, err
		}
		document, err := caller.Org.ReportDocument(ctx, r.ReportID)
		return reportBytes(document), err
	}
	if err := setETag(ctx, s.partOfReportETag(sum, withVideos)); err != nil {
		return nil, err
	}
	part, err := readPartOfReport(ctx, caller.Org, r.ReportID, withVideos)
	return api.GetReport200JSONResponse(part), err
}

// partOfReportETag returns the ETag of a part of a report. The document is sent as it was stored, but a part is encoded again with the members of the
// current contract. So the ETag of a part also depends on the text of the contract.
func (s *Server) partOfReportETag(checksum []byte, withVideos bool) string {
	return bodyETag(fmt.Appendf(checksum, "%s include_videos=%t", s.contract.etag, withVideos))
}

// reportBytes is the response of getReport: the JSON of a report.
type reportBytes []byte

// VisitGetReportResponse implements the generated response interface of getReport.
func (b reportBytes) VisitGetReportResponse(w http.ResponseWriter) error {
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(b)
	return err
}

// maskReport returns the part of a report that a tier without metrics can see: its numbers are null, and it has no days, accounts and videos.
func maskReport(r api.Report, v View) api.Report {
	r.Statistics = api.ReportStatistics{CollectionID: r.Statistics.CollectionID, StartDate: r.Statistics.StartDate, EndDate: r.Statistics.EndDate,
		IncludeChildren: r.Statistics.IncludeChildren, MetricsMasked: v.MetricsMasked()}
	r.Days, r.Accounts, r.Videos = []api.CollectionHistoryPoint{}, nil, []api.ReportVideo{}
	return r
}

// readPartOfReport returns a report without the stored points of its videos, and without the videos if withVideos is false. It decodes one video at
// a time, and never the points: those of a large report take 13 MB of JSON, and more when they are decoded.
func readPartOfReport(ctx context.Context, org *store.Org, id uuid.UUID, withVideos bool) (out api.Report, err error) {
	err = org.ReadReport(ctx, id, func(document io.Reader) error {
		decoder := json.NewDecoder(document)
		members, err := decodeUntilVideos(decoder)
		if err != nil {
			return err
		}
		encoded, err := json.Marshal(members)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(encoded, &out); err != nil {
			return err
		}
		out.Videos = []api.ReportVideo{}
		if !withVideos {
			return nil
		}
		if out.Statistics.Videos != nil {
			out.Videos = make([]api.ReportVideo, 0, *out.Statistics.Videos)
		}
		for decoder.More() {
			video := struct {
				api.ReportVideo
				Points ignoredJSON `json:"points"`
			}{ReportVideo: api.ReportVideo{Points: []api.ReportPoint{}}}
			if err := decoder.Decode(&video); err != nil {
				return err
			}
			out.Videos = append(out.Videos, video.ReportVideo)
		}
		return nil
	})
	return out, err
}

// decodeUntilVideos decodes the part of a report before its videos, and returns the members of this part. The caller then decodes one video after the
// other with the same decoder.
func decodeUntilVideos(decoder *json.Decoder) (map[string]json.RawMessage, error) {
	if _, err := decoder.Token(); err != nil { // the token is the brace that begins the document
		return nil, err
	}
	members := map[string]json.RawMessage{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		if name == "videos" { // the last member: see writeReport
			break
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		members[fmt.Sprint(name)] = value
	}
	_, err := decoder.Token() // the token is the bracket that begins the array of videos
	return members, err
}

// ignoredJSON is the type of a JSON value that is not decoded.
type ignoredJSON struct{}

// UnmarshalJSON does nothing.
func (*ignoredJSON) UnmarshalJSON([]byte) error { return nil }

// encodeReportSummary appends the JSON of a report's description to out.
func encodeReportSummary(out []byte, r *store.Report, v View) ([]byte, error) {
	summary, err := toAPIReportSummary(*r, v)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(summary)
	return append(out, encoded...), err
}

// toAPIReportSummary converts the description of a report to the JSON type of the API. If v masks metrics, the checksum and the size are null, because
// a caller could guess the counts of a small report and compare the checksum. The overlaps are null then, too, because they depend on gained views.
func toAPIReportSummary(r store.Report, v View) (api.ReportSummary, error) {
	out := api.ReportSummary{ID: r.ID, Number: r.Number, CollectionID: r.CollectionID, CollectionName: r.CollectionName, IncludeChildren: r.IncludeChildren,
		StartDate: toAPIDate(r.StartDate), EndDate: toAPIDate(r.EndDate), ContinuesReportID: r.ContinuesReportID, CreatedBy: r.CreatedBy, CreatedAt: toAPITime(r.CreatedAt),
		Bytes: v.Count(&r.Bytes), Access: api.Access(r.Access), Hash: r.Hash, ShareExpiresAt: toAPITimePtr(r.ShareExpiresAt)}
	if r.DisplaySettings != nil {
		out.DisplaySettings = json.RawMessage(*r.DisplaySettings)
	}
	if v.masked {
		return out, nil
	}
	out.Checksum = &r.Checksum
	overlaps, err := r.ListOverlaps()
	if overlaps != nil {
		out.Overlaps = make([]api.ReportOverlap, len(overlaps))
		for n, o := range overlaps {
			out.Overlaps[n] = api.ReportOverlap{ReportID: o.ReportID, Number: o.Number, CollectionName: o.CollectionName,
				StartDate: toAPIDate(o.StartDate), EndDate: toAPIDate(o.EndDate), Videos: o.Videos, ViewsGained: o.ViewsGained, ViewsAtStart: o.ViewsAtStart}
		}
	}
	return out, err
}
