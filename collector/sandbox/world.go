package sandbox

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/reeltally/reeltally/store/link"
)

// World generates the accounts and videos of the sandbox. They depend only on the seed, the time
// and earlier requests. All methods may be called concurrently.
type World struct {
	seed uint64

	// mu protects the names, authors and renames that requests have set in this process.
	mu      sync.RWMutex
	names   map[accountRef]externalNames
	owners  map[videoRef]uint32 // the author that AssignAuthor has set for a video, as an account number
	renamed map[handleRef]handleOwner
}

// newWorld returns a World whose data depend on the given seed.
func newWorld(seed uint64) *World {
	return &World{seed: seed, names: map[accountRef]externalNames{}, owners: map[videoRef]uint32{}, renamed: map[handleRef]handleOwner{}}
}

// State is the visibility of a video or an account.
type State string

// These are the states of videos and accounts.
const (
	Public     State = "public"
	Restricted State = "restricted" // only adults can see the video, but YouTube's API returns it like a public one
	Private    State = "private"
	Deleted    State = "deleted"
)

// AccountName has the names and ids of an account. The data of a video contain the AccountName of the author.
type AccountName struct {
	ID     string `json:"id"`     // a channel id on YouTube, a numeric id on other platforms
	Handle string `json:"handle"` // handle in lower case, without "@"
	Name   string `json:"name"`
	SecUID string `json:"sec_uid,omitempty"` // the sec_uid, which TikTok uses besides the numeric id; "" on other platforms
}

// Song is the song of a video, as the sources give it.
type Song struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Artist string `json:"artist"`
	Link   string `json:"link,omitempty"` // link to the song; set on TikTok only
}

// VideoTruth has the data that World generates for a video at one time.
type VideoTruth struct {
	Platform      link.Platform `json:"platform"`
	ID            string        `json:"id"`
	Link          string        `json:"link"`
	Category      Category      `json:"category"`
	State         State         `json:"state"`
	ChangesAt     *time.Time    `json:"changes_at"` // time at which the video becomes private, is deleted or loses views; nil if none of this happens to videos of its category
	Account       AccountName   `json:"account"`
	Title         string        `json:"title"`
	UploadedAt    time.Time     `json:"uploaded_at"`    // upload time in UTC, in whole seconds
	LengthSeconds float64       `json:"length_seconds"` // length in seconds, without a fraction on YouTube; 0 for a slideshow or a live broadcast
	Song          *Song         `json:"song"`           // the song of the video; nil on YouTube
	NotSafe       bool          `json:"not_safe"`       // true if the video is age-restricted
	HiddenStats   bool          `json:"hidden_stats"`   // true if the creator hides the likes
	ShopAd        bool          `json:"shop_ad"`        // true if the video is a shop ad
	ShopProductID string        `json:"shop_product_id,omitempty"`
	Counts                      // counts at the requested time; private and deleted videos have counts, too
}

// AccountTruth has the data that World generates for an account at one time.
type AccountTruth struct {
	AccountName
	Platform  link.Platform   `json:"platform"`
	Link      string          `json:"link"`
	Category  AccountCategory `json:"category"`
	State     State           `json:"state"`
	JoinedAt  time.Time       `json:"joined_at"`
	Bio       string          `json:"bio"`
	BioLink   string          `json:"bio_link"`
	Followers *int64          `json:"followers"` // number of followers, rounded to three significant figures on YouTube; nil if hidden
	Following int64           `json:"following"`
	Videos    int64           `json:"videos"` // number of videos in the account's list
	Views     int64           `json:"views"`  // sum of the views of the videos in the account's list
	Likes     int64           `json:"likes"`  // sum of the likes of the videos in the account's list, without hidden likes

	self identity
}

// Point has the counts of a video at one time.
type Point struct {
	At time.Time `json:"at"`
	Counts
}

// video has the constant data of a video.
type video struct {
	platform  link.Platform
	id        string
	account   uint32 // account number that is derived from the id
	uploaded  int64  // upload time as a Unix time in seconds
	category  Category
	changesAt int64   // Unix time in seconds at which a video of the category BecomesPrivate, BecomesDeleted or Falling changes; not used for other categories
	fall      float64 // for the category Falling: the fraction of the views that the video loses at changesAt
	state     State   // Deleted if the account is deleted; Private if the account or the shortcode is private; Public in all other cases
	curve     curve
}

