package link_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/reeltally/reeltally/store/link"
)

// TestParse_allocatesAtMost80KiBForLongestLinks parses links of the greatest accepted length. A
// bulk request with 500 such links then allocates at most 40 MiB.
//
//nolint:paralleltest // the test measures the allocations of the whole process
func TestParse_allocatesAtMost80KiBForLongestLinks(t *testing.T) {
	const maxBytes = 80 << 10
	starts := []string{
		"https://www.tiktok.com/", "https://www.tiktok.com/@a/video/", "https://vm.tiktok.com/", "https://www.instagram.com/", "https://www.instagram.com/a/reel/",
		"https://l.instagram.com/?u=", "https://www.youtube.com/", "https://www.youtube.com/watch?v=", "https://www.youtube.com/redirect?q=", "https://youtu.be/",
		"https://consent.youtube.com/m?continue=", "https://www.facebook.com/", "https://www.facebook.com/watch/?v=", "https://l.facebook.com/l.php?u=",
		"https://www.facebook.com/login/?next=", "https%3A%2F%2Fwww.tiktok.com/", "https://example.com/", "",
	}
	fragments := []string{
		"a", "/", "a/", "./", "../", "%2F", "a%2F", "%25", "%252F", "%", "?", "&", "&amp;", ";", "#", "@", "@a/", "a&", "a=1&", "u=", "v=1&", "u=https%3A%2F%2Fl.facebook.com%2Fl.php%3F",
		"next=%2Flogin%2F%3F", "é", "😀", "%F0%9F%98%80", ".", ":", "-", "_", "0", "9/", "video/", "reel/", "<", "[", "\u200d", " ", "https://", "www.",
	}
	ends := []string{"", strings.Repeat(")", 40), "…" + strings.Repeat(".", 40), "_~_~_~_~_~"}
	for _, start := range starts {
		for _, fragment := range fragments {
			for _, end := range ends {
				raw := start + strings.Repeat(fragment, (2048-len(start)-len(end))/len(fragment)) + end
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, _ = link.Parse(raw)
				runtime.ReadMemStats(&after)
				if got := after.TotalAlloc - before.TotalAlloc; got > maxBytes {
					t.Errorf("Parse allocates %d KiB for a link, but must allocate at most %d KiB; the link begins with %s, ends with %s, and has %d times %q between them", got>>10, maxBytes>>10, start, end, (2048-len(start)-len(end))/len(fragment), fragment)
				}
			}
		}
	}
}
