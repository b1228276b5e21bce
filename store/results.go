package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/link"
)

// VideoFacts are what a source said of a video. A nil pointer means that it did not say: never zero, never empty.
type VideoFacts struct {
	Views, Likes, Comments, Shares, Bookmarks *int64

	Title     *string
	Username  *string // handle without "@", lower case; for Facebook with the ~suffix where known
	AccountID *string // the platform's own id of the account
	// AccountSourceID is as AccountFacts.SourceID.
	AccountSourceID *string
	AccountName     *string
	UploadedAt      *time.Time
	LengthSeconds   *float64
	SongName        *string
	SongLink        *string
	NotSafe         *bool
	Private         *bool
	HiddenStats     *bool // true when the platform withholds a count that this source normally gives
	IsAd            *bool
	ShopAd          *bool
	ShopProductID   *string
}

// Outcome is what became of one claimed target and what is next for it.
type Outcome struct {
	Target Target
	// Facts are written to every organisation that subscribes; nil writes no number at all.
	Facts *VideoFacts
	// Details is true if the facts came from a call that gives more than counts.
	Details bool
	// DetailsOnly is true if the facts complete those of an earlier call. Their counts are not written.
	DetailsOnly bool
	// Private and NotSafe, when set, are written even without facts: the source refused, and said why.
	Private, NotSafe *bool
	// Source names where the facts come from, for provenance.
	Source string
	// NextAt is when the target is due again; Pace, Attempts, RefusedAs, Refusals, State, Suspect and Detail replace the target's.
	NextAt    Instant
	Pace      Pace
	Attempts  int
	RefusedAs string
	Refusals  int
	State     string
	Suspect   *string
	Detail    string
	// Route is the source to ask next; "" keeps the target's. Answers are what the sources before it have said; they replace the target's. If
	// Onward is true, Route is asked as soon as possible, and a waiting organisation waits for its answer.
	Route   string
	Answers *string
	Onward  bool
	// HandleLost says of an account that another one answers to its handle.
	HandleLost bool
	// Handle is the account's handle if a source confirmed it for the video, else "". If Facts has a username, that counts as confirmed
	// too.
	Handle string
	// TriedHandles are those of the target's Handles under which no source found the video. The next fetch tries other handles first.
	TriedHandles []string

	account   bool // an account's facts came
	followers *int64
}

// Acknowledge writes the outcomes of a claim: points, latest counts, everything derived from them, and the targets'
// next turn, all in one transaction and then acknowledged. fetchedAt is when the source was asked; it decides the
// day of the points, and numbers that are newer than it stay as they are, so that writing an outcome twice, or late,
// changes nothing. Targets whose lease was lost to another collector keep what that one decides.
func (s *Store) Acknowledge(ctx context.Context, c Claim, fetchedAt Instant, outcomes []Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	if err := s.ensureDays(ctx, fetchedAt.Day(), fetchedAt.Day()); err != nil {
		return err
	}
	return s.repeatOnDuplicate(func() error {
		return s.tx(ctx, func(tx *gorm.DB) error {
			if err := writeOutcomes(tx, s.dialect, fetchedAt, outcomes); err != nil {
				return err
			}
			return acknowledge(tx, c, s.now(), fetchedAt, outcomes)
		})
	})
}

// repeatOnDuplicate runs a transaction again when it met a row that another had just made: two collectors may come upon
// the same new account in one organisation, and the later one finds it the second time.
func (s *Store) repeatOnDuplicate(transaction func() error) error {
	for attempt := 1; ; attempt++ {
		if err := transaction(); !errors.Is(err, ErrDuplicate) || attempt == maxAttempts {
			return err
		}
	}
}

