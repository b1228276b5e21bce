package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// madeUpSource is the name of the source that marks made-up numbers in the database.
const madeUpSource = store.SandboxSource

// Stage is the name of a step of a migration. It is shown while the step runs.
type Stage string

// These constants are the stages of a migration, in order.
const (
	Collections Stage = "reading collections"
	Histories   Stage = "reading histories"
	// Before this stage, the histories are imported. The progress of the import is reported with stages of the
	// type transfer.Stage.
	Writing Stage = "writing collections"
)

// Migration copies an organisation from a remote server into an organisation of this database. The remote server is a hosted service or a
// ReelTally server.
type Migration struct {
	Remote *Remote
	From   Organisation // the organisation on the remote server
	Org    *store.Org   // the organisation that receives the data
	// Dir is the folder for the downloaded data: a new or empty folder, or that of an interrupted migration. A migration that was interrupted
	// continues if it is run again with the same folder. A migration that succeeds deletes its files, and the folder if it is then empty.
	Dir string
	// Now returns the current time. A migration can take several days, so it is called again for each history.
	Now      func() time.Time
	Progress func(stage Stage, done, total int)
	// ImportProgress is called with the progress of the import of the histories.
	ImportProgress func(stage transfer.Stage, done, total int64)
	// Resolve follows a short link and returns the link to which it redirects.
	Resolve func(context.Context, link.Link) (link.Link, error)
}

// Summary says what a migration has done and what it left out.
type Summary struct {
	Collections     int              `json:"collections"`
	NewCollections  int              `json:"new_collections"`
	Accounts        int              `json:"accounts"`           // number of accounts that the remote server tracks and that are now tracked here too
	UnknownAccounts int              `json:"unknown_accounts"`   // number of accounts left out because their link or tracking type is not valid
	Members         int64            `json:"members"`            // number of accounts and videos added to collections
	MissingMembers  int              `json:"missing_members"`    // number of members of collections (accounts and videos) that could not be added, or that the remote server counts but does not list
	Protected       int              `json:"protected"`          // number of collections that have a password on the remote server, and were therefore created as private collections
	Interpolated    int64            `json:"interpolated"`       // number of points left out because they were not measured
	Gone            int64            `json:"gone"`               // number of videos whose history does not exist: the remote server lists the video but answered 404 for its history
	Unmarked        int64            `json:"unmarked"`           // number of points left out because the remote server does not say whether they were measured
	Unlisted        Counts           `json:"unlisted"`           // numbers of entries that the remote server counts but does not list
	Import          transfer.Summary `json:"import"`             // result of the import of the histories
	Bad             []string         `json:"bad_rows,omitempty"` // up to maxBad different reasons why rows of histories were left out
}

const maxBad = 20 // maximum length of Summary.Bad

// Run runs the migration. An interrupted migration can be run again with the same folder. The result is then the same as without the
// interruption.
func (m Migration) Run(ctx context.Context) (Summary, error) {
	defer m.Remote.close()
	if err := m.openDir(); err != nil {
		return Summary{}, err
	}
	d, err := m.Remote.downloadAll(ctx, m.Dir, m.Now, m.Progress)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Collections: len(d.collections.Entries), Interpolated: d.state.Interpolated, Unmarked: d.state.Unmarked, Gone: d.state.Gone,
		MissingMembers: int(d.members.Missing), Unlisted: Counts{d.collections.Missing, d.accounts.Missing, d.videos.Missing}}
	if err := m.importHistories(ctx, d, &s); err != nil {
		return s, err
	}
	if err := m.trackAccounts(ctx, d, &s); err != nil {
		return s, err
	}
	ids, err := m.createCollections(ctx, d.collections.Entries, &s)
	if err != nil {
		return s, err
	}
	if err := m.addMembers(ctx, d, ids, &s); err != nil {
		return s, err
	}
	return s, removeFiles(m.Dir)
}

