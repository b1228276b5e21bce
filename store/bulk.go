package store

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// TrackedVideoIDs returns the id of each link's video, in the order of the links. The id is the zero UUID if
// the video is not tracked, or if the link is the zero value.
func (o *Org) TrackedVideoIDs(ctx context.Context, links []link.Link) ([]uuid.UUID, error) {
	ids := make([]uuid.UUID, len(links))
	byPlatform := map[link.Platform][]string{}
	for _, l := range links {
		byPlatform[l.Platform] = append(byPlatform[l.Platform], l.ID)
	}
	var conditions []string
	var args []any
	for _, p := range link.Platforms {
		if external := byPlatform[p]; len(external) > 0 {
			conditions, args = append(conditions, "(videos.platform = ? AND videos.external_id IN ?)"), append(args, p, external)
		}
	}
	if len(conditions) == 0 {
		return ids, nil
	}
	var rows []Video
	err := o.scopedQuery(ctx, "videos").Select("videos.id", "videos.platform", "videos.external_id").
		Where("NOT videos.removed AND ("+strings.Join(conditions, " OR ")+")", args...).Find(&rows).Error
	if err != nil {
		return nil, db.Translate(err)
	}
	tracked := make(map[string]uuid.UUID, len(rows))
	for _, v := range rows {
		tracked[queue.TargetKey(v.Platform, v.ExternalID)] = v.ID
	}
	for i, l := range links {
		ids[i] = tracked[queue.TargetKey(l.Platform, l.ID)]
	}
	return ids, nil
}

// TrackedAccountIDs returns the id of each link's account, in the order of the links. The id is the zero UUID
// if the account is not tracked, or if the link is the zero value.
func (o *Org) TrackedAccountIDs(ctx context.Context, links []link.Link) ([]uuid.UUID, error) {
	ids := make([]uuid.UUID, len(links))
	var rows []Account
	tracked := o.scopedQuery(ctx, "accounts").Select("accounts.id", "accounts.platform", "accounts.external_id", "accounts.source_id", "accounts.username", "accounts.handle_current").Where("accounts.tracked")
	err := filterByLinks(tracked, links).Find(&rows).Error
	if err != nil {
		return nil, db.Translate(err)
	}
	byID, bySourceID, byHandle, unidentified := map[string]uuid.UUID{}, map[string]uuid.UUID{}, map[string]uuid.UUID{}, map[string]uuid.UUID{}
	for _, a := range rows {
		if a.ExternalID != nil {
			byID[queue.TargetKey(a.Platform, *a.ExternalID)] = a.ID
		}
		if a.SourceID != nil {
			bySourceID[queue.TargetKey(a.Platform, *a.SourceID)] = a.ID
		}
		if a.HandleCurrent {
			byHandle[AccountKey(a.Platform, a.Username)] = a.ID
			if a.ExternalID == nil {
				unidentified[AccountKey(a.Platform, a.Username)] = a.ID
			}
		}
	}
	// Find the account by the YouTube user name, by the handle if the link has no id, or else by the platform's id. If no account has this id, use the
	// account without a known id whose handle equals the id, if there is one.
	for i, l := range links {
		user := userNameID(l.Platform, l.Handle)
		switch {
		case user != "":
			ids[i] = bySourceID[queue.TargetKey(l.Platform, user)]
		case l.ID == "":
			ids[i] = byHandle[AccountKey(l.Platform, l.Handle)]
		default:
			var known bool
			if ids[i], known = byID[queue.TargetKey(l.Platform, l.ID)]; !known {
				ids[i] = unidentified[AccountKey(l.Platform, link.FoldUsername(l.ID))]
			}
		}
	}
	return ids, nil
}
