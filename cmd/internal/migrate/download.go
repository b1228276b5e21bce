package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/server"
)

// Organisation is the organisation whose data is copied, as the remote server describes it.
type Organisation struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Tier         string `json:"tier"`
	Subscription string `json:"subscription"`
}

// collection is a collection of videos and accounts on the remote server.
type collection struct {
	ID              string          `json:"id"`
	Name            string          `json:"name"`
	ParentID        *string         `json:"parent_id"`
	Access          string          `json:"access"`
	DisplaySettings json.RawMessage `json:"display_settings"`
	Hashtags        []string        `json:"hashtags"`
	ShareExpiresAt  *time.Time      `json:"share_expires_at"` // when the share page closes; nil if it stays open
}

// account is an account on the remote server. Removed means that the remote server has stopped tracking it.
type account struct {
	ID           string  `json:"account_id"`
	Link         string  `json:"account_link"`
	TrackingType *string `json:"tracking_type"`
	Removed      bool    `json:"removed"`
}

// video is a video on the remote server. LabelIDs are the ids of its collections. Removed means that tracking of the video was stopped
// there.
type video struct {
	ID            string   `json:"ad_id"`
	Link          string   `json:"ad_link"`
	Username      string   `json:"username"`
	Title         string   `json:"title"`
	UploadedAt    *string  `json:"uploaded_at"`
	VideoLength   *string  `json:"video_length"`
	Removed       bool     `json:"removed"`
	LabelIDs      []string `json:"label_ids"`
	MetricsMasked bool     `json:"metrics_masked"`
}

// point is a history point of a video on the remote server. Interpolated means that it was computed and not measured.
type point struct {
	Date string `json:"date"`
	transfer.Counts
	Interpolated bool    `json:"interpolated"`
	Quality      string  `json:"quality"`
	FetchedAt    *string `json:"fetched_at"`
}

// download has the data of the copied organisation. The histories are in a file, and all other data is in memory.
type download struct {
	collections list[[]collection]
	accounts    list[[]account]
	members     list[map[string][]string] // the links of the accounts in each collection; the key is the collection's id on the remote server
	videos      list[[]video]
	histories   string // path of the file of histories, in the format of imports
	state       historyState
}

// historyState is the progress of the download of the histories. It is stored in a file, so that an interrupted download can continue.
type historyState struct {
	Videos       int   `json:"videos"`       // number of videos whose histories were downloaded completely
	Offset       int64 `json:"offset"`       // length in bytes of the downloaded histories in the file
	Gone         int64 `json:"gone"`         // number of videos whose history does not exist: the remote server lists the video but answered 404 for its history
	Interpolated int64 `json:"interpolated"` // number of points that were not copied because they were computed, not measured
	Unmarked     int64 `json:"unmarked"`     // number of points that were not copied because the remote server does not say whether they were measured
}

// dailyDays is the maximum age, in days, of points that are copied from a hosted service. All points up to this age
// were measured.
const dailyDays = 90

// historyDays is the age, in days, of the oldest history points that are requested. The remote server refuses requests for points older than 730 days.
// So a request stays valid if a day begins before it is answered.
const historyDays = 729

// These are the names of the subfolder and of some files in a migration's folder.
const (
	identityFile  = "identity.json"
	historiesFile = "histories.jsonl" // a migration appends to this file; its other files are written completely or not at all
	stateFile     = "histories-state.json"
	newIDsFile    = "new-collections.json" // the ids of the collections that the migration creates
	tempDir       = "reeltally-import"     // the subfolder for the temporary files of the import; the name is rare, so that it is no folder of another program
	newSuffix     = ".new"                 // ending of the name of a file that saveJSON has not written completely
)

// listFiles are the names of the files with the downloaded lists. Like identityFile, they are written completely or not at all.
var listFiles = []string{"collections.json", "accounts.json", "members.json", "videos.json"}

// identity identifies a migration. It is stored in the migration's folder, so that no other migration continues with
// the data in this folder.
type identity struct {
	URL    string `json:"url"`    // base URL of the remote server's API
	From   string `json:"from"`   // the organisation's id on the remote server, "" if unknown
	Target string `json:"target"` // id of the organisation that receives the data
}

// readOrCreateFile returns the value in a JSON file. If the file is missing, readOrCreateFile first creates it with the
// result of compute.
func readOrCreateFile[T any](dir, name string, compute func() (T, error)) (out T, err error) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path) //nolint:gosec // the operator chooses the folder
	if err == nil {
		if err := json.Unmarshal(text, &out); err != nil {
			return out, fmt.Errorf("the file %s is damaged: delete the folder and start again: %w", path, err)
		}
		return out, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	if out, err = compute(); err != nil {
		return out, err
	}
	// Save the result, so that a continued migration does not repeat the requests.
	return out, saveJSON(dir, name, out)
}