// fixedVideoData returns the constant data of a video. The parameter "at" is the current time.
// fixedVideoData returns false if the id is not valid.
func (w *World) fixedVideoData(p link.Platform, id string, at time.Time) (*video, bool) {
	if !validID(p, id) {
		return nil, false
	}
	by := w.originOf(p, id, at)
	v := &video{platform: p, id: id, account: by.account, uploaded: by.uploaded, state: Public}
	key := publicShortcode(id)
	if p != link.Instagram {
		key = id
	}
	// If the id contains no upload time, or a time in the future, the upload time is a random time in the last anchorInterval before an anchor. See
	// anchorTimeFor.
	if v.uploaded == 0 {
		d := rng{hashTexts(w.seed, "uploaded", string(p), key)}
		v.uploaded = anchorTimeFor(at) - int64(d.floatBetween(3600, anchorInterval-day))
	}
	v.category = pickCategory(videoCategoryFrequencies(p), rng{hashTexts(w.seed, "category", string(p), key)}, Normal)
	d := rng{hashTexts(w.seed, "turn", string(p), key)}
	v.changesAt = v.uploaded + int64(d.floatBetween(10, 300)*day)
	v.fall = d.floatBetween(0.12, 0.35)
	switch w.accountCategory(p, by.account) {
	case AccountGone:
		v.state = Deleted
	case AccountPrivate:
		v.state = Private
	}
	if key != id && v.state == Public {
		v.state = Private
	}
	v.curve = w.growthCurve(p, key, by.account, v.category)
	return v, true
}

// stateAt returns the state of the video at the given time. Some videos become private or are deleted at v.changesAt.
func (v *video) stateAt(at time.Time) State {
	switch {
	case v.state != Public:
		return v.state
	case v.category == AgeRestricted:
		return Restricted
	case v.category == BecomesDeleted && at.Unix() >= v.changesAt:
		return Deleted
	case v.category == BecomesPrivate && at.Unix() >= v.changesAt:
		return Private
	}
	return Public
}

// Video returns the generated data of a video at the given time. It returns false if the id is not valid.
func (w *World) Video(p link.Platform, id string, at time.Time) (VideoTruth, bool) {
	v, ok := w.fixedVideoData(p, id, at)
	if !ok {
		return VideoTruth{}, false
	}
	owner := w.authorOf(p, id, origin{account: v.account})
	d := rng{hashTexts(w.seed, "facts", string(p), id)}
	t := VideoTruth{
		Platform: p, ID: id, Category: v.category, State: v.stateAt(at), Account: w.accountName(owner),
		UploadedAt: time.Unix(v.uploaded, 0).UTC(),
		NotSafe:    v.category == AgeRestricted, HiddenStats: v.category == HiddenLikes,
		Counts: v.countsAt(at.Unix()),
	}
	t.Title = w.randomTitle(p, &d)
	t.LengthSeconds = randomLength(p, v.category, &d)
	t.Song = w.randomSong(p, owner, &d)
	t.Link = videoLink(p, id, owner, v.category)
	switch v.category {
	case BecomesPrivate, BecomesDeleted, Falling:
		change := time.Unix(v.changesAt, 0).UTC()
		t.ChangesAt = &change
	case ShopAd:
		t.ShopAd, t.ShopProductID = true, strconv.FormatUint(1_729_000_000_000_000_000+d.nextUint64()%999_999_999_999_999, 10)
	}
	return t, true
}

// DailyCounts returns the counts of a video at the end of each UTC day, and at endTime. It returns
// nil if the id is not valid.
func (w *World) DailyCounts(p link.Platform, id string, startTime, endTime time.Time) []Point {
	// If the id contains no upload time, the upload time depends on the time of the call. All points must have
	// the same upload time: the one at endTime.
	v, ok := w.fixedVideoData(p, id, endTime)
	if !ok {
		return nil
	}
	var points []Point
	for start := startTime.UTC().Truncate(24 * time.Hour); !start.After(endTime); start = start.AddDate(0, 0, 1) {
		at := start.Add(24*time.Hour - time.Second)
		if at.After(endTime) {
			at = endTime.UTC()
		}
		state := v.stateAt(at)
		// A day has no point if the video is private, deleted or not yet uploaded at this time.
		if at.Unix() >= v.uploaded && (state == Public || state == Restricted) {
			points = append(points, Point{at, v.countsAt(at.Unix())})
		}
	}
	return points
}

// Account returns an account's generated data. handleOrID is a handle, a YouTube channel id, or a
// numeric id of Instagram or Facebook. Account returns false if no account matches.
func (w *World) Account(p link.Platform, handleOrID string, at time.Time) (AccountTruth, bool) {
	i, ok := w.accountByHandleOrID(p, handleOrID)
	if !ok {
		return AccountTruth{}, false
	}
	return w.accountData(i, at), true
}