// CheckDir returns an error if a migration cannot use the folder dir, because dir has files and is not the folder of a migration. It writes
// nothing. A folder that does not exist is no error.
func CheckDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// A killed migration can have left only the new file that was to become the identity file.
	if err != nil || len(entries) == 0 || len(entries) == 1 && entries[0].Name() == identityFile+newSuffix {
		return err
	}
	var have identity
	text, err := os.ReadFile(filepath.Join(dir, identityFile)) //nolint:gosec // the operator chooses the folder
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || json.Unmarshal(text, &have) != nil || have.URL == "" || have.Target == "" {
		return fmt.Errorf("the folder %s is not empty, and it is not the folder of an interrupted migration: name a new or empty folder", dir)
	}
	return nil
}

// openDir creates the folder of the migration. If the folder has files that do not belong to this migration, openDir returns an error.
func (m Migration) openDir() error {
	if err := CheckDir(m.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return err
	}
	want := identity{URL: m.Remote.base.String(), From: m.From.ID, Target: m.Org.ID().String()}
	have, err := readOrCreateFile(m.Dir, identityFile, func() (identity, error) { return want, nil })
	if err == nil && have != want {
		return fmt.Errorf("the folder %s belongs to another migration, from %s to the organisation %s: delete the folder, or name another one", m.Dir, have.URL, have.Target)
	}
	return err
}

// importHistories imports the downloaded videos and their histories, and stores the result of the import in s.
func (m Migration) importHistories(ctx context.Context, d *download, s *Summary) (err error) {
	if len(d.videos.Entries) == 0 {
		return nil
	}
	temp := filepath.Join(m.Dir, tempDir)
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o700)); err != nil { // a killed migration can have left temporary files
		return err
	}
	f, err := os.Open(d.histories)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s.Import, err = transfer.Import{Org: m.Org, In: f, Numbers: transfer.DecimalPoint, Dates: transfer.AutoDates, Resolve: m.Resolve, Now: m.Now(), TempDir: temp,
		Progress: m.ImportProgress, Bad: func(r transfer.BadRow) error {
			if len(s.Bad) < maxBad && !slices.Contains(s.Bad, r.Reason) {
				s.Bad = append(s.Bad, r.Reason)
			}
			return nil
		}}.Run(ctx)
	return err
}

// parseLink parses a link that the remote server returned. It returns false if the link is invalid or is not of the given kind (video or account).
func parseLink(text string, kind link.Kind) (link.Link, bool) {
	l, err := link.Parse(text)
	return l, err == nil && l.Kind == kind
}

// trackedPerCall is the maximum number of accounts that one transaction tracks. It is also the maximum number of accounts or videos that
// one transaction adds to a collection.
const trackedPerCall = 100

// trackAccounts tracks the accounts that the remote server tracks, with the same tracking type. The accounts are fetched only if the
// organisation has an active subscription.
func (m Migration) trackAccounts(ctx context.Context, d *download, s *Summary) error {
	byType := map[store.TrackingType][]link.Link{}
	for _, a := range d.accounts.Entries {
		if a.Removed || a.TrackingType == nil {
			continue
		}
		l, known := parseLink(a.Link, link.Account)
		kind, err := store.ParseTrackingType(*a.TrackingType)
		if !known || err != nil {
			s.UnknownAccounts++
			continue
		}
		byType[kind] = append(byType[kind], l)
	}
	for kind, links := range byType {
		for chunk := range slices.Chunk(links, trackedPerCall) {
			if _, err := m.Org.TrackAccounts(ctx, store.TrackAccountsRequest{Links: chunk, Type: kind}); err != nil {
				return err
			}
			s.Accounts += len(chunk)
		}
	}
	return nil
}

// place identifies a collection by its parent, name and number.
type place struct {
	parent uuid.UUID // zero if the collection has no parent
	name   string
	nth    int // 1, 2 and so on for collections with the same parent and name
}

