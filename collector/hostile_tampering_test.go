package collector_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// setCounts replaces the named counts of the tampered videos in an answer by the given value. If no names are given, it replaces all
// counts.
func setCounts(value any, countNames ...string) tamperFunc {
	return func(b *tampering, s *response) {
		b.changeEachCount(s, func(_, name string, at object, key string) {
			if matchesAny(name, countNames) {
				at[key] = value
			}
		})
	}
}

// matchesAny returns true if the name is in the list, or if the list is empty.
func matchesAny(name string, names []string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// removeCounts removes the named counts of the tampered videos from an answer. If no names are given, it removes all counts.
func removeCounts(countNames ...string) tamperFunc {
	return func(b *tampering, s *response) {
		b.changeEachCount(s, func(_, name string, at object, key string) {
			if matchesAny(name, countNames) {
				delete(at, key)
			}
		})
	}
}

// reformatCounts replaces each named count of the tampered videos in an answer by the result of formatCount. If no names are given, it
// replaces all counts.
func reformatCounts(formatCount func(n int64) any, countNames ...string) tamperFunc {
	return func(b *tampering, s *response) {
		b.changeEachCount(s, func(_, name string, at object, key string) {
			if n, err := strconv.ParseInt(scalarText(at[key]), 10, 64); err == nil && matchesAny(name, countNames) {
				at[key] = formatCount(n)
			}
		})
	}
}

// falsifyCounts returns a tamperFunc that replaces the named counts of the tampered videos. It records the new
// counts as forged, because the collector cannot detect them.
func falsifyCounts(replacement func(n int64) int64, countNames ...string) tamperFunc {
	return func(b *tampering, s *response) {
		b.changeEachCount(s, func(id, name string, at object, key string) {
			n, err := strconv.ParseInt(scalarText(at[key]), 10, 64)
			if err != nil || !matchesAny(name, countNames) {
				return
			}
			n = replacement(n)
			b.addForgedCount(id, n)
			at[key] = convertToTypeOf(at[key], n)
		})
	}
}

// convertToTypeOf returns the number as a string if the sample is a string, and as a number if not.
func convertToTypeOf(sample any, n int64) any {
	if _, ok := sample.(string); ok {
		return strconv.FormatInt(n, 10)
	}
	return n
}

// swapCounts swaps the values of two counts of each tampered video. If detectable is false, it also
// calls addForgedCount for the swapped values.
func swapCounts(one, other string, detectable bool) tamperFunc {
	return func(b *tampering, s *response) {
		b.changeEachItem(s, func(id string, item object) {
			values := map[string]any{}
			for _, name := range []string{one, other} {
				for _, path := range b.testedSource.counts[name] {
					if at, key, ok := findMember(item, path); ok {
						values[name] = at[key]
					}
				}
			}
			if len(values) < 2 {
				return
			}
			for name, from := range map[string]string{one: other, other: one} {
				for _, path := range b.testedSource.counts[name] {
					if at, key, ok := findMember(item, path); ok {
						at[key] = values[from]
						if n, err := strconv.ParseInt(scalarText(values[from]), 10, 64); err == nil && !detectable {
							b.addForgedCount(id, n)
						}
					}
				}
			}
		})
	}
}

// addSecondViewCount adds a second JSON member for the views, with the given value, to the data of each tampered video.
func addSecondViewCount(value any) tamperFunc {
	return func(b *tampering, s *response) {
		b.changeEachCount(s, func(_, name string, at object, key string) {
			if name == "views" {
				at[duplicateMark+key] = value
			}
		})
	}
}

// changeItems returns a tamperFunc that calls a function for each item with an id in tampering.tamperedIDs. See changeEachItem.
func changeItems(change func(id string, item object)) tamperFunc {
	return func(b *tampering, s *response) { b.changeEachItem(s, change) }
}

// replaceIDs replaces the ids in tampering.tamperedIDs wherever they occur in an answer. The parameter replacement is a function that
// returns the new id for an old id.
func replaceIDs(replacement func(id string) string) tamperFunc {
	return func(b *tampering, s *response) {
		text := string(s.body)
		for _, id := range b.tamperedIDs {
			text = strings.ReplaceAll(text, id, replacement(id))
		}
		s.body = []byte(text)
	}
}

// adjacentID returns an id that differs from the given id only in the last character.
func adjacentID(id string) string {
	last := "4"
	if strings.HasSuffix(id, last) {
		last = "8"
	}
	return id[:len(id)-1] + last
}

// swapIDs swaps the ids of the two tampered videos in an answer. It does not change ids inside longer
// texts.
func swapIDs(b *tampering, s *response) {
	b.changeEachItem(s, func(id string, item object) {
		other := b.tamperedIDs[0]
		if other == id {
			other = b.tamperedIDs[1]
		}
		for name, v := range item {
			if scalarText(v) == id {
				item[name] = other
			}
		}
	})
}

// copyCounts overwrites the counts of the first tampered video in an answer with the counts of the second tampered video.
func copyCounts(b *tampering, s *response) {
	found := map[string]object{}
	b.changeEachItem(s, func(id string, item object) { found[id] = item })
	if len(found) < 2 {
		return
	}
	root := s.decodedBody()
	b.walkObjects(root, func(id string, item object) {
		if id != b.tamperedIDs[0] {
			return
		}
		for _, paths := range b.testedSource.counts {
			for _, path := range paths {
				from, key, ok := findMember(found[b.tamperedIDs[1]], path)
				to, _, there := findMember(item, path)
				if ok && there {
					to[key] = from[key]
				}
			}
		}
	})
	s.encode(root)
}

// removeItems removes the items of the tampered videos from the lists in an answer.
func removeItems(b *tampering, s *response) {
	b.changeEachList(s, func(list []any, isTampered func(any) bool) []any {
		kept := []any{}
		for _, element := range list {
			if !isTampered(element) {
				kept = append(kept, element)
			}
		}
		return kept
	})
}

// changeBody replaces the body of an answer by the result of a function.
func changeBody(change func(body []byte) []byte) tamperFunc {
	return func(_ *tampering, s *response) { s.body = change(s.body) }
}

func replaceBody(body string) tamperFunc {
	return changeBody(func([]byte) []byte { return []byte(body) })
}

// respondWithStatus replaces the status and the body of an answer and sets header fields. The last arguments are alternately the name and the
// value of a header field.
func respondWithStatus(code int, body string, header ...string) tamperFunc {
	return func(_ *tampering, s *response) {
		s.status, s.body = code, []byte(body)
		s.header.Set("Content-Type", "application/json")
		if strings.HasPrefix(body, "<") {
			s.header.Set("Content-Type", "text/html")
		}
		for i := 0; i+1 < len(header); i += 2 {
			s.header.Set(header[i], header[i+1])
		}
	}
}

const (
	htmlPage  = "<!DOCTYPE html><html><title>Just a moment…</title><body>Verify that you are human</body></html>"
	jsonError = `{"message":"something went wrong"}`
)

func encodeUTF16(body []byte) []byte {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(string(body))) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return out
}