// saveJSON writes v as JSON to a file. After a crash of the program, the file has either the old or the new content.
func saveJSON(dir, name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+newSuffix, text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+newSuffix, path)
}

// removeFiles deletes the files of a finished migration. If the folder is then empty, it deletes the folder too.
func removeFiles(dir string) error {
	errs := []error{os.RemoveAll(filepath.Join(dir, tempDir))}
	// The state of the histories is deleted first, because it is not valid without the lists and the file of histories. The identity is
	// deleted last. A migration that is killed here can then be run again.
	for _, name := range slices.Concat([]string{stateFile, historiesFile, newIDsFile}, listFiles, []string{identityFile}) {
		for _, path := range []string{name + newSuffix, name} {
			if err := os.Remove(filepath.Join(dir, path)); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	// os.Remove deletes only an empty folder. An error is ignored, because the migration is complete: the folder can have other files,
	// or it can be a mount point.
	_ = os.Remove(dir)
	return errors.Join(errs...)
}

// Organisation returns the token's organisation, or the zero Organisation if the remote server does not report it. If
// the organisation's tier hides numbers, the result is an error.
func (r *Remote) Organisation(ctx context.Context) (Organisation, error) {
	var out struct {
		Organisation Organisation `json:"organisation"`
	}
	if err := r.getJSON(ctx, "/authenticate", nil, &out); err != nil && !hasStatus(err, http.StatusNotFound) {
		return Organisation{}, err
	}
	if tier := out.Organisation.Tier; tier != "" && tier != "premium" {
		return Organisation{}, fmt.Errorf("the token's organisation has the tier %s, which shows only the first entry of each list and no numbers; a migration needs the tier premium", tier)
	}
	return out.Organisation, nil
}

// Counts has the number of collections, accounts and videos that the remote server lists.
type Counts struct {
	Collections int64 `json:"collections"`
	Accounts    int64 `json:"accounts"`
	Videos      int64 `json:"videos"`
}

// Count asks the remote server how many collections, accounts and videos it lists. It sends one request for each of the three lists.
func (r *Remote) Count(ctx context.Context) (Counts, error) {
	var out Counts
	for path, count := range map[string]*int64{"/collections": &out.Collections, "/accounts": &out.Accounts, "/videos": &out.Videos} {
		query := r.listQuery(path)
		query.Set("limit", "1")
		var p page[json.RawMessage]
		if err := r.getJSON(ctx, path, query, &p); err != nil {
			return out, err
		}
		*count = p.Pagination.Total
	}
	return out, nil
}

// listQuery returns the query parameters for requesting a list from the remote server.
func (r *Remote) listQuery(path string) url.Values {
	query := url.Values{}
	if path != "/videos" {
		query.Set("paginated", "true")
	}
	// Only ReelTally servers have the parameter "include_removed".
	if r.reelTally && path != "/collections" {
		query.Set("include_removed", "true")
	}
	return query
}

// checkCollections returns an error that names the collections which the API would refuse to create here, for example because a hashtag is too long.
func checkCollections(collections []collection) error {
	const maxNamed = 5 // maximum number of collections that the error names
	var refused []string
	for _, c := range collections {
		if err := server.CheckCollection(c.Name, c.Hashtags, c.DisplaySettings); err != nil {
			refused = append(refused, fmt.Sprintf("collection %q (%s): %s", c.Name, c.ID, err))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	if more := len(refused) - maxNamed; more > 0 {
		refused = append(refused[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("the service has collections that cannot be stored here; change them at the service, and run the same command again: %s", strings.Join(refused, "; "))
}

// downloadAll downloads all data of the organisation into the folder dir. After an interruption, it skips the lists and
// histories that the folder already has.
func (r *Remote) downloadAll(ctx context.Context, dir string, now func() time.Time, progress func(stage Stage, done, total int)) (_ *download, err error) {
	var d download
	if d.collections, err = readOrCreateFile(dir, "collections.json", func() (list[[]collection], error) {
		collections, err := listAll(ctx, r, "/collections", r.listQuery("/collections"), func(c *collection) string { return c.ID })
		if err != nil {
			return collections, err
		}
		return collections, checkCollections(collections.Entries)
	}); err != nil {
		return nil, err
	}
	if d.accounts, err = readOrCreateFile(dir, "accounts.json", func() (list[[]account], error) {
		return listAll(ctx, r, "/accounts", r.listQuery("/accounts"), func(a *account) string { return a.ID })
	}); err != nil {
		return nil, err
	}
	if d.members, err = readOrCreateFile(dir, "members.json", func() (list[map[string][]string], error) {
		members := list[map[string][]string]{Entries: map[string][]string{}}
		for n, c := range d.collections.Entries {
			progress(Collections, n, len(d.collections.Entries))
			accounts, err := listAll(ctx, r, "/collections/"+url.PathEscape(c.ID)+"/accounts", nil, func(a *account) string { return a.ID })
			if err != nil {
				return members, err
			}
			members.Missing += accounts.Missing
			for _, a := range accounts.Entries {
				members.Entries[c.ID] = append(members.Entries[c.ID], a.Link)
			}
		}
		return members, nil
	}); err != nil {
		return nil, err
	}
	if d.videos, err = readOrCreateFile(dir, "videos.json", func() (list[[]video], error) {
		videos, err := listAll(ctx, r, "/videos", r.listQuery("/videos"), func(v *video) string { return v.ID })
		for _, v := range videos.Entries {
			if v.MetricsMasked {
				return videos, errors.New("the service masks the numbers, because the token's tier does not show them; a migration needs the tier premium")
			}
		}
		return videos, err
	}); err != nil {
		return nil, err
	}
	d.histories = filepath.Join(dir, historiesFile)
	return &d, r.downloadHistories(ctx, dir, &d, now, progress)
}

// downloadHistories downloads the histories that are not in the file of histories yet, and appends them. After each history it saves the
// progress.
func (r *Remote) downloadHistories(ctx context.Context, dir string, d *download, now func() time.Time, progress func(stage Stage, done, total int)) (err error) {
	if d.state, err = readOrCreateFile(dir, stateFile, func() (historyState, error) { return historyState{}, nil }); err != nil {
		return err
	}
	f, err := os.OpenFile(d.histories, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || info.Size() < d.state.Offset {
		return errors.Join(err, fmt.Errorf("the file %s is shorter than the part that was already written to it: delete the folder and start again", d.histories))
	}
	if err := f.Truncate(d.state.Offset); err != nil { // remove a history that was written only in part
		return err
	}
	if _, err := f.Seek(d.state.Offset, io.SeekStart); err != nil {
		return err
	}
	for d.state.Videos < len(d.videos.Entries) {
		progress(Histories, d.state.Videos, len(d.videos.Entries))
		next := d.state
		text, err := r.requestHistory(ctx, &d.videos.Entries[d.state.Videos], now().UTC(), &next)
		if err != nil {
			return err
		}
		if _, err := f.Write(text); err != nil {
			return err
		}
		next.Videos, next.Offset = next.Videos+1, next.Offset+int64(len(text))
		if err := saveJSON(dir, stateFile, next); err != nil {
			return err
		}
		d.state = next
	}
	progress(Histories, d.state.Videos, len(d.videos.Entries))
	return nil
}

// requestHistory requests a video's history, and returns it as lines for the file of histories. The first line describes the video; it is the only line
// if the remote server answers 404. requestHistory leaves out points that are or may be interpolated.
func (r *Remote) requestHistory(ctx context.Context, v *video, today time.Time, state *historyState) ([]byte, error) {
	query := url.Values{"start_date": {today.AddDate(0, 0, -historyDays).Format(time.DateOnly)}, "end_date": {today.Format(time.DateOnly)}}
	if r.reelTally {
		query.Set("include", "quality") // also request the exact time and the quality of each point
	}
	var points []point
	switch err := r.getJSON(ctx, "/videos/"+url.PathEscape(v.ID)+"/history", query, &points); {
	case hasStatus(err, http.StatusNotFound):
		state.Gone++
	case err != nil:
		return nil, err
	}
	about := transfer.Row{Link: v.Link, Username: v.Username, Title: v.Title, UploadedAt: v.UploadedAt, VideoLength: v.VideoLength, Removed: v.Removed}
	if r.madeUp {
		about.Source = new(madeUpSource)
	}
	rows := []transfer.Row{about} // the first row describes the video but has no counts; because of this row, the import creates the video even if the video has no points
	oldestDaily := today.AddDate(0, 0, -dailyDays).Format(time.DateOnly)
	for _, p := range points {
		switch {
		case p.Interpolated:
			state.Interpolated++
			continue
		case !r.reelTally && p.Date < oldestDaily:
			// A hosted service does not say which of its older points are interpolated.
			state.Unmarked++
			continue
		}
		one := about
		one.Counts, one.Date, one.Time, one.Rounded = p.Counts, &p.Date, p.FetchedAt, p.Quality == "rounded"
		rows = append(rows, one)
	}
	var text []byte
	for _, one := range rows {
		line, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		text = append(append(text, line...), '\n')
	}
	return text, nil
}