// createCollections creates the collections of the remote server in this database, parents before children. The result
// is a map from remote ids to local ids.
func (m Migration) createCollections(ctx context.Context, remote []collection, s *Summary) (map[string]uuid.UUID, error) {
	local, err := m.localCollections(ctx)
	if err != nil {
		return nil, err
	}
	existing, last := map[place]store.Collection{}, map[place]int{}
	at := func(count map[place]int, parent *uuid.UUID, name string) place {
		p := place{name: name}
		if parent != nil {
			p.parent = *parent
		}
		count[p]++
		p.nth = count[p]
		return p
	}
	for _, c := range local {
		existing[at(last, c.ParentID, c.Name)] = c
	}
	known := map[string]bool{}
	for _, c := range remote {
		known[c.ID] = true
	}
	// A migration that was interrupted after it had created a collection must recognise this collection, so the ids are chosen and saved first.
	newIDs, err := readOrCreateFile(m.Dir, newIDsFile, func() (map[string]uuid.UUID, error) {
		chosen := map[string]uuid.UUID{}
		for id := range known {
			chosen[id] = store.NewID()
		}
		return chosen, nil
	})
	if err != nil {
		return nil, err
	}
	ids, seen := map[string]uuid.UUID{}, map[place]int{}
	for len(ids) < len(remote) {
		before := len(ids)
		for _, c := range remote {
			var parent *uuid.UUID
			if c.ParentID != nil && known[*c.ParentID] {
				id, ok := ids[*c.ParentID]
				if !ok {
					continue // the parent does not exist yet: create this collection in a later pass over the list
				}
				parent = &id
			}
			if _, done := ids[c.ID]; done {
				continue
			}
			m.Progress(Writing, len(ids), len(remote))
			have, exists := existing[at(seen, parent, c.Name)]
			// A repeated migration finds the collection by its place, and does not create it twice.
			if !exists || have.ID == newIDs[c.ID] {
				if have, err = m.createCollection(ctx, newIDs[c.ID], c, parent); err != nil {
					return nil, err
				}
				s.NewCollections++
				if c.isProtected() {
					s.Protected++
				}
			}
			if err := m.copyDisplaySettings(ctx, &have, c); err != nil {
				return nil, err
			}
			ids[c.ID] = have.ID
		}
		if len(ids) == before {
			return nil, errors.New("the service returned collections that are each other's parents")
		}
	}
	return ids, nil
}

// localCollections returns all collections of the organisation in this database, the oldest first.
func (m Migration) localCollections(ctx context.Context) ([]store.Collection, error) {
	var out []store.Collection
	query := store.CollectionQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: maxListed}}
	for {
		list, err := m.Org.ListCollections(ctx, query)
		if err != nil {
			return nil, err
		}
		out = append(out, list.Rows...)
		query.Window.After = list.Next()
		if query.Window.After == nil {
			return out, nil
		}
	}
}

// maxListed is the maximum number of collections or videos that one query of this database returns.
const maxListed = 5000

// isProtected returns true if the remote collection has a password. The remote server does not reveal passwords.
func (c *collection) isProtected() bool { return store.Access(c.Access) == store.AccessProtected }

// createCollection creates a copy of a remote collection in this database, with the given id. If the remote collection has a password, the copy is private.
// If the share page of the remote collection has closed, that of the copy is closed too. If an interrupted run created the copy, createCollection completes it.
func (m Migration) createCollection(ctx context.Context, id uuid.UUID, c collection, parent *uuid.UUID) (store.Collection, error) {
	// The copy is private until its expiry is stored, so its share page cannot be open for too long if the migration is interrupted here.
	made, err := m.Org.CreateCollection(ctx, store.NewCollection{ID: id, Name: c.Name, ParentID: parent, Access: store.AccessPrivate, Hashtags: c.Hashtags})
	if err != nil {
		return made, err
	}
	var patch store.CollectionPatch
	if store.Access(c.Access) == store.AccessPublic {
		patch.Access = new(store.AccessPublic)
	}
	if c.ShareExpiresAt != nil {
		patch.ShareExpiry = &store.ShareExpiryChange{At: new(store.InstantOf(*c.ShareExpiresAt))}
	}
	// If the collection was changed since it was created, an interrupted run has already completed it.
	if patch == (store.CollectionPatch{}) || made.UpdatedAt != made.CreatedAt {
		return made, nil
	}
	return m.Org.UpdateCollection(ctx, made.ID, patch)
}

