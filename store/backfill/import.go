package backfill

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// ImportSource is the name that is stored as the source of imported points.
const ImportSource = "import"

// ImportVideo is a video in the export of another tracker. A field is "" or nil if the export does not have the value.
type ImportVideo struct {
	Link        link.Link // the link of the video; an import must not contain a video twice
	Username    string    // the account's handle in lower case and without "@"; used only if the link has no handle and the stored video has no account
	AccountID   string    // the platform's own id of the account; used only if the link has no handle and the stored video has no account
	Title       string    // the caption; used only if the stored video has no caption
	UploadedAt  *db.Date  // the upload date; used only if the stored video has no upload date
	VideoLength *string   // the length in seconds; used only if the stored video has no length
	Points      []Point   // the points by time, the oldest first; at most one point on each UTC day, none in the future
	MadeUp      bool      // the points are made up, so they are stored with store.SandboxSource as their source
	Stopped     bool      // the export marks the video as stopped; if the organisation does not have the video yet, Import stores the video as stopped
}

// sourceName returns the name that is stored as the source of the video's points.
func (v *ImportVideo) sourceName() string {
	if v.MadeUp {
		return store.SandboxSource
	}
	return ImportSource
}

// ImportResult says what Import did with a point.
type ImportResult int

// The results that Import returns for a point.
const (
	// PointAdded: the point was added to the history.
	PointAdded ImportResult = iota
	// PointRolledUp: the point is older than Retention.Daily, and an imported point of a later day is the weekly
	// point of its week. So it gets no row of its own.
	PointRolledUp
	// PointUnchanged: the history already has a point with these counts for that day.
	PointUnchanged
	// PointConflicts: the point is not stored, because its day has other stored counts. If the point is older than
	// Retention.Daily, a stored point of another day of the week can have the same effect.
	PointConflicts
	// PointTooOld: the point is older than Retention.Weekly, the age at which points are deleted. It is not stored.
	PointTooOld
	// PointBeforeUpload: the point is more than UploadMargin days before ImportedVideo.Uploaded, so it is not stored.
	PointBeforeUpload
)

// UploadDate is the upload date of a video and its origin. The zero value is an unknown date.
type UploadDate struct {
	Day    db.Date
	Origin UploadOrigin
}

// UploadOrigin says where an upload date comes from.
type UploadOrigin int

// The origins of an upload date.
const (
	UploadUnknown  UploadOrigin = iota
	UploadStored                // the database had the date before the import
	UploadImported              // the date is ImportVideo.UploadedAt
	UploadInID                  // the id of the video contains the date
)

// ImportedVideo is the result of Import for one video. Import returns the results in the order of
// the videos. In a dry run, a result says what Import would do.
type ImportedVideo struct {
	New      bool           // the organisation did not have the video before the import
	Stopped  bool           // the video is not tracked: the organisation has stopped it, or the video is new and the export marks it as stopped
	Uploaded UploadDate     // the upload date with which the points were compared
	Results  []ImportResult // the result for each point of the video, in the order of the points
}

// Import adds old points to videos and tracks new videos, in one transaction. It never replaces a
// measured point. A repeated import changes nothing. If dryRun is true, Import writes nothing.
func Import(ctx context.Context, o *store.Org, videos []ImportVideo, dryRun bool) ([]ImportedVideo, error) {
	i := importState{in: videos, dryRun: dryRun}
	i.Org, i.Now, i.WithoutEvents = o, store.DatabaseOf(o).Now(), true
	if err := i.checkVideos(); err != nil {
		return nil, err
	}
	if !dryRun {
		if err := store.DatabaseOf(o).CreatePartitions(ctx, firstDayForDailyPoints(o, i.Now.Day()), i.Now.Day()); err != nil {
			return nil, err
		}
	}
	var out []ImportedVideo
	err := db.RetryOnDuplicate(func() error {
		run := func(tx *gorm.DB, insert db.InsertRows) (err error) {
			i := i // each run of the transaction gets a copy, because a failed transaction is run again
			i.Tx, i.insert = tx, insert
			if _, err := store.ReadOrganisation(tx, o.ID()); err != nil { // a dry run does not raise the version, which would find an unknown organisation
				return err
			}
			out, err = i.importVideos()
			return err
		}
		if dryRun {
			return store.DatabaseOf(o).BulkTx(ctx, run)
		}
		return store.DatabaseOf(o).ChangeInBulk(ctx, o.ID(), run)
	})
	return out, err
}

// importState is the state of one run of Import's transaction. Import may run the transaction several times, each time with a copy of this
// struct.
type importState struct {
	store.OrgTx
	insert db.InsertRows
	in     []ImportVideo
	dryRun bool // compute the results, but write nothing

	merged        []*mergedVideo // videos that the import changes or adds
	daily, weekly [][]any        // new rows of snapshots_daily and snapshots_weekly
	replaced      []replacedWeek // rows of snapshots_weekly to delete
	toDelete      []storedPoint  // stored points to delete: they were imported without counts, and points with counts replace them
}

// replacedWeek identifies a stored weekly point. The import replaces it by a later point of the same week.
type replacedWeek struct {
	video uuid.UUID
	week  db.Date
}

