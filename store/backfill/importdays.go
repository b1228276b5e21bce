package backfill

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// The tables account_days and organisation_days have, for each day, sums of the videos' last known
// counts. So an imported point also changes the rows of later days.

// dayChange contains amounts that an import adds to sums of an account or organisation. It changes
// the sums of one day and of all later days.
type dayChange struct {
	counts [db.MetricCount]int64 // for each metric: the change in the sum
	known  [db.MetricCount]int64 // for each metric: the change in the number of videos whose value is known
	videos int64                 // the change in the number of videos
	gained int64                 // the change in the gained views; only for an account

	firstViews int64 // the change in the sum of the first views; only for an organisation
	accounts   int64 // the change in the number of tracked accounts; only for an organisation
}

// addAmounts adds the amounts of the change o to d.
func (d *dayChange) addAmounts(o dayChange) {
	for n := range d.counts {
		d.counts[n] += o.counts[n]
		d.known[n] += o.known[n]
	}
	d.videos += o.videos
	d.gained += o.gained
	d.firstViews += o.firstViews
	d.accounts += o.accounts
}

// addToSums adds the amounts to the sums of one day. A sum that is nil stays nil unless a video's value becomes known.
func (d *dayChange) addToSums(sums *db.Counts) {
	for n, to := range sums.Fields() {
		if *to != nil || d.known[n] > 0 {
			*to = new(valueOrZero(*to) + d.counts[n])
		}
	}
}

// history collects the changes that an import makes to the rows of account_days of one account, or to the rows of organisation_days.
type history struct {
	// The key is a day. The value has the amounts that are added to the sums of this day and of all later days.
	changes map[db.Date]dayChange
	// Each of these days needs a row: the import adds a point on this day, begins to track a video on this day, or gives the account a video that has a
	// stored point of this day.
	measured map[db.Date]bool
	// unknownFirstViews is true if a changed video has views, but its first views are not stored.
	unknownFirstViews bool
}

// newHistory returns a history without changes.
func newHistory() *history {
	return &history{changes: map[db.Date]dayChange{}, measured: map[db.Date]bool{}}
}

// addChange adds c to the recorded change for the day. The change affects this day and all later
// days.
func (h *history) addChange(day db.Date, c dayChange) {
	sum := h.changes[day]
	sum.addAmounts(c)
	h.changes[day] = sum
}

// addCounts adds the steps of one video to the recorded changes if sign is 1, and subtracts them if sign is -1. Steps
// before the day firstDay change the rows from firstDay. If hiddenSince is not nil, the sums of this day and of all later
// days do not include the likes of the video.
func (h *history) addCounts(steps []step, sign int64, firstDay db.Date, hiddenSince *db.Date) {
	var known db.Counts
	for _, s := range steps {
		was := known.All()
		if hiddenSince != nil && s.day >= *hiddenSince {
			s.Likes = nil
		}
		known.Update(s.Counts)
		var c dayChange
		for n, is := range known.All() {
			c.counts[n] = sign * (valueOrZero(is) - valueOrZero(was[n]))
			if is != nil && was[n] == nil {
				c.known[n] = sign
			}
		}
		if was[viewsMetric] != nil && s.day >= firstDay { // the first known views are no gain, and the account has not gained what the video gained before firstDay
			c.gained = c.counts[viewsMetric]
		}
		h.addChange(max(s.day, firstDay), c)
	}
	if hiddenSince != nil && known.Likes != nil {
		var c dayChange
		c.counts[likesMetric], c.known[likesMetric] = -sign**known.Likes, -sign
		h.addChange(max(*hiddenSince, firstDay), c)
	}
}

// likesMetric and viewsMetric are the positions of the likes and of the views in the result of db.Counts.All.
var (
	likesMetric = slices.Index(db.MetricNames(""), "likes")
	viewsMetric = slices.Index(db.MetricNames(""), "views")
)

// areLikesHidden returns true if the platform hides the likes of the stored video. The video then has no latest likes, although older points can have
// likes.
func (m *mergedVideo) areLikesHidden() bool {
	return m.before.HiddenStats && m.before.Latest.Likes == nil
}

