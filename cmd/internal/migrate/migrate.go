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
	InvalidAccounts int              `json:"unknown_accounts"`   // number of accounts left out because their link or tracking type is not valid
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
	w := writer{Migration: m, data: d, summary: Summary{
		Collections: len(d.collections.Entries), Interpolated: d.state.Interpolated, Unmarked: d.state.Unmarked, Gone: d.state.Gone,
		MissingMembers: int(d.members.Missing), Unlisted: Counts{d.collections.Missing, d.accounts.Missing, d.videos.Missing}}}
	for _, step := range []func(context.Context) error{w.importHistories, w.trackAccounts, w.createCollections, w.addAccounts, w.addVideos} {
		if err := step(ctx); err != nil {
			return w.summary, err
		}
	}
	return w.summary, removeFiles(m.Dir)
}

// writer writes the downloaded data of a migration to the organisation in this database.
type writer struct {
	Migration
	data        *download
	summary     Summary
	collections map[string]uuid.UUID // the ids of the collections in this database; the keys are their ids on the remote server
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

// openDir creates the folder of the migration. It returns an error if the folder belongs to another migration, or if it has files but is not the
// folder of a migration.
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

// importHistories imports the downloaded videos and their histories, and stores the result of the import in w.summary.
func (w *writer) importHistories(ctx context.Context) (err error) {
	if len(w.data.videos.Entries) == 0 {
		return nil
	}
	temp := filepath.Join(w.Dir, tempDir)
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o700)); err != nil { // a killed migration can have left temporary files
		return err
	}
	f, err := os.Open(w.data.histories)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w.summary.Import, err = transfer.Import{Org: w.Org, In: f, Numbers: transfer.DecimalPoint, Dates: transfer.AutoDates, Resolve: w.Resolve, Now: w.Now(), TempDir: temp,
		Progress: w.ImportProgress, Bad: func(r transfer.BadRow) error {
			if len(w.summary.Bad) < maxBad && !slices.Contains(w.summary.Bad, r.Reason) {
				w.summary.Bad = append(w.summary.Bad, r.Reason)
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
func (w *writer) trackAccounts(ctx context.Context) error {
	byType := map[store.TrackingType][]link.Link{}
	for _, a := range w.data.accounts.Entries {
		if a.Removed || a.TrackingType == nil {
			continue
		}
		l, known := parseLink(a.Link, link.Account)
		kind, err := store.ParseTrackingType(*a.TrackingType)
		if !known || err != nil {
			w.summary.InvalidAccounts++
			continue
		}
		byType[kind] = append(byType[kind], l)
	}
	for kind, links := range byType {
		for chunk := range slices.Chunk(links, trackedPerCall) {
			if _, err := w.Org.TrackAccounts(ctx, store.TrackRequest{Links: chunk, Type: kind}); err != nil {
				return err
			}
			w.summary.Accounts += len(chunk)
		}
	}
	return nil
}

// DefaultDir returns the default folder for the data that a migration downloads. Each organisation that receives data
// has a folder of its own.
func DefaultDir(organisationID uuid.UUID) string {
	return filepath.Join(".", "reeltally-migrate-"+organisationID.String())
}
