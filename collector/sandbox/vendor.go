package sandbox

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/reeltally/reeltally/store/link"
)

// serveVendor answers the requests to all simulated vendors. The paths of the vendors do not overlap.
func (s *Sandbox) serveVendor(w http.ResponseWriter, r *http.Request, path string) {
	c := &call{r: r, now: s.clock(), source: sourceVendor, method: path}
	area, _, _ := strings.Cut(path, "/")
	switch area {
	case "v1", "v2", "v3":
		s.serveScrapeCreators(w, c, path)
	case "acts", "actor-runs":
		s.serveApify(w, c, path)
	default:
		s.serveEnsembleData(w, c, path)
	}
}

// errLink is the error for a link that does not lead to a video of the requested platform.
var errLink = errors.New("the link does not lead to a video of the requested platform")

// linkedVideo returns the id of the video to which a link or a short link leads. It also makes the account in the link the author of the video, so
// that the answer has the account that the caller knows.
func (s *Sandbox) linkedVideo(p link.Platform, raw string) (id string, err error) {
	l, err := link.Parse(raw)
	if err == nil && l.Kind == link.Short {
		l, err = link.Parse(s.shortLinkTarget(l.Platform, l.ID).location)
	}
	if err != nil || l.Platform != p || l.Kind != link.Video {
		return "", errLink
	}
	s.world.AssignAuthor(p, l.ID, l.Handle) // AssignAuthor changes nothing if the link contains no account
	return l.ID, nil
}

// linkedAccount returns the account in a link. ok is false if the link contains no account of the platform.
func (s *Sandbox) linkedAccount(p link.Platform, raw string) (identity, bool) {
	l, err := link.Parse(raw)
	if err != nil || l.Platform != p || l.Kind != link.Account {
		return identity{}, false
	}
	if l.Handle == "" {
		return s.world.accountByID(p, l.ID)
	}
	return s.world.accountByHandleOrID(p, l.Handle)
}

// partOfList returns at most "size" entries of a list, from the index "start". nextIndex is the
// start of the next part, or 0 at the list's end.
func partOfList(ids []string, start, size int) (part []string, nextIndex int) {
	start = min(max(start, 0), len(ids))
	end := min(start+max(size, 0), len(ids))
	if end < len(ids) {
		nextIndex = end
	}
	return ids[start:end], nextIndex
}

// parseNumber parses a number in a request, such as a cursor. It returns 0 if the text is not a number.
func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// encodeVideos returns the JSON objects of the videos with the given ids, in the same order. It leaves out ids that are not valid.
func (s *Sandbox) encodeVideos(c *call, p link.Platform, ids []string, encode func(VideoTruth) object) []object {
	out := []object{}
	for _, id := range ids {
		if t, ok := s.world.Video(p, id, c.now); ok {
			out = append(out, encode(t))
		}
	}
	return out
}