// likesHiddenSince returns the first day whose sums do not include the video's likes. It returns nil if the likes are not hidden, or if the video has no
// measured points. The result is the day of the first measured point after the last measured point with likes. If that last point is the newest measured
// point, the result is its own day. If no measured point has likes, the result is the day of the first measured point.
func (m *mergedVideo) likesHiddenSince() *db.Date {
	if !m.areLikesHidden() {
		return nil
	}
	var since *db.Date
	withLikes := true // the previous measured point has likes, or there is no previous measured point
	for n := range m.stored {
		s := &m.stored[n]
		if s.isImported() {
			continue
		}
		switch {
		case s.Likes != nil:
			since = &s.Day
		case withLikes:
			since = new(s.firstDay())
		}
		withLikes = s.Likes != nil
	}
	return since
}

// trackedSince returns the first day whose sums include the video. It is the day of the first step or the day on which the organisation began to
// track the video, whichever is earlier.
func (m *mergedVideo) trackedSince(afterImport bool, today db.Date) db.Date {
	since := today
	if !m.isNew {
		since = m.before.CreatedAt.Day()
	}
	if steps := m.steps(afterImport); len(steps) > 0 {
		since = min(since, steps[0].day)
	}
	return since
}

// addVideo records in h how the import of one video changes the sums. countedBefore is true if the sums of the account or organisation already
// include the video. Rows before the day firstDay do not change.
func (h *history) addVideo(m *mergedVideo, countedBefore bool, firstDay, today db.Date) {
	hiddenSince := m.likesHiddenSince()
	h.addCounts(m.steps(true), 1, firstDay, hiddenSince)
	h.addChange(max(m.trackedSince(true, today), firstDay), dayChange{videos: 1})
	if countedBefore {
		h.addCounts(m.steps(false), -1, firstDay, hiddenSince)
		if !m.isNew {
			h.addChange(max(m.trackedSince(false, today), firstDay), dayChange{videos: -1})
		}
	} else { // the days of the stored points need a row too
		for _, s := range m.steps(true) {
			h.measured[s.day] = true
		}
	}
	for _, p := range m.added {
		if day := p.At.Day(); day >= firstDay {
			h.measured[day] = true
		}
	}
}

// addFirstViews records in h how the import of one video changes the sums of the first views.
func (h *history) addFirstViews(m *mergedVideo) {
	if m.after.FirstViews == m.before.FirstViews {
		h.unknownFirstViews = h.unknownFirstViews || m.after.FirstViews == nil && m.firstStepWithViews(true) != nil
		return
	}
	h.addChange(m.firstStepWithViews(true).day, dayChange{firstViews: *m.after.FirstViews})
	if m.before.FirstViews != nil {
		h.addChange(m.firstStepWithViews(false).day, dayChange{firstViews: -*m.before.FirstViews})
	}
}

// updateDays updates the rows of organisation_days. It also updates the rows of account_days of the accounts whose videos the import changes.
func (i *importState) updateDays() error {
	org, accounts, today := newHistory(), map[uuid.UUID]*history{}, i.Now.Day()
	begun := false // the import adds a video without points, which the sums include from today
	for _, m := range i.merged {
		org.addVideo(m, true, 0, today)
		org.addFirstViews(m)
		begun = begun || m.isNew && len(m.steps(true)) == 0
		// The statistics of an account do not include stopped videos.
		if id := m.after.LinkedAccountID; id != nil && !m.after.Removed {
			if accounts[*id] == nil {
				accounts[*id] = newHistory()
			}
			counted, firstDay := m.before.LinkedAccountID != nil, db.Date(0)
			if counted {
				db.Assign(&firstDay, m.before.CountedSince) // earlier rows may lack the video, so they stay as they were measured
			}
			accounts[*id].addVideo(m, counted, firstDay, today)
		}
	}
	if err := i.updateOrganisationDays(org, begun); err != nil {
		return err
	}
	return i.updateAccountDays(accounts)
}