func writeOutcomes(tx *gorm.DB, d dialect, fetchedAt Instant, outcomes []Outcome) error {
	byKey := make(map[string]*Outcome, len(outcomes))
	written := make([]Target, 0, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		if o.Facts != nil || o.Private != nil || o.NotSafe != nil {
			byKey[targetKey(o.Target.Platform, o.Target.ExternalID)] = o
			written = append(written, o.Target)
		}
	}
	w := writer{tx: tx, dialect: d, fetchedAt: fetchedAt, outcomes: map[rowKey]*Outcome{}, undated: map[rowKey]bool{}}
	for _, g := range byKind(written) {
		var subs []fetchSubscription
		err := tx.Where("bucket = ? AND source = ? AND kind = ? AND external_id IN ?", bucket, g.platform, g.kind, g.ids).Find(&subs).Error
		if err != nil {
			return err
		}
		for _, sub := range subs {
			w.outcomes[rowKey{sub.OrganisationID, sub.SubjectID}] = byKey[targetKey(sub.Source, sub.ExternalID)]
		}
	}
	keys := sortedKeys(w.outcomes)
	if err := raiseVersions(tx, d, fetchedAt, orgsOf(keys)...); err != nil {
		return err
	}
	for chunk := range slices.Chunk(keys, insertChunk) {
		if err := w.write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// writer writes outcomes for the videos of all organisations that have them.
type writer struct {
	tx        *gorm.DB
	dialect   dialect
	fetchedAt Instant
	outcomes  map[rowKey]*Outcome // by video
	undated   map[rowKey]bool     // videos whose upload date was not known before
}

func (w writer) write(keys []rowKey) error {
	videos, err := w.load(keys)
	if err != nil || len(videos) == 0 {
		return err
	}
	accounts, follow, err := w.accounts(videos)
	if err != nil {
		return err
	}
	before, touched := sums(videos), map[rowKey]bool{}
	w.touch(touched, videos)
	var measured []*Video
	var renamed []retitled
	for i := range videos {
		v := &videos[i]
		title := v.Title
		w.undated[v.key()] = v.UploadedAt == nil
		if apply(v, w.outcomes[v.key()], accounts, w.fetchedAt) {
			measured = append(measured, v)
		}
		if v.Title != title {
			renamed = append(renamed, retitled{v, title})
		}
	}
	if err := w.savePoints(measured); err != nil {
		return err
	}
	if err := w.increases(measured); err != nil {
		return err
	}
	if err := w.saveVideos(videos); err != nil {
		return err
	}
	if err := follow(); err != nil {
		return err
	}
	if err := w.saveHashtags(renamed); err != nil {
		return err
	}
	if err := w.countUploads(videos); err != nil {
		return err
	}
	// A video whose author turned out to be another counts no longer where it was.
	w.touch(touched, videos)
	if err := w.refreshAccounts(touched); err != nil {
		return err
	}
	return w.addToTotals(before, sums(videos))
}

// touch notes the accounts of videos, and whether numbers came for any of an account's.
func (w writer) touch(accounts map[rowKey]bool, videos []Video) {
	for i := range videos {
		v := &videos[i]
		if v.LinkedAccountID != nil {
			account := rowKey{v.OrganisationID, *v.LinkedAccountID}
			accounts[account] = accounts[account] || w.outcomes[v.key()].measured()
		}
	}
}

// refreshAccounts recomputes the statistics of accounts and notes them for the day, with the source of the numbers where any
// came: the outcomes of a call have one.
func (w writer) refreshAccounts(touched map[rowKey]bool) error {
	measured, others := map[rowKey]bool{}, map[rowKey]bool{}
	for account, is := range touched {
		if is {
			measured[account] = true
		} else {
			others[account] = true
		}
	}
	of := stamp{day: w.fetchedAt.Day()}
	if err := refreshAccounts(w.tx, sortedKeys(others), of); err != nil {
		return err
	}
	for _, o := range w.outcomes {
		if o.measured() {
			of.fetchedAt, of.source = &w.fetchedAt, &o.Source
		}
	}
	return refreshAccounts(w.tx, sortedKeys(measured), of)
}

// load reads and locks those of the videos that are still tracked and have nothing newer, in the order of organisation,
// platform and the platform's id.
func (w writer) load(keys []rowKey) ([]Video, error) {
	list, args := withKeys(w.tx, keys)
	var videos []Video
	return videos, w.tx.Raw(list+`SELECT videos.* FROM wanted CROSS JOIN videos
 WHERE videos.organisation_id = wanted.organisation_id AND videos.id = wanted.id AND NOT videos.removed
   AND (videos.latest_updated_at IS NULL OR videos.latest_updated_at <= ?)
 ORDER BY videos.organisation_id, videos.platform, videos.external_id`+forUpdateOf(w.dialect, "videos"), append(args, w.fetchedAt)...).Scan(&videos).Error
}

// apply puts an outcome into the video and says whether it holds counts.
func apply(v *Video, o *Outcome, accounts map[rowKey]*Account, fetchedAt Instant) bool {
	set(&v.Private, o.Private)
	set(&v.NotSafe, o.NotSafe)
	f := o.Facts
	if f == nil {
		return false
	}
	if o.measured() {
		applyCounts(v, f, fetchedAt)
	}
	set(&v.Title, f.Title)
	v.TitleFolded = strings.ToLower(v.Title)
	set(&v.Username, f.Username)
	if a, ok := accounts[v.key()]; ok {
		v.LinkedAccountID, v.Username = &a.ID, cmp.Or(a.Username, v.Username) // the account may be known better than this answer does
	}
	if f.UploadedAt != nil {
		day := DateOf(*f.UploadedAt)
		v.UploadedAt = &day
	}
	if f.LengthSeconds != nil && !isWhole(v.VideoLength, *f.LengthSeconds) {
		length := formatSeconds(*f.LengthSeconds)
		v.VideoLength = &length
	}
	setPointer(&v.SongName, f.SongName)
	setPointer(&v.SongLink, f.SongLink)
	set(&v.NotSafe, f.NotSafe)
	set(&v.Private, f.Private)
	set(&v.HiddenStats, f.HiddenStats)
	set(&v.AdIsAd, f.IsAd)
	set(&v.AdInfoShop, f.ShopAd)
	setPointer(&v.AdProductIDShop, f.ShopProductID)
	v.Link = link.WithHandle(v.Platform, v.Link, v.Username)
	return o.measured()
}

// measured returns true if the outcome has counts to write.
func (o *Outcome) measured() bool { return o.Facts != nil && !o.DetailsOnly }

// applyCounts sets the latest counts of a video.
func applyCounts(v *Video, f *VideoFacts, fetchedAt Instant) {
	v.LatestUpdatedAt = &fetchedAt
	setCount := setPointer[int64]
	if f.HiddenStats != nil && *f.HiddenStats {
		setCount = func(to **int64, from *int64) { *to = from } // what is hidden now is not what it was before
	}
	setCount(&v.LatestViews, f.Views)
	setCount(&v.LatestLikes, f.Likes)
	setCount(&v.LatestComments, f.Comments)
	setCount(&v.LatestShares, f.Shares)
	setCount(&v.LatestBookmarks, f.Bookmarks)
	v.LatestEngagement = v.latest().Engagement()
}

func (v *Video) latest() Counts {
	return Counts{Views: v.LatestViews, Likes: v.LatestLikes, Comments: v.LatestComments, Shares: v.LatestShares, Bookmarks: v.LatestBookmarks}
}

// isWhole says whether a length is the known one in whole seconds: platforms' calls differ in that, and one must not take away
// what another has said more exactly.
func isWhole(known *string, seconds float64) bool {
	if known == nil {
		return false
	}
	exact, err := strconv.ParseFloat(*known, 64)
	return err == nil && (math.Floor(exact) == seconds || math.Round(exact) == seconds)
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func setPointer[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

type snapshot struct {
	OrganisationID uuid.UUID
	VideoID        uuid.UUID
	Day            Date
	Week           Date
	Counts
	FetchedAt Instant
	Source    string
}

// savePoints writes the day's point of each video: the counts that this fetch gave, and those of an earlier fetch of
// the same day where this one is silent.
func (w writer) savePoints(videos []*Video) error {
	day := w.fetchedAt.Day()
	rows := make([]snapshot, len(videos))
	for i, v := range videos {
		o := w.outcomes[v.key()]
		rows[i] = snapshot{OrganisationID: v.OrganisationID, VideoID: v.ID, Day: day, Week: day.Week(), FetchedAt: w.fetchedAt, Source: o.Source,
			Counts: Counts{Views: o.Facts.Views, Likes: o.Facts.Likes, Comments: o.Facts.Comments, Shares: o.Facts.Shares, Bookmarks: o.Facts.Bookmarks}}
	}
	if len(rows) == 0 {
		return nil
	}
	assignments := clause.AssignmentColumns([]string{"fetched_at", "source"})
	for _, c := range countColumns {
		assignments = append(assignments, clause.Assignments(map[string]any{c: gorm.Expr("COALESCE(excluded." + c + ", snapshots_daily." + c + ")")})...)
	}
	return w.tx.Table("snapshots_daily").Clauses(clause.OnConflict{
		Columns:   columns([]string{"organisation_id", "video_id", "day"}),
		DoUpdates: assignments,
		Where:     clause.Where{Exprs: []clause.Expression{gorm.Expr("snapshots_daily.fetched_at <= excluded.fetched_at")}},
	}).CreateInBatches(rows, insertChunk).Error
}

// increases computes the growth of views against the last point on or before 1, 7, 14 and 30 days ago.
func (w writer) increases(videos []*Video) error {
	if len(videos) == 0 {
		return nil
	}
	byKey := make(map[rowKey]*Video, len(videos))
	for _, v := range videos {
		byKey[v.key()] = v
	}
	const before = `COALESCE((SELECT d.views FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id AND d.day <= ? AND d.views IS NOT NULL ORDER BY d.day DESC LIMIT 1),
 (SELECT k.views FROM snapshots_weekly k WHERE k.organisation_id = wanted.organisation_id AND k.video_id = wanted.id AND k.day <= ? AND k.views IS NOT NULL ORDER BY k.day DESC LIMIT 1))`
	day := w.fetchedAt.Day()
	var rows []struct {
		OrganisationID   uuid.UUID
		ID               uuid.UUID
		V1, V7, V14, V30 *int64
	}
	list, args := withKeys(w.tx, sortedKeys(byKey))
	err := w.tx.Raw(list+`SELECT wanted.organisation_id, wanted.id, `+before+` AS v1, `+before+` AS v7, `+before+` AS v14, `+before+` AS v30 FROM wanted`,
		append(args, day-1, day-1, day-7, day-7, day-14, day-14, day-30, day-30)...).Scan(&rows).Error
	if err != nil {
		return err
	}
	for _, r := range rows {
		v := byKey[rowKey{r.OrganisationID, r.ID}]
		v.Increase1d, v.Increase7d = Increase(v.LatestViews, r.V1), Increase(v.LatestViews, r.V7)
		v.Increase14d, v.Increase30d = Increase(v.LatestViews, r.V14), Increase(v.LatestViews, r.V30)
	}
	return nil
}

// Increase is the growth from before to latest in percent; 0 when there was nothing to compare with.
func Increase(latest, before *int64) float64 {
	if latest == nil || before == nil || *before == 0 {
		return 0
	}
	return (float64(*latest) - float64(*before)) / float64(*before) * 100
}

// saveVideos writes the rows back, all in one statement. They are there and locked: the insert never happens.
func (w writer) saveVideos(videos []Video) error {
	return w.tx.Clauses(clause.OnConflict{
		Columns: columns([]string{"organisation_id", "id"}),
		DoUpdates: clause.AssignmentColumns([]string{"link", "username", "linked_account_id", "uploaded_at", "song_name", "song_link",
			"video_length", "title", "title_folded", "not_safe", "private", "hidden_stats", "ad_info_shop", "ad_is_ad", "ad_product_id_shop",
			"latest_views", "latest_likes", "latest_comments", "latest_bookmarks", "latest_shares", "latest_engagement", "latest_updated_at",
			"increase_1d", "increase_7d", "increase_14d", "increase_30d"}),
	}).CreateInBatches(videos, insertChunk/2).Error
}

type videoHashtag struct {
	OrganisationID uuid.UUID
	Tag            string
	VideoID        uuid.UUID
}

// retitled is a video whose title is another than before.
type retitled struct {
	*Video
	before string
}

// saveHashtags keeps the index of captions' hashtags in step with the titles.
func (w writer) saveHashtags(videos []retitled) error {
	outdated := map[uuid.UUID][]uuid.UUID{}
	var rows []videoHashtag
	for _, v := range videos {
		if len(Hashtags(v.before)) > 0 {
			outdated[v.OrganisationID] = append(outdated[v.OrganisationID], v.ID)
		}
		for _, tag := range Hashtags(v.Title) {
			rows = append(rows, videoHashtag{v.OrganisationID, tag, v.ID})
		}
	}
	for _, org := range distinct(slices.Collect(maps.Keys(outdated))) {
		if err := w.tx.Exec("DELETE FROM video_hashtags WHERE organisation_id = ? AND video_id IN ?", org, outdated[org]).Error; err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return w.tx.CreateInBatches(rows, insertChunk).Error
}

// soon is within which time a target that failed is still waited for by somebody.
const soon = 5 * time.Minute

// acknowledge ends the leases. A target that somebody asked for after it was claimed is due again at once: what was
// written may have missed that organisation.
func acknowledge(tx *gorm.DB, c Claim, now, fetchedAt Instant, outcomes []Outcome) error {
	sorted := slices.SortedFunc(slices.Values(outcomes), func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Target.Platform, b.Target.Platform), cmp.Compare(a.Target.Kind, b.Target.Kind),
			cmp.Compare(a.Target.ExternalID, b.Target.ExternalID))
	})
	for chunk := range slices.Chunk(sorted, insertChunk) {
		turns, err := onwardTurns(tx, now, chunk)
		if err != nil {
			return err
		}
		rows := make([][]any, len(chunk))
		for i, o := range chunk {
			var fetched, details *Instant
			var views *int64
			handle := o.Handle
			if o.Facts != nil {
				set(&handle, o.Facts.Username)
				if o.measured() {
					fetched, views = &fetchedAt, o.Facts.Views
				}
				if o.Details {
					details = &fetchedAt
				}
			}
			if o.account { // by whose followers its next answer is weighed, as a video's by its views
				fetched, views = &fetchedAt, o.followers
			}
			rows[i] = []any{o.Target.Platform, o.Target.Kind, o.Target.ExternalID, o.Target.RequestedAt, o.NextAt, o.Attempts, o.RefusedAs, o.Refusals, o.State, o.Detail, o.Suspect,
				fetched, details, views, o.Pace, handle, o.Route, o.Answers, o.Onward, turns[i]}
		}
		list, args := with(tx, "u", []string{"source text", "kind text", "external_id text", "requested_at bigint", "next_at bigint", "attempts integer", "refused_as text", "refusals integer", "state text",
			"detail text", "suspect text", "fetched_at bigint", "details_at bigint", "views bigint", "pace integer", "handle text", "route text", "answers text", "onward boolean", "turn bigint"}, rows)
		args = append(args, now, now.Add(soon), bucket, c.Token)
		err = tx.Exec(list+`UPDATE fetch_targets SET claimed_by = NULL, token = NULL, pace = u.pace, attempts = u.attempts, refused_as = u.refused_as, refusals = u.refusals, state = u.state, detail = u.detail, suspect = u.suspect,
  fetched_at = COALESCE(u.fetched_at, fetch_targets.fetched_at),
  details_at = CASE WHEN fetch_targets.requested_at > u.requested_at THEN fetch_targets.details_at ELSE COALESCE(u.details_at, fetch_targets.details_at) END,
  views = COALESCE(u.views, fetch_targets.views),
  handle = CASE WHEN u.handle = '' THEN fetch_targets.handle ELSE u.handle END,
  route = CASE WHEN u.route = '' THEN fetch_targets.route ELSE u.route END, answers = u.answers,
  turn = CASE WHEN u.turn > 0 THEN u.turn ELSE fetch_targets.turn END,
  next_at = CASE WHEN fetch_targets.requested_at > u.requested_at THEN ? ELSE u.next_at END,
  lane = CASE WHEN fetch_targets.requested_at <= u.requested_at AND NOT u.onward AND (u.fetched_at IS NOT NULL OR u.next_at > ?) THEN fetch_targets.base_lane ELSE fetch_targets.lane END
 FROM u WHERE fetch_targets.bucket = ? AND fetch_targets.source = u.source AND fetch_targets.kind = u.kind
   AND fetch_targets.external_id = u.external_id AND fetch_targets.token = ?`, args...).Error
		if err != nil {
			return err
		}
		if err := noteTried(tx, now, chunk); err != nil {
			return err
		}
	}
	return nil
}

// onwardTurns returns the turns of the targets that organisations wait for and that go on to another source, in the order of the outcomes; 0 for
// other targets.
func onwardTurns(tx *gorm.DB, now Instant, outcomes []Outcome) ([]int64, error) {
	given, turns := map[string]*orgTurn{}, make([]int64, len(outcomes))
	for i, o := range outcomes {
		if !o.Onward || o.Target.Lane != LaneInteractive || o.Target.AskedBy == nil {
			continue
		}
		var err error
		if turns[i], err = nextTurn(tx, given, o.Route, *o.Target.AskedBy, now); err != nil {
			return nil, err
		}
	}
	return turns, saveTurns(tx, given)
}

// noteTried moves the claimed handles that were tried without success behind the other claims of their targets.
func noteTried(tx *gorm.DB, now Instant, outcomes []Outcome) error {
	for _, o := range outcomes {
		if len(o.TriedHandles) == 0 {
			continue
		}
		err := tx.Exec(`UPDATE fetch_subscriptions SET handle_at = ? WHERE bucket = ? AND source = ? AND kind = ? AND external_id = ? AND handle IN ?`,
			now, bucket, o.Target.Platform, o.Target.Kind, o.Target.ExternalID, o.TriedHandles).Error
		if err != nil {
			return err
		}
	}
	return nil
}
