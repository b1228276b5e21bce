package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// linkFailure is why a link does not mean what is wanted. Its codes are those of bulk results.
type linkFailure struct {
	Code      string
	Detail    string
	Retryable bool // sending the link again usually works
	cause     error
}

func (f *linkFailure) Error() string { return f.Detail }

// The codes that are not a link.Reason.
const (
	failedWrongKind = "wrong_kind"
	failedNotFound  = shortlink.CodeNotFound
	failedInternal  = "internal"
)

// isDeadLink says that the link is a good one, behind which there is nothing any more.
func (f *linkFailure) isDeadLink() bool { return f.Code == failedNotFound }

// problem is the failure as the answer to a request about this link alone. Whatever may pass is link_unresolved there: of a
// whole request rate_limited would say that the caller asked too often, where it is the platform that was asked.
func (f *linkFailure) problem() *Error {
	switch {
	case f.Code == failedInternal:
		return &Error{Code: CodeInternal, Detail: internalDetail, Cause: f.cause}
	case f.Retryable:
		return &Error{Code: CodeLinkUnresolved, Detail: f.Detail, RetryAfter: unavailableFor}
	}
	return &Error{Code: Code(f.Code), Detail: f.Detail}
}

// permanentFailure returns the failure in err if it is for good, nil if it may pass or err is none.
func permanentFailure(err error) *linkFailure {
	if f, ok := errors.AsType[*linkFailure](err); ok && !f.Retryable {
		return f
	}
	return nil
}

// resolveWithin is the total time for resolving the short links of one request.
const resolveWithin = 20 * time.Second

// parsedLink is a link as it was understood: the video or account that it means, or why it means none.
type parsedLink struct {
	link    link.Link
	failure *linkFailure
}

// wrongKind refuses a link that means the other kind.
func wrongKind(wanted link.Kind) *linkFailure {
	detail := "This is the link of an account; a video is wanted here."
	if wanted == link.Account {
		detail = "This is the link of a video; an account is wanted here."
	}
	return &linkFailure{Code: failedWrongKind, Detail: detail}
}

// parseReference parses a text that is "a UUID or a URL" of a video or an account. If the text cannot mean an item of the kind, the error
// is *store.NotFoundError.
func (s *Server) parseReference(ctx context.Context, kind link.Kind, raw string) (reference, error) {
	missing := &store.NotFoundError{Kind: string(kind), Names: []string{raw}}
	if canonicalUUID.MatchString(raw) {
		id, err := uuid.Parse(raw)
		if err != nil || id == uuid.Nil {
			return reference{}, missing
		}
		return reference{ID: id}, nil
	}
	l, err := s.linkOf(ctx, kind, raw)
	if permanentFailure(err) != nil {
		return reference{}, missing
	}
	return reference{Link: l}, err
}

// linkOf reads one link of a kind. The error is a *linkFailure, or that of the database.
func (s *Server) linkOf(ctx context.Context, kind link.Kind, raw string) (link.Link, error) {
	read, err := s.linksOf(ctx, kind, []string{raw})
	if err != nil {
		return link.Link{}, err
	}
	if f := read[0].failure; f != nil {
		return link.Link{}, f
	}
	return read[0].link, nil
}

// linksOf reads links of a kind, in their order. Short links are looked up among those resolved before, and the others resolved
// over the network. The error is that of the database, or of the request's own end.
func (s *Server) linksOf(ctx context.Context, kind link.Kind, raws []string) ([]parsedLink, error) {
	out := make([]parsedLink, len(raws))
	var shorts []link.Link
	for i, raw := range raws {
		l, err := link.Parse(raw)
		if err != nil {
			out[i].failure = parseFailure(err)
			continue
		}
		out[i].link = l
		if l.Kind == link.Short {
			shorts = append(shorts, l)
		}
	}
	targets, err := s.resolve(ctx, shorts)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].failure == nil && out[i].link.Kind == link.Short {
			out[i] = targets[out[i].link.Canonical]
		}
		if out[i].failure == nil && out[i].link.Kind != kind {
			out[i].failure = wrongKind(kind)
		}
	}
	return out, nil
}

