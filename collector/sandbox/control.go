package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store/link"
)

// serveControl answers the control requests, with which tests set and read the state of the sandbox. The given path is the part of the
// URL's path after /_control/.
func (s *Sandbox) serveControl(w http.ResponseWriter, r *http.Request, path string) {
	methods, ok := map[string]map[string]func(*http.Request) reply{
		"faults":  {http.MethodGet: s.getFaults, http.MethodPut: s.setFault, http.MethodDelete: s.deleteFaults},
		"calls":   {http.MethodGet: s.getCalls, http.MethodDelete: s.deleteCalls},
		"clock":   {http.MethodGet: s.getClock, http.MethodPut: s.stopClock, http.MethodDelete: s.useRealTime},
		"video":   {http.MethodGet: s.getVideo},
		"meta":    {http.MethodPut: s.configureMeta},
		"account": {http.MethodGet: s.getAccount, http.MethodPut: s.renameAccount},
	}[path]
	if !ok {
		writeReply(w, r, problemReply(http.StatusNotFound, "unknown control path; use faults, calls, clock, video, account or meta"))
		return
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	answer, ok := methods[method]
	if !ok {
		var allowed []string
		for name := range methods {
			allowed = append(allowed, name)
		}
		slices.Sort(allowed)
		list := strings.Join(allowed, ", ")
		writeReply(w, r, problemReply(http.StatusMethodNotAllowed, r.Method+" is not allowed here; use "+list).withHeader("Allow", list))
		return
	}
	writeReply(w, r, answer(r))
}

// getFaults answers GET /_control/faults with all active faults.
func (s *Sandbox) getFaults(*http.Request) reply {
	return reply{status: http.StatusOK, body: object{"faults": s.faults.listRules()}}
}

// setFault answers PUT /_control/faults: it sets the fault of a source.
func (s *Sandbox) setFault(r *http.Request) reply {
	var in struct {
		Source     *string         `json:"source"`
		Fault      string          `json:"fault"`
		Count      *int            `json:"count"`
		RetryAfter *int            `json:"retry_after"`
		IDs        []string        `json:"ids"`
		Status     int             `json:"status"`
		Body       json.RawMessage `json:"body"`
	}
	if err := decodeStrictJSON(r.Body, &in); err != nil {
		return problemReply(http.StatusBadRequest, "the body must be an object with source, fault, count, retry_after, ids, status and body: "+err.Error())
	}
	source := everySource
	if in.Source != nil && *in.Source != "" {
		source = *in.Source
	}
	if source != everySource && !slices.Contains(faultSources, source) {
		return problemReply(http.StatusBadRequest,
			fmt.Sprintf(`source %q is unknown; use %s, or use "*" for all sources`, source, words.JoinWithOr(faultSources)))
	}
	if !slices.Contains(faultNames, in.Fault) {
		return problemReply(http.StatusBadRequest, fmt.Sprintf("fault %q is unknown; use %s", in.Fault, words.JoinWithOr(faultNames)))
	}
	set := rule{Source: source, Fault: in.Fault, RetryAfter: in.RetryAfter, IDs: in.IDs, Status: in.Status, Body: in.Body}
	if given := len(in.IDs) > 0 || in.Status != 0 || in.Body != nil; given != (in.Fault == faultRefused) {
		return problemReply(http.StatusBadRequest, `the members "ids", "status" and "body" are allowed only for the fault "refused"`)
	}
	if in.Fault == faultRefused && (len(in.IDs) == 0 || in.Status < 400 || in.Status > 599 || in.Body == nil) {
		return problemReply(http.StatusBadRequest, fmt.Sprintf(`the fault "refused" needs the members "ids" and "body", and a "status" from 400 to 599, not %d`, in.Status))
	}
	if in.Count != nil {
		set.Count = *in.Count
	}
	if set.Count < 0 {
		return problemReply(http.StatusBadRequest, fmt.Sprintf("the member \"count\" is %d; it must be the number of calls with the fault, or 0 for all calls until the fault is deleted", set.Count))
	}
	if in.RetryAfter != nil && (*in.RetryAfter < 0 || *in.RetryAfter > day) {
		return problemReply(http.StatusBadRequest, fmt.Sprintf("the member \"retry_after\" is %d; it must be from 0 to %d seconds", *in.RetryAfter, day))
	}
	s.faults.setRule(set)
	return reply{status: http.StatusOK, body: set}
}

// deleteFaults answers DELETE /_control/faults: it deletes the fault of one source, or all faults.
func (s *Sandbox) deleteFaults(r *http.Request) reply {
	source := r.URL.Query().Get("source")
	if source != "" && source != everySource && !slices.Contains(faultSources, source) {
		return problemReply(http.StatusBadRequest,
			fmt.Sprintf(`source %q is unknown; use %s, use "*" for the fault of all sources, or leave the source out to delete every fault`, source, words.JoinWithOr(faultSources)))
	}
	s.faults.clearRules(source)
	return reply{status: http.StatusNoContent}
}

// getCalls answers GET /_control/calls with the call log.
func (s *Sandbox) getCalls(*http.Request) reply {
	return reply{status: http.StatusOK, body: s.calls.copyCalls()}
}

// deleteCalls answers DELETE /_control/calls: it empties the call log.
func (s *Sandbox) deleteCalls(*http.Request) reply {
	s.calls.reset()
	return reply{status: http.StatusNoContent}
}

// getClock answers GET /_control/clock with the time of the sandbox's clock.
func (s *Sandbox) getClock(*http.Request) reply {
	return reply{status: http.StatusOK, body: object{"now": s.clock().Format(time.RFC3339), "frozen": s.frozen.Load() != nil}}
}

// stopClock answers PUT /_control/clock: it stops the sandbox's clock at the time in the request.
func (s *Sandbox) stopClock(r *http.Request) reply {
	var in struct {
		Now string `json:"now"`
	}
	if err := decodeStrictJSON(r.Body, &in); err != nil {
		return problemReply(http.StatusBadRequest, `the body must be an object with the member "now": `+err.Error())
	}
	at, err := time.Parse(time.RFC3339, in.Now)
	if err != nil || at.Year() < 2020 || at.Year() > 2099 {
		return problemReply(http.StatusBadRequest, fmt.Sprintf(`the member "now" is %q; it must be a time in RFC 3339 from 2020 to 2099, such as 2026-11-21T08:00:00Z`, in.Now))
	}
	at = at.UTC().Truncate(time.Second)
	s.frozen.Store(&at)
	return s.getClock(r)
}

// useRealTime answers DELETE /_control/clock: the sandbox's clock runs again.
func (s *Sandbox) useRealTime(*http.Request) reply {
	s.frozen.Store(nil)
	return reply{status: http.StatusNoContent}
}

// platformAndTime returns the query parameters "platform" and "at", or an error reply. Without "at",
// the time is the current time of the sandbox's clock.
func (s *Sandbox) platformAndTime(r *http.Request) (link.Platform, time.Time, *reply) {
	p := link.Platform(r.URL.Query().Get("platform"))
	if !slices.Contains(link.Platforms, p) {
		bad := problemReply(http.StatusBadRequest, fmt.Sprintf("platform %q is unknown; use %s", p, words.JoinWithOr(link.Platforms)))
		return "", time.Time{}, &bad
	}
	at := s.clock()
	if given := r.URL.Query().Get("at"); given != "" {
		parsed, err := time.Parse(time.RFC3339, given)
		if err != nil {
			bad := problemReply(http.StatusBadRequest, fmt.Sprintf(`the parameter "at" is %q; it must be a time in RFC 3339`, given))
			return "", time.Time{}, &bad
		}
		at = parsed.UTC()
	}
	return p, at, nil
}

// getVideo answers GET /_control/video with the data that World generates for a video (VideoTruth).
func (s *Sandbox) getVideo(r *http.Request) reply {
	p, at, bad := s.platformAndTime(r)
	if bad != nil {
		return *bad
	}
	id := r.URL.Query().Get("id")
	if category := Category(r.URL.Query().Get("category")); category != "" && id == "" {
		if id = s.world.Find(p, category); id == "" {
			return problemReply(http.StatusBadRequest, fmt.Sprintf("category %q is unknown on %s; use %s", category, p, words.JoinWithOr(Categories(p))))
		}
	}
	truth, ok := s.world.Video(p, id, at)
	if !ok {
		return problemReply(http.StatusNotFound, fmt.Sprintf("id %q is not a valid video id of %s", id, p))
	}
	return reply{status: http.StatusOK, body: truth}
}

// getAccount answers GET /_control/account with the data that World generates for an account (AccountTruth) and the ids of its uploads.
func (s *Sandbox) getAccount(r *http.Request) reply {
	p, at, bad := s.platformAndTime(r)
	if bad != nil {
		return *bad
	}
	ref := r.URL.Query().Get("handle")
	if category := AccountCategory(r.URL.Query().Get("category")); category != "" && ref == "" {
		if ref = s.world.FindAccount(p, category); ref == "" {
			return problemReply(http.StatusBadRequest, fmt.Sprintf("category %q is unknown on %s; use %s", category, p, words.JoinWithOr(AccountCategories(p))))
		}
	}
	truth, ok := s.world.Account(p, ref, at)
	if !ok {
		return problemReply(http.StatusNotFound, fmt.Sprintf("handle %q is not a valid handle of %s", ref, p))
	}
	return reply{status: http.StatusOK, body: struct {
		AccountTruth
		Uploads []string `json:"uploads"`
	}{truth, append([]string{}, s.world.Uploads(p, ref, at)...)}}
}

// renameAccount answers PUT /_control/account: it renames an account and returns its data.
func (s *Sandbox) renameAccount(r *http.Request) reply {
	var in struct {
		Platform  link.Platform `json:"platform"`
		Handle    string        `json:"handle"`
		NewHandle string        `json:"new_handle"`
		Reuse     bool          `json:"reuse"`
	}
	if err := decodeStrictJSON(r.Body, &in); err != nil {
		return problemReply(http.StatusBadRequest, "the body must be an object with platform, handle, new_handle and reuse: "+err.Error())
	}
	if !slices.Contains(link.Platforms, in.Platform) {
		return problemReply(http.StatusBadRequest, fmt.Sprintf("platform %q is unknown; use %s", in.Platform, words.JoinWithOr(link.Platforms)))
	}
	switch err := s.world.Rename(in.Platform, in.Handle, in.NewHandle, in.Reuse); {
	case errors.Is(err, errNoAccount):
		return problemReply(http.StatusNotFound, err.Error())
	case errors.Is(err, errTaken):
		return problemReply(http.StatusConflict, err.Error())
	case err != nil:
		return problemReply(http.StatusBadRequest, err.Error())
	}
	truth, _ := s.world.Account(in.Platform, in.NewHandle, s.clock())
	return reply{status: http.StatusOK, body: truth}
}

// decodeStrictJSON decodes exactly one JSON value. It returns an error for an unknown member or for text after the value.
func decodeStrictJSON(body io.Reader, into any) error {
	decoder := json.NewDecoder(io.LimitReader(body, 64<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body has text after the JSON value; send one JSON value")
	}
	return nil
}
