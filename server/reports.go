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

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/server/web"
	"github.com/reeltally/reeltally/store"
)

// reportFormat is the version number of the JSON format of reports.
const reportFormat = 1

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
	return api.CreateReport201JSONResponse(toAPIReportSummary(made, caller.View)), nil
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
	return answerList(ctx, s, listRequest[store.Report]{page: page, tag: []any{r.CollectionID, p}, encode: newRowEncoder(toAPIReportSummary), allRows: true,
		find: func(o *store.Org, w store.Window) (*store.List[store.Report], error) {
			query.Window = w
			return o.ListReports(ctx, query)
		}})
}

// UpdateReport answers PATCH /reports/{report_id}: it changes who can open the share page of a report.
func (s *Server) UpdateReport(ctx context.Context, r api.UpdateReportRequestObject) (api.UpdateReportResponseObject, error) {
	patch := store.SharingPatch{ShareExpiry: readShareExpiry(r.Body.ShareExpiresAt)}
	if r.Body.Access != nil {
		patch.Access = new(store.Access(*r.Body.Access))
	}
	caller := CallerFrom(ctx)
	if r.Body.Password != nil {
		// Hashing is slow, so it must not run for an unknown report.
		if _, err := caller.Org.Report(ctx, r.ReportID); err != nil {
			return nil, err
		}
		hash, err := store.HashPassword(ctx, *r.Body.Password)
		if err != nil {
			return nil, err
		}
		patch.PasswordHash = &hash
	}
	_, err := caller.Org.UpdateReport(ctx, r.ReportID, patch)
	if errors.Is(err, store.ErrPasswordRequired) {
		return nil, passwordRequiredError("report")
	}
	return api.UpdateReport204Response{}, err
}

// GetReport answers GET /reports/{report_id} with the stored bytes of a report. If the organisation's tier masks metrics, it answers with
// the masked report.
func (s *Server) GetReport(ctx context.Context, r api.GetReportRequestObject) (api.GetReportResponseObject, error) {
	caller := CallerFrom(ctx)
	if caller.View.masked {
		return maskedReport(ctx, caller, r)
	}
	if isFromPage(ctx) {
		return readReport(ctx, caller, r.ReportID, !web.OmitsReportVideos(ctx))
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

// reportBytes is the response of getReport: the JSON of a report.
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
	document, err := readReport(ctx, caller, r.ReportID, false)
	if err != nil {
		return nil, err
	}
	var out api.Report
	if err := json.Unmarshal(document, &out); err != nil {
		return nil, err
	}
	out.Statistics = api.ReportStatistics{CollectionID: out.Statistics.CollectionID, StartDate: out.Statistics.StartDate, EndDate: out.Statistics.EndDate,
		IncludeChildren: out.Statistics.IncludeChildren, MetricsMasked: caller.View.MetricsMasked()}
	out.Days, out.Videos = []api.CollectionHistoryPoint{}, []api.ReportVideo{}
	return api.GetReport200JSONResponse(out), nil
}

// readReport returns the JSON of a report without the stored points of its videos, and without the videos if withVideos is false. It never has the
// points in memory: those of a large report take 13 MB of JSON, and more when they are decoded.
func readReport(ctx context.Context, caller Caller, id uuid.UUID, withVideos bool) (reportBytes, error) {
	var out bytes.Buffer
	err := caller.Org.ReadReport(ctx, id, func(document io.Reader) error {
		decoder := json.NewDecoder(document)
		if _, err := decoder.Token(); err != nil { // the token is the brace that begins the document
			return err
		}
		members := map[string]json.RawMessage{}
		for decoder.More() {
			name, err := decoder.Token()
			if err != nil {
				return err
			}
			if name == "videos" { // the last member: see writeReport
				break
			}
			var value json.RawMessage
			if err := decoder.Decode(&value); err != nil {
				return err
			}
			members[fmt.Sprint(name)] = value
		}
		encoded, err := json.Marshal(members)
		if err != nil {
			return err
		}
		out.Write(bytes.TrimSuffix(encoded, []byte("}")))
		out.WriteString(`,"videos":[`)
		if withVideos {
			err = copyVideosWithoutPoints(&out, decoder)
		}
		out.WriteString("]}")
		return err
	})
	return out.Bytes(), err
}

// copyVideosWithoutPoints reads the array of the videos of a report and writes its elements with an empty array of points.
func copyVideosWithoutPoints(out *bytes.Buffer, report *json.Decoder) error {
	if _, err := report.Token(); err != nil { // the token is the bracket that begins the array
		return err
	}
	var video json.RawMessage
	for n := 0; report.More(); n++ {
		if err := report.Decode(&video); err != nil {
			return err
		}
		// In the JSON of writeReport, the member "removed" follows the points. A string cannot contain the searched texts, because JSON escapes its quotes.
		before, points, found := bytes.Cut(video, []byte(`"points":[`))
		_, after, ended := bytes.Cut(points, []byte(`],"removed":`))
		if !found || !ended {
			return errors.New("the stored JSON of a video lacks its points")
		}
		if n > 0 {
			out.WriteByte(',')
		}
		out.Write(before)
		out.WriteString(`"points":[],"removed":`)
		out.Write(after)
	}
	return nil
}

// toAPIReportSummary converts the description of a report to the JSON type of the API. If v masks metrics, the checksum and the size are null, because
// a caller could guess the counts of a small report and compare the checksum.
func toAPIReportSummary(r store.Report, v View) api.ReportSummary {
	out := api.ReportSummary{ID: r.ID, Number: r.Number, CollectionID: r.CollectionID, CollectionName: r.CollectionName, IncludeChildren: r.IncludeChildren,
		StartDate: toAPIDate(r.StartDate), EndDate: toAPIDate(r.EndDate), CreatedBy: r.CreatedBy, CreatedAt: toAPITime(r.CreatedAt),
		Bytes: v.Count(&r.Bytes), Access: api.Access(r.Access), Hash: r.Hash, ShareExpiresAt: toAPITimePtr(r.ShareExpiresAt)}
	if !v.masked {
		out.Checksum = &r.Checksum
	}
	return out
}
