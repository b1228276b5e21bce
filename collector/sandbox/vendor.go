package sandbox

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/reeltally/reeltally/store/link"
)

// serveVendor answers for every vendor that ReelTally ships a configuration for; their paths do not overlap.
func (s *Sandbox) serveVendor(w http.ResponseWriter, r *http.Request, path string) {
	c := &call{r: r, now: s.clock(), source: sourceVendor, method: path}
	area, _, _ := strings.Cut(path, "/")
	switch area {
	case "v1", "v2", "v3":
		s.serveScrapeCreators(w, c, path)
	case "acts":
		s.serveApify(w, c, path)
	default:
		s.serveEnsembleData(w, c, path)
	}
}

// errLink is a link that a vendor cannot use.
var errLink = errors.New("not a link of a video there")

// linked reads the link of a video of a platform, short ones too, and notes the account that it names.
func (s *Sandbox) linked(p link.Platform, raw string) (id string, err error) {
	l, err := link.Parse(raw)
	if err == nil && l.Kind == link.Short {
		l, err = link.Parse(s.shortTarget(l.Platform, l.ID).location)
	}
	if err != nil || l.Platform != p || l.Kind != link.Video {
		return "", errLink
	}
	s.world.Claim(p, l.ID, l.Handle) // where the link names an account
	return l.ID, nil
}

// linkedAccount reads the link of an account of a platform.
func (s *Sandbox) linkedAccount(p link.Platform, raw string) (identity, bool) {
	l, err := link.Parse(raw)
	if err != nil || l.Platform != p || l.Kind != link.Account {
		return identity{}, false
	}
	if l.Handle == "" {
		return s.world.byID(p, l.ID)
	}
	return s.world.identify(p, l.Handle)
}

// window is the part of a list from a start, a number of chunks long; next is where it goes on, 0 at its end.
func window(ids []string, start, size int) (part []string, next int) {
	start = min(max(start, 0), len(ids))
	end := min(start+max(size, 0), len(ids))
	if end < len(ids) {
		next = end
	}
	return ids[start:end], next
}

// number reads a cursor or a depth; what is none is 0.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// objects turns ids into wire objects.
func (s *Sandbox) objects(c *call, p link.Platform, ids []string, wire func(VideoTruth) object) []object {
	out := []object{}
	for _, id := range ids {
		if t, ok := s.world.Video(p, id, c.now); ok {
			out = append(out, wire(t))
		}
	}
	return out
}
