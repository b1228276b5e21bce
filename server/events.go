package server

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// ListEvents answers GET /events with the organisation's events.
func (s *Server) ListEvents(ctx context.Context, r api.ListEventsRequestObject) (api.ListEventsResponseObject, error) {
	p := r.Params
	p.Types = slices.Compact(slices.Sorted(slices.Values(p.Types))) // sorted, so that a cursor is also valid for the same types in another order
	page, err := s.readPage(ctx, pageParams{limit: p.Limit, cursor: p.Cursor}, store.Order{Column: "position"}, nil, p.Types)
	if err != nil {
		return nil, err
	}
	missing, newest, err := callerFrom(ctx).Org.OpenFeed(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkFeedPosition(page.after, missing); err != nil {
		return nil, err
	}
	var query store.EventQuery
	for _, t := range p.Types {
		query.Types = append(query.Types, store.EventType(t))
	}
	return answerList(ctx, s, listRequest[store.Event]{page: page, encode: newRowEncoder(toAPIEvent), allRows: true,
		find: func(o *store.Org, w store.Window, _ func(*store.Event) error) (*store.List[store.Event], error) {
			query.Window = w
			return o.ListEvents(ctx, query)
		},
		otherMembers: func(found *store.List[store.Event], _ api.Pagination) (any, error) {
			return s.paginateEvents(page, found, missing, newest)
		}})
}

// checkFeedPosition returns an error if the feed lacks an event after the cursor, because the event was deleted
// or never recorded. lastMissing is the position of the last such event.
func checkFeedPosition(cursor *store.Position, lastMissing int64) error {
	if cursor == nil {
		return nil
	}
	if position, err := strconv.ParseInt(cursor.Value, 10, 64); err != nil || position < lastMissing {
		return invalidRequest(queryFault("cursor", "cursor_expired", "events after this cursor were deleted or not recorded; start again without a cursor, and read the videos once"))
	}
	return nil
}

// eventPagination contains all members of the response of listEvents except the member "data".
type eventPagination struct {
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
}

// paginateEvents returns has_more and next_cursor for a page of events. missing and newest are the results of OpenFeed, which must be called
// before the page is read.
func (s *Server) paginateEvents(page pageRequest, events *store.List[store.Event], missing, newest int64) (eventPagination, error) {
	after := store.EventPosition(missing, uuid.Nil)
	if page.after != nil {
		after = *page.after
	}
	if n := len(events.Rows); n > 0 {
		last := &events.Rows[n-1]
		after = store.EventPosition(last.Position, last.ID)
	}
	more := events.Next() != nil
	// The newest event can have a type that was not requested. If the cursor stayed before this event, the cursor would expire together with the event.
	if position, err := strconv.ParseInt(after.Value, 10, 64); err == nil && !more && position < newest {
		after = store.EventPosition(newest, uuid.Max)
	}
	cursor, err := s.signCursor(cursorContent{After: after, Page: 1}, page.cursor)
	return eventPagination{HasMore: more, NextCursor: cursor}, err
}

// toAPIEvent converts an event to the JSON type of the API. If view masks metrics, the metrics are null.
func toAPIEvent(e store.Event, view View) api.Event {
	out := api.Event{ID: e.ID, Position: e.Position, Type: api.EventType(e.Type), CreatedAt: toAPITime(e.CreatedAt)}
	if v := e.Data.Video; v != nil {
		is := toAPIVideoState(v.VideoState, view)
		out.Data.Video = &api.EventVideo{AdID: v.ID, AdLink: v.Link, Platform: api.Platform(v.Platform), Username: v.Username, LinkedAccountID: v.AccountID, Removed: v.Removed,
			FetchStatus: is.FetchStatus, LatestViews: is.LatestViews, LatestLikes: is.LatestLikes, LatestComments: is.LatestComments, LatestBookmarks: is.LatestBookmarks,
			LatestShares: is.LatestShares, LatestEngagement: is.LatestEngagement, LatestUpdatedAt: is.LatestUpdatedAt, OutlierMultiplier: is.OutlierMultiplier,
			MetricsMasked: view.MetricsMasked()}
		if v.Previous != nil {
			out.Data.Video.Previous = new(toAPIVideoState(*v.Previous, view))
		}
	}
	if a := e.Data.Account; a != nil {
		is := toAPIAccountState(a.AccountState, view)
		out.Data.Account = &api.EventAccount{AccountID: a.ID, AccountLink: a.Link, Platform: api.Platform(a.Platform), Username: a.Username, FetchStatus: is.FetchStatus,
			LatestFollowersCount: is.LatestFollowersCount, LatestFollowingCount: is.LatestFollowingCount, CheckedAt: is.CheckedAt, MetricsMasked: view.MetricsMasked()}
		if a.Previous != nil {
			out.Data.Account.Previous = new(toAPIAccountState(*a.Previous, view))
		}
	}
	if t := e.Data.Threshold; t != nil {
		out.Data.Threshold = &api.EventThreshold{Member: api.EventThresholdMember(t.Member), Value: view.Count(&t.Value)}
	}
	if w := e.Data.Webhook; w != nil {
		out.Data.Webhook = &api.EventWebhook{ID: w.ID, URL: w.URL, Reason: (*string)(w.Reason)}
	}
	return out
}

// toAPIVideoState converts the fetch status and the counts of a video in an event to the JSON type of the API. If view masks metrics, the
// metrics are null.
func toAPIVideoState(v store.VideoState, view View) api.EventVideoState {
	return api.EventVideoState{FetchStatus: api.FetchStatus(v.Status), LatestViews: view.Count(v.Views), LatestLikes: view.Count(v.Likes), LatestComments: view.Count(v.Comments),
		LatestBookmarks: view.Count(v.Bookmarks), LatestShares: view.Count(v.Shares), LatestEngagement: view.Count(v.Engagement),
		LatestUpdatedAt: view.Text(toAPITimePtr(v.UpdatedAt)), OutlierMultiplier: view.Ratio(v.OutlierMultiplier)}
}

// toAPIAccountState converts the fetch status and the counts of an account in an event to the JSON type of the API. If view masks metrics,
// the metrics are null.
func toAPIAccountState(a store.AccountState, view View) api.EventAccountState {
	return api.EventAccountState{FetchStatus: api.FetchStatus(a.Status), LatestFollowersCount: view.Count(a.Followers), LatestFollowingCount: view.Count(a.Following),
		CheckedAt: toAPITimePtr(a.CheckedAt)}
}