// gzipBomb replaces the body of an answer by gzip data that decompresses to more than a hundred megabytes.
func gzipBomb(_ *tampering, s *response) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for range 100 {
		_, _ = zip.Write(chunk) // writing to a bytes.Buffer cannot fail
	}
	_, _ = zip.Write(s.body)
	_ = zip.Close()
	s.body = packed.Bytes()
	s.header.Set("Content-Encoding", "gzip")
}

// shortenBody sends an answer with a Content-Length that is larger than the body.
func shortenBody(_ *tampering, s *response) {
	body := s.body
	s.write = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+1000))
		_, _ = w.Write(body)
	}
}

// abortBody sends half of the body and then closes the connection.
func abortBody(_ *tampering, s *response) {
	body := s.body
	s.write = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func closeConnection(_ *tampering, s *response) {
	s.write = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
}

// sendNonHTTP answers with the first line of an SSH connection instead of HTTP.
func sendNonHTTP(_ *tampering, s *response) {
	s.write = func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.6\r\n")
		_ = conn.Close()
	}
}

// stallBody sends the given percentage of the body and then waits until the client closes the connection. If the percentage is 0, it sends
// nothing.
func stallBody(percentage int) tamperFunc {
	return func(_ *tampering, s *response) {
		body := s.body
		s.write = func(w http.ResponseWriter, r *http.Request) {
			if percentage > 0 {
				_, _ = w.Write(body[:len(body)*percentage/100])
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}
	}
}

// appendMillionItems appends a million zeros to each JSON list that contains a tampered video.
func appendMillionItems(b *tampering, s *response) {
	b.changeEachList(s, func(list []any, _ func(any) bool) []any {
		return append(list, rawText(strings.Repeat("0,", 1_000_000)+"0"))
	})
}
