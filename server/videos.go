package server

import (
	"context"
	"strings"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// ListVideos answers GET /videos with the videos of the caller's organisation. Its requirements are in section 4.2 of docs/coverage.md.
func (s *Server) ListVideos(ctx context.Context, r api.ListVideosRequestObject) (api.ListVideosResponseObject, error) {
	p := r.Params
	filters, query, faults := readVideoFilters(p)
	target, linkFaults, err := s.readLinkFilter(ctx, link.Video, p.Link)
	if err != nil {
		return nil, err
	}
	if query.Link, filters.Link = target, p.Link; target != nil && target.Canonical != "" {
		filters.Link = &target.Canonical
	}
	query.Order, query.WithoutLabels = orderOf(p.OrderBy, api.VideoOrderLatestUpdatedAt, p.OrderDirection), isFromPage(ctx)
	page, err := s.readPage(ctx, pageParams{page: p.Page, limit: p.Limit, cursor: p.Cursor}, query.Order, append(faults, linkFaults...), filters)
	if err != nil {
		return nil, err
	}
	return answerList(ctx, s, listRequest[store.Video]{page: page, notInURL: []any{target}, versionInFirstQuery: true, encode: appendVideo,
		find: func(o *store.Org, w store.Window, each func(*store.Video) error) (*store.List[store.Video], error) {
			query.Window, query.Each = w, each
			return o.ListVideos(ctx, query)
		},
		otherMembers: func(_ *store.List[store.Video], p api.Pagination) (any, error) {
			return struct {
				Filters    api.VideoFilters    `json:"filters"`
				Pagination api.VideoPagination `json:"pagination"`
			}{filters, api.VideoPagination{
				Total: p.Total, Page: p.Page, Limit: p.Limit, TotalPages: p.TotalPages, HasMore: p.NextCursor != nil, NextCursor: p.NextCursor,
				OrderBy: api.VideoOrder(page.order.Column), OrderDirection: toAPIDirection(page.order),
			}}, nil
		}})
}

// readLinkFilter parses the query parameter "link" of a list. The result is nil if raw is nil. If the target of a short link no longer exists, the
// result is the zero Link. No video or account matches it, because every stored video and account has a platform.
func (s *Server) readLinkFilter(ctx context.Context, kind link.Kind, raw *string) (target *link.Link, faults []api.Fault, err error) {
	if raw == nil {
		return nil, nil, nil
	}
	l, err := s.parseLink(ctx, kind, *raw)
	switch f := permanentFailure(err); {
	case f == nil && err != nil:
		return nil, nil, err
	case f == nil:
		return &l, nil, nil
	case f.isDeadLink():
		return &link.Link{}, nil, nil
	default:
		return nil, []api.Fault{queryFault("link", f.Code, "%s", f.Detail)}, nil
	}
}

// readVideoFilters reads the query parameters of GET /videos, except for "link". It returns the
// filters for the response, the database query, and the faults of the parameters.
func readVideoFilters(p api.ListVideosParams) (api.VideoFilters, store.VideoQuery, []api.Fault) {
	var faults []api.Fault
	from, errFrom := fromAPITimePtr(p.LatestUpdatedAtStart)
	to, errTo := fromAPITimePtr(p.LatestUpdatedAtEnd)
	if errFrom != nil || errTo != nil {
		faults = append(faults, queryFault("latest_updated_at_start", faultFormat, "latest_updated_at_start or latest_updated_at_end is not a time"))
	}
	if p.UploadedAtStart != nil && p.UploadedAtEnd != nil && p.UploadedAtStart.After(p.UploadedAtEnd.Time) {
		faults = append(faults, queryFault("uploaded_at_start", faultRange, "uploaded_at_start %s is after uploaded_at_end %s", p.UploadedAtStart, p.UploadedAtEnd))
	}
	if from != nil && to != nil && *from > *to {
		faults = append(faults, queryFault("latest_updated_at_start", faultRange, "latest_updated_at_start %s is after latest_updated_at_end %s", *p.LatestUpdatedAtStart, *p.LatestUpdatedAtEnd))
	}
	if p.Q != nil {
		if n := len(strings.Fields(*p.Q)); n > maxSearchWords {
			faults = append(faults, queryFault("q", faultMaxWords, "q must have at most %d words, not %d", maxSearchWords, n))
		}
	}
	username, hashtag := normaliseOptionalText(p.Username, link.FoldUsername), normaliseOptionalText(p.Hashtag, store.FoldTag)
	filters := api.VideoFilters{
		Username: username, LinkedAccountID: p.LinkedAccountID, AdInfoShop: p.AdInfoShop, AdProductIDShop: p.AdProductIDShop,
		HasMetrics: p.HasMetrics, Collections: p.Collections, Hashtag: hashtag, Q: p.Q, IncludeRemoved: isTrue(p.IncludeRemoved), FetchStatus: (*string)(p.FetchStatus),
		UploadedAtRange:      api.DateRange{Start: p.UploadedAtStart, End: p.UploadedAtEnd},
		LatestUpdatedAtRange: api.TimeRange{Start: toAPITimePtr(from), End: toAPITimePtr(to)},
	}
	if filters.Collections == nil {
		filters.Collections = []string{}
	}
	query := store.VideoQuery{
		Username: username, LinkedAccountID: p.LinkedAccountID, UploadedFrom: fromAPIDatePtr(p.UploadedAtStart),
		UploadedTo: fromAPIDatePtr(p.UploadedAtEnd), UpdatedFrom: from, UpdatedTo: to, Shop: p.AdInfoShop,
		ShopProduct: isTrue(p.AdProductIDShop), Collections: p.Collections, Hashtag: hashtag, Words: p.Q,
		IncludeRemoved: isTrue(p.IncludeRemoved), Status: (*store.FetchStatus)(p.FetchStatus), HasMetrics: p.HasMetrics,
	}
	if p.Platform != nil {
		platform, name := link.Platform(*p.Platform), string(*p.Platform)
		query.Platform, filters.Platform = &platform, &name
	}
	return filters, query, faults
}

// maxSearchWords is the maximum number of words in the query parameter "q". It limits the time of a search, because each word makes the
// database search many captions.
const maxSearchWords = 20

// faultRange is the fault code for a range of dates or times that starts after its end, or that starts earlier or later than allowed.
const faultRange = "range"

// isTrue returns true if b is not nil and *b is true. b is nil if the request lacks the parameter.
func isTrue(b *bool) bool { return b != nil && *b }

// normaliseOptionalText returns a pointer to normalise(*s), or nil if s is nil.
func normaliseOptionalText(s *string, normalise func(string) string) *string {
	if s == nil {
		return nil
	}
	f := normalise(*s)
	return &f
}

// GetVideo answers GET /videos/{ad_id} with one video of the caller's organisation. Its requirements are in section 4.2 of docs/coverage.md.
func (s *Server) GetVideo(ctx context.Context, r api.GetVideoRequestObject) (api.GetVideoResponseObject, error) {
	caller := callerFrom(ctx)
	ref, err := s.parseReference(ctx, link.Video, r.AdID)
	if err != nil {
		return nil, err
	}
	v, err := caller.Org.Video(ctx, ref)
	if err != nil {
		return nil, err
	}
	return videoResponse{v, caller.View}, nil
}