// accountByHandleOrID returns the account with the given handle or id. It returns false if the text cannot be a handle or an id, or
// if the account with this handle now has another handle and no other account has taken the handle.
func (w *World) accountByHandleOrID(p link.Platform, handleOrID string) (identity, bool) {
	if p == link.YouTube && channelPattern.MatchString(handleOrID) ||
		(p == link.Instagram || p == link.Facebook) && digits.MatchString(handleOrID) {
		return w.accountByID(p, handleOrID)
	}
	return w.accountByHandle(p, handleOrID)
}

// accountData returns the generated data of an account at the given time.
func (w *World) accountData(i identity, at time.Time) AccountTruth {
	s := w.generateUploadSchedule(i.platform, i.number, at)
	d := rng{w.accountKey("profile", i.platform, i.number)}
	scale := rng{w.accountKey("scale", i.platform, i.number)}
	t := AccountTruth{
		AccountName: w.accountName(i), Platform: i.platform, Link: accountLink(i), State: Public, self: i,
		Category: w.accountCategory(i.platform, i.number),
		JoinedAt: time.Unix(s.start-int64(d.floatBetween(1, 700)*day), 0).UTC(),
		Bio:      pickRandom(&d, bios), Following: int64(d.logUniform(10, 2000)),
	}
	if d.fraction() < 0.4 {
		t.BioLink = "https://example.com/" + i.handle
	}
	final := scale.logUniform(1_500, 300_000) * d.logUniform(2, 40)
	age := float64(max(at.Unix()-t.JoinedAt.Unix(), 0) / 60 * 60)
	followers := 10 + int64(final*(1-math.Pow(1+age/(200*day), -0.8)))
	if i.platform == link.YouTube {
		followers = roundToThreeFigures(followers)
	}
	t.Followers = &followers
	switch t.Category {
	case AccountGone:
		t.State = Deleted
	case AccountPrivate:
		t.State = Private
	case FollowersHidden:
		t.Followers = nil
	}
	for _, id := range w.uploadedIDs(i, at) {
		v, _ := w.fixedVideoData(i.platform, id, at)
		if state := v.stateAt(at); state == Private || state == Deleted {
			continue
		}
		c := v.countsAt(at.Unix())
		t.Videos++
		t.Views += c.Views
		if c.Likes != nil {
			t.Likes += *c.Likes
		}
	}
	return t
}

// Uploads returns the ids of an account's public and restricted videos, newest first. It returns nil if no
// account matches. For the parameter handleOrID, see the method Account.
func (w *World) Uploads(p link.Platform, handleOrID string, at time.Time) []string {
	i, ok := w.accountByHandleOrID(p, handleOrID)
	if !ok {
		return nil
	}
	return w.listedVideos(i, at)
}

// listedVideos returns the ids of the videos in an account's list, newest first: all uploads that are neither deleted nor private.
func (w *World) listedVideos(i identity, at time.Time) []string {
	var list []string
	for _, id := range w.uploadedIDs(i, at) {
		v, _ := w.fixedVideoData(i.platform, id, at)
		if state := v.stateAt(at); state == Public || state == Restricted {
			list = append(list, id)
		}
	}
	return list
}

// Find returns the id of a video of the given category, always the same one. It returns "" if the
// platform does not have the category.
func (w *World) Find(p link.Platform, c Category) string {
	if !slices.Contains(Categories(p), c) {
		return ""
	}
	at := time.Unix(epoch, 0)
	for number := uint32(1); number < findLimit; number++ {
		if w.accountCategory(p, number) != AccountNormal {
			continue
		}
		for _, id := range w.uploadedIDs(w.accountByNumber(p, number), at) {
			v, _ := w.fixedVideoData(p, id, at)
			// The video must change in 2027, so that tests can set the clock before or after the
			// change.
			changes := c == BecomesPrivate || c == BecomesDeleted || c == Falling
			if v.category == c && (!changes || v.changesAt >= epoch+92*day) {
				return id
			}
		}
	}
	return ""
}

// FindAccount returns the handle of an account of the given category. It always returns the same handle. It returns "" if the platform does
// not have the category.
func (w *World) FindAccount(p link.Platform, c AccountCategory) string {
	if !slices.Contains(AccountCategories(p), c) {
		return ""
	}
	for number := uint32(1); number < findLimit; number++ {
		if w.accountCategory(p, number) == c {
			return w.accountByNumber(p, number).handle
		}
	}
	return ""
}