// copyDisplaySettings gives the collection in this database the display settings of the remote collection. If the collection in this database already
// has display settings, copyDisplaySettings does nothing.
func (m Migration) copyDisplaySettings(ctx context.Context, localCollection *store.Collection, remoteCollection collection) error {
	settings := remoteCollection.DisplaySettings
	if localCollection.DisplaySettings != nil || len(settings) == 0 || string(settings) == "null" {
		return nil
	}
	if !json.Valid(settings) {
		return fmt.Errorf("the display settings of the collection %q are not JSON", remoteCollection.Name)
	}
	_, err := m.Org.UpdateCollection(ctx, localCollection.ID, store.CollectionPatch{DisplaySettings: &settings})
	return err
}

// addMembers copies the accounts and videos that are members of collections. The keys of localIDs are the collections'
// ids on the remote server.
func (m Migration) addMembers(ctx context.Context, d *download, localIDs map[string]uuid.UUID, s *Summary) error {
	for from, links := range d.members.Entries {
		var accounts []uuid.UUID
		for _, text := range links {
			l, known := parseLink(text, link.Account)
			if !known {
				s.MissingMembers++
				continue
			}
			a, err := m.Org.Account(ctx, store.Ref{Link: l})
			if errors.Is(err, store.ErrNotFound) {
				s.MissingMembers++
				continue
			}
			if err != nil {
				return err
			}
			accounts = append(accounts, a.ID)
		}
		for chunk := range slices.Chunk(accounts, trackedPerCall) {
			added, err := m.Org.AddAccounts(ctx, localIDs[from], chunk)
			if err != nil {
				return err
			}
			s.Members += added
		}
	}
	members := map[string][]link.Link{}
	for _, v := range d.videos.Entries {
		l, known := parseLink(v.Link, link.Video)
		for _, c := range v.LabelIDs {
			if known {
				members[c] = append(members[c], l)
			} else {
				s.MissingMembers++
			}
		}
	}
	if len(members) == 0 {
		return nil
	}
	all, err := m.videoIDs(ctx, nil)
	if err != nil {
		return err
	}
	for from, links := range members {
		to, ok := localIDs[from]
		if !ok {
			s.MissingMembers += len(links)
			continue
		}
		// A video that belongs to the collection through an account or a hashtag is also in `have`, so the video is
		// not added.
		have, err := m.videoIDs(ctx, &to)
		if err != nil {
			return err
		}
		var missing []uuid.UUID
		for _, l := range links {
			key := videoKey{l.Platform, l.ID}
			id, ok := all[key]
			if !ok {
				s.MissingMembers++
			} else if _, in := have[key]; !in {
				missing = append(missing, id)
			}
		}
		for chunk := range slices.Chunk(missing, trackedPerCall) {
			added, err := m.Org.AddVideos(ctx, to, chunk)
			if err != nil {
				return err
			}
			s.Members += added
		}
	}
	return nil
}

// videoKey identifies a video on its platform.
type videoKey struct {
	platform link.Platform
	id       string
}

// videoIDs returns the ids of the videos in a collection. A nil collection stands for all videos of the organisation.
func (m Migration) videoIDs(ctx context.Context, collection *uuid.UUID) (map[videoKey]uuid.UUID, error) {
	out := map[videoKey]uuid.UUID{}
	query := store.VideoQuery{CollectionID: collection, IncludeRemoved: true, WithoutTotal: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: maxListed}}
	for {
		list, err := m.Org.ListVideos(ctx, query)
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

// DefaultDir returns the default folder for the data that a migration downloads. Each organisation that receives data
// has a folder of its own.
func DefaultDir(organisationID uuid.UUID) string {
	return filepath.Join(".", "reeltally-migrate-"+organisationID.String())
}
