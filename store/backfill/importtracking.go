package backfill

import (
	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// trackNewVideos tracks the videos that the organisation does not have. If a stored video has no
// account, trackNewVideos finds or creates the account that the import names for the video.
func (i *importState) trackNewVideos(videos []*mergedVideo) error {
	if err := i.setHandlesByID(videos); err != nil {
		return err
	}
	var links []link.Link
	var fresh []*mergedVideo
	handles := make([]link.Link, 0, len(videos))
	for _, m := range videos {
		l := m.in.Link
		if l.Handle == "" && m.named != "" {
			l.Handle = m.named
			l.Canonical = link.WithHandle(l.Platform, l.Canonical, l.Handle)
		}
		switch {
		case m.isNew:
			links, fresh = append(links, l), append(fresh, m)
		case m.lacksAccount() && l.Handle != "":
			handles = append(handles, l)
		}
	}
	if err := i.trackLinks(links, fresh); err != nil || len(handles) == 0 {
		return err
	}
	accounts, err := i.AccountIDs(handles)
	if err != nil {
		return err
	}
	for _, m := range videos {
		for _, l := range handles {
			if id, ok := accounts[store.AccountKey(l.Platform, l.Handle)]; ok && l.Platform == m.before.Platform && l.ID == m.before.ExternalID {
				m.username, m.account = l.Handle, &id
			}
		}
	}
	return nil
}

// setHandlesByID sets the field `named` of each video. If mustFindAccountByID returns false for a video, the value is the
// imported Username. Otherwise, it is the present handle of the account with the imported account id. A missing account is created.
func (i *importState) setHandlesByID(videos []*mergedVideo) error {
	var ids []string
	for _, m := range videos {
		m.named = m.in.Username
		if m.mustFindAccountByID() {
			ids = append(ids, m.in.AccountID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var known []store.Account
	if err := db.Scoped(i.Tx, "accounts", i.ID()).Where("accounts.external_id IN ?", ids).Find(&known).Error; err != nil {
		return err
	}
	named := map[string]*store.Account{}
	for n := range known {
		if a := &known[n]; a.Username != "" {
			named[queue.TargetKey(a.Platform, *a.ExternalID)] = a
		}
	}
	// A created account has no known handle, so its id becomes its handle.
	var links []link.Link
	for _, m := range videos {
		if key := queue.TargetKey(m.in.Link.Platform, m.in.AccountID); m.mustFindAccountByID() && named[key] == nil {
			links = append(links, link.Link{Platform: m.in.Link.Platform, Kind: link.Account, ID: m.in.AccountID, Handle: m.in.AccountID})
		}
	}
	if len(links) > 0 {
		made, err := i.AccountRecords(links)
		if err != nil {
			return err
		}
		for _, a := range made {
			named[queue.TargetKey(a.Platform, *a.ExternalID)] = a
		}
	}
	for _, m := range videos {
		a := named[queue.TargetKey(m.in.Link.Platform, m.in.AccountID)]
		if m.mustFindAccountByID() && a.HandleCurrent { // if HandleCurrent is false, the handle now belongs to another account
			m.named = a.Username
		}
	}
	return nil
}

// mustFindAccountByID returns true if only the id in the import can find the video's account. The import then has this id, the link has no handle,
// and the stored video has neither an account nor a handle. mustFindAccountByID ignores the imported Username.
func (m *mergedVideo) mustFindAccountByID() bool {
	return m.in.AccountID != "" && m.in.Link.Handle == "" && m.lacksAccount()
}

// lacksAccount returns true if the stored video has neither an account nor a handle. A video can have an account without a handle: for example, if
// a source reports only the id of a YouTube channel.
func (m *mergedVideo) lacksAccount() bool {
	return m.before.LinkedAccountID == nil && m.before.Username == ""
}

// trackLinks tracks new videos by their links. The lists have the same order: newVideos[n] is the video of links[n]. trackLinks sets the field
// `before` of each video to its stored row.
func (i *importState) trackLinks(links []link.Link, newVideos []*mergedVideo) error {
	if len(links) == 0 {
		return nil
	}
	known := make([]db.Counts, len(newVideos))
	for n, m := range newVideos {
		for _, p := range m.added {
			known[n].Update(p.Counts)
		}
	}
	// Allowance stays 0. So if the organisation has no subscription, the imported videos are saved but not fetched.
	tracked, err := i.TrackVideos(store.TrackRequest{Links: links, Scheduled: true, Imported: true, Known: known})
	if err != nil {
		return err
	}
	ids := make([]uuid.UUID, len(tracked))
	for n, t := range tracked {
		ids[n] = t.ID
	}
	var rows []store.Video
	if err := db.Scoped(i.Tx, "videos", i.ID()).Where("videos.id IN ?", ids).Find(&rows).Error; err != nil {
		return err
	}
	byID := make(map[uuid.UUID]store.Video, len(rows))
	for _, v := range rows {
		byID[v.ID] = v
	}
	for n, m := range newVideos {
		m.before = byID[ids[n]]
	}
	return nil
}

// knownVideos searches the organisation's videos for the given links, and returns the videos that it finds. The key of the map is the video's
// queue.TargetKey.
func (i *importState) knownVideos(links []link.Link) (map[string]store.Video, error) {
	wanted := make([][]any, len(links))
	for n, l := range links {
		wanted[n] = []any{i.ID(), l.Platform, l.ID}
	}
	list := db.OrgRows{Name: "wanted", Columns: []string{"organisation_id uuid", "platform text", "external_id text"}, Rows: wanted}
	found, err := db.FindRows[store.Video](i.Tx, list, `SELECT videos.* FROM wanted CROSS JOIN videos
 WHERE videos.organisation_id = {org} AND videos.platform = wanted.platform AND videos.external_id = wanted.external_id`)
	known := make(map[string]store.Video, len(found))
	for _, v := range found {
		known[queue.TargetKey(v.Platform, v.ExternalID)] = v
	}
	return known, err
}

// stopNewVideos stops the tracking of each video that this import has added and that the export marks as stopped.
func (i *importState) stopNewVideos(videos []*mergedVideo) error {
	var ids []uuid.UUID
	for _, m := range videos {
		if m.isNew && m.in.Stopped {
			ids = append(ids, m.after.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := i.StopVideos(ids)
	return err
}
