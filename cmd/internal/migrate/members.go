package migrate

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// addAccounts adds the accounts that are members of collections on the remote server to the copies of the collections.
func (w *writer) addAccounts(ctx context.Context) error {
	for remoteID, links := range w.data.members.Entries {
		var ids []uuid.UUID
		for _, text := range links {
			l, known := parseLink(text, link.Account)
			if !known {
				w.summary.MissingMembers++
				continue
			}
			a, err := w.Org.Account(ctx, store.Ref{Link: l})
			if errors.Is(err, store.ErrNotFound) {
				w.summary.MissingMembers++
				continue
			}
			if err != nil {
				return err
			}
			ids = append(ids, a.ID)
		}
		if err := w.addMembers(ctx, w.collections[remoteID], ids, w.Org.AddAccounts); err != nil {
			return err
		}
	}
	return nil
}

// addMembers adds accounts or videos to a collection in this database. The argument add is AddAccounts or AddVideos.
func (w *writer) addMembers(ctx context.Context, collection uuid.UUID, ids []uuid.UUID, add func(context.Context, uuid.UUID, []uuid.UUID) (int64, error)) error {
	for chunk := range slices.Chunk(ids, trackedPerCall) {
		added, err := add(ctx, collection, chunk)
		if err != nil {
			return err
		}
		w.summary.Members += added
	}
	return nil
}

// addVideos adds the videos that are members of collections on the remote server to the copies of the collections.
func (w *writer) addVideos(ctx context.Context) error {
	members := w.videosByCollection()
	if len(members) == 0 {
		return nil
	}
	ofOrganisation, err := w.videoIDs(ctx, nil)
	if err != nil {
		return err
	}
	for remoteID, links := range members {
		to, known := w.collections[remoteID]
		if !known {
			w.summary.MissingMembers += len(links)
			continue
		}
		// A video that belongs to the collection through an account or a hashtag is also in ofCollection, so it is not added.
		ofCollection, err := w.videoIDs(ctx, &to)
		if err != nil {
			return err
		}
		var ids []uuid.UUID
		for _, l := range links {
			key := videoKey{l.Platform, l.ID}
			if id, exists := ofOrganisation[key]; !exists {
				w.summary.MissingMembers++
			} else if _, isMember := ofCollection[key]; !isMember {
				ids = append(ids, id)
			}
		}
		add := func(ctx context.Context, to uuid.UUID, ids []uuid.UUID) (int64, error) {
			return w.Org.AddVideos(ctx, to, ids, nil)
		}
		if err := w.addMembers(ctx, to, ids, add); err != nil {
			return err
		}
	}
	return nil
}

// videosByCollection returns the links of the videos in each remote collection. The keys are the ids of the remote collections. It counts links that
// are not valid as missing members.
func (w *writer) videosByCollection() map[string][]link.Link {
	members := map[string][]link.Link{}
	for _, v := range w.data.videos.Entries {
		l, valid := parseLink(v.Link, link.Video)
		if !valid {
			w.summary.MissingMembers += len(v.LabelIDs)
			continue
		}
		for _, remoteID := range v.LabelIDs {
			members[remoteID] = append(members[remoteID], l)
		}
	}
	return members
}

// videoKey is the platform of a video and the id that the platform gave to the video.
type videoKey struct {
	platform link.Platform
	id       string
}

// videoIDs returns the ids of the videos in a collection. A nil collection stands for all videos of the organisation.
func (w *writer) videoIDs(ctx context.Context, collection *uuid.UUID) (map[videoKey]uuid.UUID, error) {
	out := map[videoKey]uuid.UUID{}
	query := store.VideoQuery{CollectionID: collection, IncludeRemoved: true, WithoutTotal: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: maxListed}}
	for {
		list, err := w.Org.ListVideos(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, v := range list.Rows {
			out[videoKey{v.Platform, v.ExternalID}] = v.ID
		}
		query.Window.After = list.Next()
		if query.Window.After == nil {
			return out, nil
		}
	}
}

// maxListed is the maximum number of collections or videos that one query of this database returns.
const maxListed = 5000