// checkVideos returns an error if a link does not name a video. It also returns an error if points
// break the rules at ImportVideo.Points.
func (i *importState) checkVideos() error {
	for _, v := range i.in {
		if v.Link.Kind != link.Video {
			return fmt.Errorf("%s is not a link of a video", v.Link.Canonical)
		}
		for n, p := range v.Points {
			if (n > 0 && p.At.Day() <= v.Points[n-1].At.Day()) || p.At > i.Now {
				return fmt.Errorf("point %d of %s is at %s: points must be in the order of time, at most one on each day, and not in the future", n, v.Link.Canonical, p.At.Time())
			}
		}
	}
	return nil
}

// importVideos does the work of Import inside a transaction. It returns a result for each video, in the order of i.in.
func (i *importState) importVideos() ([]ImportedVideo, error) {
	links := make([]link.Link, len(i.in))
	for n, v := range i.in {
		links[n] = v.Link
	}
	known, err := i.knownVideos(links)
	if err != nil {
		return nil, err
	}
	stored, err := i.storedPoints(known)
	if err != nil {
		return nil, err
	}
	out := make([]ImportedVideo, len(i.in))
	classified := make([]*mergedVideo, len(i.in))
	for n := range i.in {
		v, exists := known[queue.TargetKey(links[n].Platform, links[n].ID)]
		out[n].New, out[n].Stopped = !exists, v.Removed || !exists && i.in[n].Stopped
		m := &mergedVideo{in: &i.in[n], isNew: !exists, before: v, stored: stored[v.ID]}
		out[n].Uploaded = m.uploadDate()
		out[n].Results = m.classifyPoints(out[n].Uploaded, i.Now.Day(), store.DatabaseOf(i.Org).Retention())
		classified[n] = m
	}
	if err := i.requireDataKind(classified); err != nil {
		return nil, err
	}
	if i.dryRun {
		return out, nil
	}
	if err := i.trackNewVideos(classified); err != nil {
		return nil, err
	}
	for _, m := range classified {
		i.mergeVideo(m)
	}
	if err := i.writeChanges(); err != nil {
		return nil, err
	}
	return out, i.stopNewVideos(classified)
}

// requireDataKind returns a *store.DataKindError if the points to add are made-up data and the database has real data, or the other way round.
func (i *importState) requireDataKind(videos []*mergedVideo) error {
	require := store.RequireDataKind
	if i.dryRun {
		require = store.CheckDataKind
	}
	checked := map[store.DataKind]bool{}
	for _, m := range videos {
		kind := store.KindOfSource(m.in.sourceName())
		if len(m.added) == 0 || checked[kind] {
			continue
		}
		if err := require(i.Tx, kind); err != nil {
			return err
		}
		checked[kind] = true
	}
	return nil
}

// storedPoint is a daily or weekly point of a video in the database.
type storedPoint struct {
	VideoID uuid.UUID
	Day     db.Date
	db.Counts
	FetchedAt db.Instant
	Source    string
	Weekly    bool     // the point comes from snapshots_weekly, not from snapshots_daily
	FirstDay  *db.Date // day of the earliest point that the weekly point replaces; nil if unknown or if the point is daily
	// FirstDayViews are the views of that earliest point; nil if unknown or if the point is daily.
	FirstDayViews *int64
}

// storedPoints returns the stored points of the known videos, the oldest first. The key of the result is the video's id.
func (i *importState) storedPoints(known map[string]store.Video) (map[uuid.UUID][]storedPoint, error) {
	ids := make([]uuid.UUID, 0, len(known))
	for _, v := range known {
		ids = append(ids, v.ID)
	}
	points := map[uuid.UUID][]storedPoint{}
	for chunk := range slices.Chunk(ids, db.InsertChunk) {
		var rows []storedPoint
		columns := "video_id, day, " + db.MetricColumns("{m}") + ", fetched_at, source"
		err := i.Tx.Raw(`SELECT `+columns+`, 0 AS weekly, NULL AS first_day, NULL AS first_day_views FROM snapshots_daily WHERE organisation_id = ? AND video_id IN ?
UNION ALL SELECT `+columns+`, 1 AS weekly, first_day, first_day_views FROM snapshots_weekly WHERE organisation_id = ? AND video_id IN ? ORDER BY day, weekly`,
			i.ID(), chunk, i.ID(), chunk).Scan(&rows).Error
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			of := points[r.VideoID]
			// During a roll-up, a day can have both a daily point and the weekly point that replaces it. Skip the weekly point, which the query
			// returns second.
			if n := len(of); n > 0 && of[n-1].Day == r.Day {
				continue
			}
			points[r.VideoID] = append(of, r)
		}
	}
	return points, nil
}