// eachDay calls updateDay for each day that needs a new or changed row, the oldest day first. The function updateDay must make the row of the day from
// the stored row with the index storedIndex, by adding the change c. This stored row is that of the day or, if the day has none, that of the last earlier
// day. If there is no such row, storedIndex is -1.
func (h *history) eachDay(storedDays []db.Date, updateDay func(day db.Date, storedIndex int, c dayChange)) {
	// The slice storedDays has the days that already have a row, in ascending order.
	days := slices.Concat(storedDays, slices.Collect(maps.Keys(h.measured)))
	slices.Sort(days)
	changed := slices.Sorted(maps.Keys(h.changes))
	var sum dayChange
	// row is the index of the last stored day that is not later than `day`. It is -1 if there is no such day.
	next, row := 0, -1
	for _, day := range slices.Compact(days) {
		for next < len(changed) && changed[next] <= day {
			sum.addAmounts(h.changes[changed[next]])
			next++
		}
		if row+1 < len(storedDays) && storedDays[row+1] == day {
			row++
		}
		if sum != (dayChange{}) || row < 0 || storedDays[row] != day {
			updateDay(day, row, sum)
		}
	}
}

// updateOrganisationDays updates the rows of organisation_days with the changes of h. If begun is true, today gets a row, as if the organisation
// had tracked videos today. But if the organisation has no rows yet and the import adds no points, no row is written.
func (i *importState) updateOrganisationDays(h *history, begun bool) error {
	var rows []organisationDay
	if err := db.Scoped(i.Tx, "organisation_days", i.ID()).Order("day").Find(&rows).Error; err != nil {
		return err
	}
	days := make([]db.Date, len(rows))
	for n := range rows {
		days[n] = rows[n].Day
	}
	if begun && len(rows)+len(h.measured) > 0 {
		h.measured[i.Now.Day()] = true
	}
	if len(rows) == 0 && len(h.measured) > 0 { // if no day is measured, no row is stored, so addTracked need not count all videos and accounts
		if err := i.addTracked(h); err != nil {
			return err
		}
	}
	var out []organisationDay
	h.eachDay(days, func(day db.Date, row int, c dayChange) {
		d := organisationDay{OrganisationID: i.ID()}
		if row >= 0 {
			d = rows[row]
		}
		d.Day = day
		d.Videos, d.Accounts = d.Videos+c.videos, d.Accounts+c.accounts
		c.addToSums(&d.Counts)
		switch {
		case row < 0 && !h.unknownFirstViews:
			d.FirstViews = &c.firstViews
		case d.FirstViews != nil:
			d.FirstViews = new(*d.FirstViews + c.firstViews)
		}
		out = append(out, d)
	})
	return i.upsertDays("organisation_days", []string{"organisation_id", "day"},
		append(db.MetricNames(""), "videos", "first_views"), out, len(out))
}

// addTracked records in h the videos and accounts that the organisation tracked before the import, each from the day on which its tracking began. It is
// called if the organisation has no rows yet: nothing was fetched before, so no row includes them. These days need a row if they are after the first point.
func (i *importState) addTracked(h *history) error {
	changes := map[db.Date]dayChange{}
	add := func(day db.Date, c dayChange) {
		sum := changes[day]
		sum.addAmounts(c)
		changes[day] = sum
	}
	for _, tracked := range []struct {
		query  string // counts what the organisation began to track, by day
		amount dayChange
	}{
		{"SELECT MIN(created_at) AS begun, COUNT(*) AS n FROM videos WHERE organisation_id = ? AND NOT removed GROUP BY created_at / ?", dayChange{videos: 1}},
		{"SELECT MIN(COALESCE(tracked_at, created_at)) AS begun, COUNT(*) AS n FROM accounts WHERE organisation_id = ? AND tracked GROUP BY COALESCE(tracked_at, created_at) / ?", dayChange{accounts: 1}},
	} {
		var days []struct {
			Begun db.Instant
			N     int64
		}
		if err := i.Tx.Raw(tracked.query, i.ID(), db.Day.Microseconds()).Scan(&days).Error; err != nil {
			return err
		}
		for _, d := range days {
			add(d.Begun.Day(), dayChange{videos: tracked.amount.videos * d.N, accounts: tracked.amount.accounts * d.N})
		}
	}
	for _, m := range i.merged {
		if m.isNew { // addVideo has counted it already
			add(m.before.CreatedAt.Day(), dayChange{videos: -1})
		}
	}
	first := slices.Min(slices.Collect(maps.Keys(h.measured)))
	for day, c := range changes {
		h.addChange(day, c)
		if day > first && c != (dayChange{}) {
			h.measured[day] = true
		}
	}
	return nil
}

