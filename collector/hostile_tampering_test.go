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

// This file has the functions that change answers of the platform. They do not depend on how a source parses the answers.

// setCounts sets the named counts to value, or all counts if no name is given.
func setCounts(value any, names ...string) tamperFunc {
	return func(b *tampering, s *response) {
		b.eachCount(s, func(_, name string, at object, key string) {
			if matchesAny(name, names) {
				at[key] = value
			}
		})
	}
}

// matchesAny reports whether name is one of names. It returns true if names is empty.
func matchesAny(name string, names []string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// removeCounts removes the named counts, or all counts if no name is given.
func removeCounts(names ...string) tamperFunc {
	return func(b *tampering, s *response) {
		b.eachCount(s, func(_, name string, at object, key string) {
			if matchesAny(name, names) {
				delete(at, key)
			}
		})
	}
}

// reformatCounts replaces each named count by the result of spell.
func reformatCounts(spell func(n int64) any, names ...string) tamperFunc {
	return func(b *tampering, s *response) {
		b.eachCount(s, func(_, name string, at object, key string) {
			if n, err := strconv.ParseInt(scalarText(at[key]), 10, 64); err == nil && matchesAny(name, names) {
				at[key] = spell(n)
			}
		})
	}
}

// forgeCounts changes counts to wrong values that the collector cannot detect, and records them.
func forgeCounts(change func(n int64) int64, names ...string) tamperFunc {
	return func(b *tampering, s *response) {
		b.eachCount(s, func(id, name string, at object, key string) {
			n, err := strconv.ParseInt(scalarText(at[key]), 10, 64)
			if err != nil || !matchesAny(name, names) {
				return
			}
			n = change(n)
			b.addForged(id, n)
			at[key] = sameType(at[key], n)
		})
	}
}

// sameType returns n as a string if other is a string, and as a number otherwise.
func sameType(other any, n int64) any {
	if _, ok := other.(string); ok {
		return strconv.FormatInt(n, 10)
	}
	return n
}

// swapCounts exchanges two counts of each item. If the collector cannot detect the exchange, it records the values as forged.
func swapCounts(one, other string, detectable bool) tamperFunc {
	return func(b *tampering, s *response) {
		b.eachItem(s, func(id string, item object) {
			values := map[string]any{}
			for _, name := range []string{one, other} {
				for _, path := range b.testedSource.counts[name] {
					if at, key, ok := lookup(item, path); ok {
						values[name] = at[key]
					}
				}
			}
			if len(values) < 2 {
				return
			}
			for name, from := range map[string]string{one: other, other: one} {
				for _, path := range b.testedSource.counts[name] {
					if at, key, ok := lookup(item, path); ok {
						at[key] = values[from]
						if n, err := strconv.ParseInt(scalarText(values[from]), 10, 64); err == nil && !detectable {
							b.addForged(id, n)
						}
					}
				}
			}
		})
	}
}

// duplicateViews adds a second member for the views to each item, with another value.
func duplicateViews(value any) tamperFunc {
	return func(b *tampering, s *response) {
		b.eachCount(s, func(_, name string, at object, key string) {
			if name == "views" {
				at[duplicateMark+key] = value
			}
		})
	}
}

// changeItems calls change for each item of a victim.
func changeItems(change func(id string, item object)) tamperFunc {
	return func(b *tampering, s *response) { b.eachItem(s, change) }
}

// replaceIDs replaces the tamperedIDs' ids in the whole body.
func replaceIDs(to func(id string) string) tamperFunc {
	return func(b *tampering, s *response) {
		text := string(s.body)
		for _, id := range b.tamperedIDs {
			text = strings.ReplaceAll(text, id, to(id))
		}
		s.body = []byte(text)
	}
}

// adjacentID returns an id that differs only in the last character.
func adjacentID(id string) string {
	last := "4"
	if strings.HasSuffix(id, last) {
		last = "8"
	}
	return id[:len(id)-1] + last
}

// swapIDs exchanges the ids of the two tamperedIDs in the members that hold an id, and nowhere else.
func swapIDs(b *tampering, s *response) {
	b.eachItem(s, func(id string, item object) {
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

// copyCounts gives the first victim the counts of the second.
func copyCounts(b *tampering, s *response) {
	found := map[string]object{}
	b.eachItem(s, func(id string, item object) { found[id] = item })
	if len(found) < 2 {
		return
	}
	root := s.decoded()
	b.walk(root, func(id string, item object) {
		if id != b.tamperedIDs[0] {
			return
		}
		for _, paths := range b.testedSource.counts {
			for _, path := range paths {
				from, key, ok := lookup(found[b.tamperedIDs[1]], path)
				to, _, there := lookup(item, path)
				if ok && there {
					to[key] = from[key]
				}
			}
		}
	})
	s.encode(root)
}

// removeItems removes the tamperedIDs from their lists.
func removeItems(b *tampering, s *response) {
	b.eachList(s, func(list []any, isTampered func(any) bool) []any {
		kept := []any{}
		for _, element := range list {
			if !isTampered(element) {
				kept = append(kept, element)
			}
		}
		return kept
	})
}

// changeBody replaces the body by the result of change.
func changeBody(change func(body []byte) []byte) tamperFunc {
	return func(_ *tampering, s *response) { s.body = change(s.body) }
}

func replaceBody(body string) tamperFunc {
	return changeBody(func([]byte) []byte { return []byte(body) })
}

// respondWith answers with a status, a body and header fields, given as names and values in turn.
func respondWith(code int, body string, header ...string) tamperFunc {
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

// gzipBomb answers with a few kilobytes of gzip that decompress to a hundred megabytes.
func gzipBomb(_ *tampering, s *response) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for range 100 {
		_, _ = zip.Write(chunk) // a buffer accepts every write
	}
	_, _ = zip.Write(s.body)
	_ = zip.Close()
	s.body = packed.Bytes()
	s.header.Set("Content-Encoding", "gzip")
}

// shortenBody announces a longer body than it sends.
func shortenBody(_ *tampering, s *response) {
	body := s.body
	s.write = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+1000))
		_, _ = w.Write(body)
	}
}

// abortBody closes the connection in the middle of the body.
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

// sendNonHTTP writes the first line of another protocol to the connection.
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

// stall sends part percent of the body and then waits until the client gives up. With 0 it sends nothing.
func stall(part int) tamperFunc {
	return func(_ *tampering, s *response) {
		body := s.body
		s.write = func(w http.ResponseWriter, r *http.Request) {
			if part > 0 {
				_, _ = w.Write(body[:len(body)*part/100])
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}
	}
}

// appendMillionItems appends a million items to each list that contains a victim.
func appendMillionItems(b *tampering, s *response) {
	b.eachList(s, func(list []any, _ func(any) bool) []any {
		return append(list, raw(strings.Repeat("0,", 1_000_000)+"0"))
	})
}