func parseFailure(err error) *linkFailure {
	if refused, ok := errors.AsType[*link.Error](err); ok {
		return &linkFailure{Code: string(refused.Reason), Detail: refused.Detail}
	}
	return &linkFailure{Code: string(link.InvalidURL), Detail: "This is not a link."}
}

// resolve returns what short links lead to, by their canonical form.
func (s *Server) resolve(ctx context.Context, shorts []link.Link) (map[string]parsedLink, error) {
	if len(shorts) == 0 {
		return nil, nil //nolint:nilnil // none asked, none known
	}
	known, err := s.store.ShortLinks(ctx, shorts)
	if err != nil {
		return nil, err
	}
	targets := make(map[string]parsedLink, len(shorts))
	var open []link.Link
	for _, l := range shorts {
		if _, seen := targets[l.Canonical]; seen {
			continue
		}
		target, resolved := known[l.Canonical]
		targets[l.Canonical] = parsedLink{link: target}
		if !resolved {
			open = append(open, l)
		}
	}
	fresh := s.follow(ctx, open)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := map[string]link.Link{}
	for short, r := range fresh {
		if targets[short] = r; r.failure == nil {
			found[short] = r.link
		}
	}
	if err := s.store.SaveShortLinks(ctx, found); err != nil {
		// They are resolved all the same; the next request pays for it.
		s.logger.WarnContext(ctx, "resolved short links not remembered", "count", len(found), "error", err)
	}
	return targets, nil
}

// Limits on how many short links are resolved at once.
const (
	resolvesOfOrganisation = 16 // over all requests of one organisation
	resolvesInAll          = 64
)

// follow resolves each link, several at once, within one deadline. A link that gets no slot before the deadline fails.
func (s *Server) follow(ctx context.Context, open []link.Link) map[string]parsedLink {
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	var (
		org     = CallerFrom(ctx).Organisation.ID
		mu      sync.Mutex
		workers sync.WaitGroup
		results = make(map[string]parsedLink, len(open))
		queue   = make(chan link.Link, len(open))
	)
	for _, short := range open {
		queue <- short
	}
	close(queue)
	for range min(len(open), resolvesOfOrganisation) {
		workers.Go(func() {
			for short := range queue {
				r := s.followInSlot(ctx, org, short)
				mu.Lock()
				results[short.Canonical] = r
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return results
}

// followInSlot waits for a slot and then resolves one link.
func (s *Server) followInSlot(ctx context.Context, org uuid.UUID, short link.Link) parsedLink {
	release, err := s.resolves.acquire(ctx, org)
	if err != nil {
		return parsedLink{failure: &linkFailure{Code: shortlink.CodeLinkUnresolved, Retryable: true, cause: err,
			Detail: fmt.Sprintf("Too many short links are being resolved: this one was not reached within %s; try again later.", resolveWithin)}}
	}
	defer release()
	return s.followOne(ctx, short)
}

// followOne asks the resolver for one link. A panic there fails this link, and neither the process nor the other links.
func (s *Server) followOne(ctx context.Context, short link.Link) (r parsedLink) {
	defer func() {
		if p := recover(); p != nil {
			r = parsedLink{failure: s.internalFailure(ctx, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))}
		}
	}()
	target, err := s.resolver.Resolve(ctx, short)
	if err == nil {
		return parsedLink{link: target}
	}
	if told, ok := errors.AsType[*shortlink.Error](err); ok {
		return parsedLink{failure: &linkFailure{Code: told.Code, Detail: told.Detail, Retryable: told.Retryable}}
	}
	return parsedLink{failure: s.internalFailure(ctx, err)}
}

func (s *Server) internalFailure(ctx context.Context, cause error) *linkFailure {
	s.logger.ErrorContext(ctx, "short link not resolved", "error", cause)
	return &linkFailure{Code: failedInternal, Detail: "The server failed to resolve this short link; try again later.", Retryable: true, cause: cause}
}