// mergeVideo sets m.after. If the import changes the video, mergeVideo also collects the rows of its new
// points, which are written later.
func (i *importState) mergeVideo(m *mergedVideo) {
	m.after = m.before
	if !m.fillDetails() && len(m.added) == 0 && !m.isNew {
		return
	}
	m.setLatestCounts()
	m.setFirstViews()
	i.merged = append(i.merged, m)
	i.toDelete = append(i.toDelete, m.toDelete...)
	for _, w := range m.addedWeekly {
		if stored := m.storedWeek(w.week()); stored != nil {
			i.replaced = append(i.replaced, replacedWeek{m.after.ID, w.week()})
			w = w.addStored(stored)
		}
		i.weekly = append(i.weekly, weeklyRow(i.ID(), m.after.ID, w, store.StoredSource(m.in.sourceName(), w.Rounded)))
	}
	for _, p := range m.addedDaily {
		i.daily = append(i.daily, dailyRow(i.ID(), m.after.ID, p, store.StoredSource(m.in.sourceName(), p.Rounded)))
	}
}

// writeChanges writes the rows of all videos that the import changes, and recomputes the statistics and totals.
func (i *importState) writeChanges() error {
	if len(i.merged) == 0 {
		return nil
	}
	for _, p := range i.toDelete {
		for _, table := range []string{"snapshots_daily", "snapshots_weekly"} {
			err := i.Tx.Exec(`DELETE FROM `+table+` WHERE organisation_id = ? AND video_id = ? AND day = ?`, i.ID(), p.VideoID, p.Day).Error
			if err != nil {
				return err
			}
		}
	}
	for _, r := range i.replaced {
		err := i.Tx.Exec(`DELETE FROM snapshots_weekly WHERE organisation_id = ? AND video_id = ? AND week = ?`, i.ID(), r.video, r.week).Error
		if err != nil {
			return err
		}
	}
	if err := i.insert("snapshots_daily", dailyColumns, i.daily); err != nil {
		return err
	}
	if err := i.insert("snapshots_weekly", weeklyColumns, i.weekly); err != nil {
		return err
	}
	slices.SortFunc(i.merged, func(a, b *mergedVideo) int {
		return cmp.Or(cmp.Compare(a.after.Platform, b.after.Platform), cmp.Compare(a.after.ExternalID, b.after.ExternalID))
	})
	before, after := make([]store.Video, len(i.merged)), make([]store.Video, len(i.merged))
	var retitled []ingest.Retitled
	for n, m := range i.merged {
		before[n], after[n] = m.before, m.after
		if m.before.Title != m.after.Title {
			retitled = append(retitled, ingest.Retitled{Video: &after[n], Before: m.before.Title})
		}
	}
	if err := db.RunWrites(i.Tx, ingest.StatementsForVideos(i.Tx, after)...); err != nil {
		return err
	}
	if err := i.saveKnownCounts(); err != nil {
		return err
	}
	if err := i.clearCountedSince(); err != nil {
		return err
	}
	if err := ingest.SaveHashtags(i.Tx, retitled); err != nil {
		return err
	}
	if err := ingest.CountUploads(i.Tx, before, after); err != nil {
		return err
	}
	if err := store.RefreshStatistics(i.Tx, store.LinkedAccounts(after)); err != nil {
		return err
	}
	if err := i.updateDays(); err != nil {
		return err
	}
	return db.RunWrites(i.Tx, ingest.StatementsForTotals(i.Tx, store.SumsByOrganisation(before), store.SumsByOrganisation(after))...)
}

// saveKnownCounts stores in the queue the latest counts of the existing videos that got new points. It changes only targets that were never fetched:
// see queue.SaveKnownCounts. The first fetch is then compared with these counts. i.merged must be in the order of the targets.
func (i *importState) saveKnownCounts() error {
	var entries []queue.Entry
	for _, m := range i.merged {
		if v := m.after; len(m.added) > 0 && !m.isNew { // TrackRequest.Known gives the counts of new videos
			entries = append(entries, queue.Entry{Platform: v.Platform, Kind: queue.KindVideo, ExternalID: v.ExternalID, Known: v.Latest})
		}
	}
	return queue.SaveKnownCounts(i.Tx, i.ID(), entries)
}

// clearCountedSince sets counted_since to NULL for videos that got their account by this import, because the rows of the account now include
// them from their first days.
func (i *importState) clearCountedSince() error {
	var ids []uuid.UUID
	for _, m := range i.merged {
		if m.account != nil && m.before.CountedSince != nil && !m.after.Removed {
			ids = append(ids, m.after.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return db.Scoped(i.Tx, "videos", i.ID()).Where("videos.id IN ?", ids).Update("counted_since", nil).Error
}

// fillDetails sets those of the caption, upload date, length and account of m.after that the stored video lacks
// but the import has. It returns true if it changed a value.
func (m *mergedVideo) fillDetails() bool {
	v, in, changed := &m.after, m.in, false
	if v.Title == "" && in.Title != "" {
		v.Title, v.TitleFolded, changed = in.Title, db.FoldText(in.Title), true
	}
	if v.UploadedAt == nil && in.UploadedAt != nil {
		v.UploadedAt, changed = in.UploadedAt, true
	}
	if v.VideoLength == nil && in.VideoLength != nil {
		v.VideoLength, changed = in.VideoLength, true
	}
	if m.account != nil {
		v.Username, v.LinkedAccountID, changed = m.username, m.account, true
		v.Link = link.WithHandle(v.Platform, v.Link, v.Username)
	}
	return changed
}