// updateAccountDays updates the rows of account_days. The map changesByAccount has the changes of the sums; the key is the account's id.
func (i *importState) updateAccountDays(changesByAccount map[uuid.UUID]*history) error {
	if len(changesByAccount) == 0 {
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(changesByAccount), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	var rows []store.AccountDay
	if err := db.Scoped(i.Tx, "account_days", i.ID()).Where("account_id IN ?", ids).Order("account_id, day").Find(&rows).Error; err != nil {
		return err
	}
	of := map[uuid.UUID][]store.AccountDay{}
	for _, r := range rows {
		of[r.AccountID] = append(of[r.AccountID], r)
	}
	var out []store.AccountDay
	var gains [][]any
	var restarted []uuid.UUID // accounts whose sum of gained views begins anew, because a collector of an earlier release wrote the last row
	for _, id := range ids {
		changed := i.changedDays(id, of[id], changesByAccount[id])
		out = append(out, changed...)
		// The changed rows come last, so that they replace the stored rows of the same days.
		days := slices.Concat(of[id], changed)
		slices.SortStableFunc(days, func(a, b store.AccountDay) int { return cmp.Compare(a.Day, b.Day) })
		if len(days) > 0 {
			last := days[len(days)-1]
			gains = append(gains, []any{i.ID(), id, last.ViewsGained, store.GainedIn7Days(days)})
			if last.HasUnknownGain() {
				restarted = append(restarted, id)
			}
		}
	}
	if err := i.upsertDays("account_days", []string{"organisation_id", "account_id", "day"},
		append(db.MetricNames(""), "videos", "views_gained"), out, len(out)); err != nil {
		return err
	}
	if len(restarted) > 0 { // the sums of earlier days cannot be compared with those of later days
		if err := i.Tx.Exec("UPDATE account_days SET views_gained = NULL WHERE organisation_id = ? AND account_id IN ?", i.ID(), restarted).Error; err != nil {
			return err
		}
	}
	list := db.OrgRows{Name: "g", Columns: []string{"organisation_id uuid", "id uuid", "total bigint", "gained bigint"}, Rows: gains}
	return list.Exec(i.Tx, "UPDATE accounts SET views_gained = g.total, views_gained_7d = g.gained FROM g WHERE accounts.organisation_id = {org} AND accounts.id = g.id")
}

// changedDays returns the rows of account_days that an account has after the changes. It leaves out days that do not change. stored are the account's
// rows before the import, the oldest first.
func (i *importState) changedDays(account uuid.UUID, stored []store.AccountDay, changes *history) []store.AccountDay {
	// If an earlier release wrote a row, the row lacks the gained views. The gains of earlier days are then unknown, too.
	hasUnknownGains := slices.ContainsFunc(stored, store.AccountDay.HasUnknownGain)
	storedDays := make([]db.Date, len(stored))
	for n := range stored {
		storedDays[n] = stored[n].Day
	}
	var out []store.AccountDay
	changes.eachDay(storedDays, func(day db.Date, row int, c dayChange) {
		d := store.AccountDay{OrganisationID: i.ID(), AccountID: account}
		if row >= 0 {
			d = stored[row]
		}
		if d.Day != day {
			d.Day, d.FetchedAt, d.Source = day, nil, new(ImportSource)
		}
		d.Videos += c.videos
		viewsUnknown := d.Views == nil
		c.addToSums(&d.Counts)
		if d.ViewsGained != nil || viewsUnknown && d.Views != nil && !hasUnknownGains {
			d.ViewsGained = new(valueOrZero(d.ViewsGained) + c.gained)
		}
		out = append(out, d)
	})
	return out
}

// upsertDays inserts n rows into a table. If a row with the same key exists, the values in the
// columns sumColumns are replaced. The parameter `rows` must be a slice.
func (i *importState) upsertDays(table string, key, sumColumns []string, rows any, n int) error {
	if n == 0 {
		return nil
	}
	return i.Tx.Table(table).Clauses(clause.OnConflict{Columns: db.Columns(key), DoUpdates: clause.AssignmentColumns(sumColumns)}).
		CreateInBatches(rows, db.InsertChunk).Error
}
