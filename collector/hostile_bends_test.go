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

// What the platform does to its answers. All of it is told from outside: nothing here knows how a source reads.

// setting puts a value in the place of some counts; of all where no name is given.
func setting(value any, names ...string) bend {
	return func(b *bending, s *sent) {
		b.counted(s, func(_, name string, at object, key string) {
			if oneOf(name, names) {
				at[key] = value
			}
		})
	}
}

// oneOf says whether a name is among some; without any, every one is.
func oneOf(name string, names []string) bool { return len(names) == 0 || slices.Contains(names, name) }

// without leaves counts out.
func without(names ...string) bend {
	return func(b *bending, s *sent) {
		b.counted(s, func(_, name string, at object, key string) {
			if oneOf(name, names) {
				delete(at, key)
			}
		})
	}
}

// spelled writes every count of an item in another way.
func spelled(spell func(n int64) any, names ...string) bend {
	return func(b *bending, s *sent) {
		b.counted(s, func(_, name string, at object, key string) {
			if n, err := strconv.ParseInt(scalarText(at[key]), 10, 64); err == nil && oneOf(name, names) {
				at[key] = spell(n)
			}
		})
	}
}

// lying changes counts into others that nobody can tell from true ones.
func lying(change func(n int64) int64, names ...string) bend {
	return func(b *bending, s *sent) {
		b.counted(s, func(id, name string, at object, key string) {
			n, err := strconv.ParseInt(scalarText(at[key]), 10, 64)
			if err != nil || !oneOf(name, names) {
				return
			}
			n = change(n)
			b.lie(id, n)
			at[key] = like(at[key], n)
		})
	}
}

// like spells a number in the type of another value.
func like(other any, n int64) any {
	if _, ok := other.(string); ok {
		return strconv.FormatInt(n, 10)
	}
	return n
}

// swapping has two counts of each item change places. told says that it can be told from the truth.
func swapping(one, other string, told bool) bend {
	return func(b *bending, s *sent) {
		b.items(s, func(id string, item object) {
			values := map[string]any{}
			for _, name := range []string{one, other} {
				for _, path := range b.lane.counts[name] {
					if at, key, ok := place(item, path); ok {
						values[name] = at[key]
					}
				}
			}
			if len(values) < 2 {
				return
			}
			for name, from := range map[string]string{one: other, other: one} {
				for _, path := range b.lane.counts[name] {
					if at, key, ok := place(item, path); ok {
						at[key] = values[from]
						if n, err := strconv.ParseInt(scalarText(values[from]), 10, 64); err == nil && !told {
							b.lie(id, n)
						}
					}
				}
			}
		})
	}
}

// twice says a count twice in one object, the second time otherwise.
func twice(value any) bend {
	return func(b *bending, s *sent) {
		b.counted(s, func(_, name string, at object, key string) {
			if name == "views" {
				at[twiceMark+key] = value
			}
		})
	}
}

// each changes the items of the victims.
func each(change func(id string, item object)) bend {
	return func(b *bending, s *sent) { b.items(s, change) }
}

// renamed writes another id wherever an item has its own.
func renamed(to func(id string) string) bend {
	return func(b *bending, s *sent) {
		text := string(s.body)
		for _, id := range b.victims {
			text = strings.ReplaceAll(text, id, to(id))
		}
		s.body = []byte(text)
	}
}

// nextTo is another id of the same shape.
func nextTo(id string) string {
	last := "4"
	if strings.HasSuffix(id, last) {
		last = "8"
	}
	return id[:len(id)-1] + last
}

// exchanged has the two victims change ids where an item names its own, and nowhere else.
func exchanged(b *bending, s *sent) {
	b.items(s, func(id string, item object) {
		other := b.victims[0]
		if other == id {
			other = b.victims[1]
		}
		for name, v := range item {
			if scalarText(v) == id {
				item[name] = other
			}
		}
	})
}

// copied gives the first victim the numbers of the second.
func copied(b *bending, s *sent) {
	found := map[string]object{}
	b.items(s, func(id string, item object) { found[id] = item })
	if len(found) < 2 {
		return
	}
	root := s.decoded()
	b.walk(root, func(id string, item object) {
		if id != b.victims[0] {
			return
		}
		for _, paths := range b.lane.counts {
			for _, path := range paths {
				from, key, ok := place(found[b.victims[1]], path)
				to, _, there := place(item, path)
				if ok && there {
					to[key] = from[key]
				}
			}
		}
	})
	s.encode(root)
}

// leftOut drops the victims from their lists.
func leftOut(b *bending, s *sent) {
	b.lists(s, func(list []any, isVictim func(any) bool) []any {
		kept := []any{}
		for _, element := range list {
			if !isVictim(element) {
				kept = append(kept, element)
			}
		}
		return kept
	})
}

// bytesOf replaces the whole body.
func bytesOf(change func(body []byte) []byte) bend {
	return func(_ *bending, s *sent) { s.body = change(s.body) }
}

func text(body string) bend { return bytesOf(func([]byte) []byte { return []byte(body) }) }

// status answers with a status and a body of its own.
func status(code int, body string, header ...string) bend {
	return func(_ *bending, s *sent) {
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
	page    = "<!DOCTYPE html><html><title>Just a moment…</title><body>Verify that you are human</body></html>"
	problem = `{"message":"something went wrong"}`
)

func utf16Of(body []byte) []byte {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(string(body))) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return out
}

// bomb is a gzip of a few kilobytes that unpacks to a hundred megabytes.
func bomb(_ *bending, s *sent) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for range 100 {
		_, _ = zip.Write(chunk) // a buffer takes everything
	}
	_, _ = zip.Write(s.body)
	_ = zip.Close()
	s.body = packed.Bytes()
	s.header.Set("Content-Encoding", "gzip")
}

// promised says a longer body than comes.
func promised(_ *bending, s *sent) {
	body := s.body
	s.write = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+1000))
		_, _ = w.Write(body)
	}
}

// brokenOff ends the connection in the middle of the body.
func brokenOff(_ *bending, s *sent) {
	body := s.body
	s.write = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func hungUp(_ *bending, s *sent) {
	s.write = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
}

// noHTTP writes something else on the connection.
func noHTTP(_ *bending, s *sent) {
	s.write = func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.6\r\n")
		_ = conn.Close()
	}
}

// slow never answers, or never ends the body that it began: the client's patience does.
func slow(part int) bend {
	return func(_ *bending, s *sent) {
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

// manyItems makes each list that holds a victim longer than any list can be.
func manyItems(b *bending, s *sent) {
	b.lists(s, func(list []any, _ func(any) bool) []any {
		return append(list, raw(strings.Repeat("0,", 1_000_000)+"0"))
	})
}