// findLimit is the number of accounts that Find and FindAccount search. It is large enough for both to find the rarest category.
const findLimit = 100_000

// accountName returns the names and ids of an account.
func (w *World) accountName(i identity) AccountName {
	n := AccountName{ID: i.id, Handle: i.handle, Name: displayName(i)}
	if i.platform == link.TikTok {
		n.SecUID = w.secUID(i)
	}
	return n
}

// displayName returns a name such as "Mellow Baker" for a generated handle, and the capitalised handle for any other handle.
func displayName(i identity) string {
	if number, ok := accountNumberFromHandle(i.platform, i.handle); ok && number == i.number {
		return capitalise(adjectives[number>>26]) + " " + capitalise(nouns[number>>20&63])
	}
	return capitalise(i.handle)
}

func capitalise(s string) string {
	_, first := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:first]) + s[first:]
}

// randomTitle returns a random title: a caption, sometimes an emoji, and one to three hashtags. YouTube titles have at most 100 characters.
func (w *World) randomTitle(p link.Platform, d *rng) string {
	title := pickRandom(d, captions)
	if d.fraction() < 0.45 {
		title += " " + pickRandom(d, emoji)
	}
	for range 1 + d.intBelow(3) {
		title += " #" + pickRandom(d, hashtags)
	}
	if p == link.YouTube && utf8.RuneCountInString(title) > 100 {
		title = string([]rune(title)[:100])
	}
	return title
}

// randomLength returns the random length of a video in seconds: whole seconds on YouTube, milliseconds on other platforms, and 0 for live broadcasts
// and photos.
func randomLength(p link.Platform, c Category, d *rng) float64 {
	seconds := d.logUniform(6, 90)
	if kind := d.fraction(); p == link.YouTube && kind < 0.15 {
		seconds = d.logUniform(200, 3*3600)
	} else if kind > 0.99 {
		seconds = 600
	}
	switch {
	case c == Live || c == Photo:
		return 0
	case p == link.YouTube:
		return math.Floor(seconds)
	}
	return math.Floor(seconds*1000) / 1000
}

// randomSong returns the random song of a video: an original sound of the author, or one of the generated songs. It returns nil on
// YouTube.
func (w *World) randomSong(p link.Platform, owner identity, d *rng) *Song {
	if p == link.YouTube {
		return nil
	}
	var s Song
	if d.fraction() < 0.4 {
		own := rng{w.accountKey("song", p, owner.number)}
		s = Song{ID: songID(p, own.nextUint64()), Title: "original sound - " + owner.handle, Artist: displayName(owner)}
	} else {
		index := d.intBelow(len(songs))
		s = Song{ID: songID(p, hashTexts(w.seed, "song", strconv.Itoa(index))), Title: songs[index][0], Artist: songs[index][1]}
	}
	if p == link.TikTok {
		s.Link = "https://www.tiktok.com/music/x-" + s.ID
	}
	return &s
}

// songID returns a song id in the format of the platform. The id is derived from a random number.
func songID(p link.Platform, random uint64) string {
	if p == link.TikTok {
		return strconv.FormatUint(7_000_000_000_000_000_000+random%400_000_000_000_000_000, 10)
	}
	return strconv.FormatUint(200_000_000_000_000+random%700_000_000_000_000, 10)
}

// videoLink returns the canonical link of a video.
func videoLink(p link.Platform, id string, owner identity, c Category) string {
	switch p {
	case link.TikTok:
		kind := "video"
		if c == Photo {
			kind = "photo"
		}
		return fmt.Sprintf("https://www.tiktok.com/@%s/%s/%s", owner.handle, kind, id)
	case link.Instagram:
		return "https://www.instagram.com/reel/" + id + "/"
	case link.YouTube:
		return "https://www.youtube.com/watch?v=" + id
	default:
		return "https://www.facebook.com/reel/" + id
	}
}

// accountLink returns the canonical link of an account.
func accountLink(i identity) string {
	switch i.platform {
	case link.TikTok:
		return "https://www.tiktok.com/@" + i.handle
	case link.Instagram:
		return "https://www.instagram.com/" + i.handle + "/"
	case link.YouTube:
		return "https://www.youtube.com/@" + i.handle
	default:
		return "https://www.facebook.com/" + i.handle
	}
}

// roundToThreeFigures rounds a number down to three significant figures, as YouTube does with the number of subscribers.
func roundToThreeFigures(n int64) int64 {
	unit := int64(1)
	for n/unit >= 1000 {
		unit *= 10
	}
	return n / unit * unit
}
