package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// linkFailure is the error for a link that is refused: it is not valid, has the wrong kind, or could not be resolved.
type linkFailure struct {
	Code      string // code for programs, for example "wrong_kind"
	Detail    string // sentence that tells the caller what is wrong
	Retryable bool   // true if the same link may be accepted later
	cause     error  // unexpected error of the short-link resolver; nil for any other failure
}

func (f *linkFailure) Error() string { return f.Detail }

// These are values of linkFailure.Code. The packages link and shortlink define further ones.
const (
	failedWrongKind = "wrong_kind"
	failedNotFound  = shortlink.CodeNotFound
	failedInternal  = "internal"
)

// isDeadLink returns true if the refused link is a short link to a video or account that no longer exists.
func (f *linkFailure) isDeadLink() bool { return f.Code == failedNotFound }

// problem returns the error of a request with this link and no other link. Its code is "internal" after an
// unexpected failure of the resolver, and link_unresolved after any other retryable failure.
func (f *linkFailure) problem() *Error {
	switch {
	case f.Code == failedInternal:
		return &Error{Code: CodeInternal, Detail: internalDetail, Cause: f.cause}
	case f.Retryable:
		// The code is never rate_limited, because the caller did not send too many requests.
		return &Error{Code: CodeLinkUnresolved, Detail: f.Detail, RetryAfter: unavailableRetryAfter}
	}
	return &Error{Code: Code(f.Code), Detail: f.Detail}
}

// permanentFailure returns the *linkFailure in err if a later attempt with the same link would also fail. In all other cases it returns
// nil.
func permanentFailure(err error) *linkFailure {
	if f, ok := errors.AsType[*linkFailure](err); ok && !f.Retryable {
		return f
	}
	return nil
}

// resolveTimeout is the time limit for resolving all short links of one request.
const resolveTimeout = 20 * time.Second

// parsedLink is the result of parsing a link: the link of a video or account, or the reason why the link is refused.
type parsedLink struct {
	link    link.Link
	failure *linkFailure
}

// failureForWrongLinkKind returns the failure for a link of the wrong kind. neededKind is the kind
// that the operation needs: video or account.
func failureForWrongLinkKind(l link.Link, neededKind link.Kind) *linkFailure {
	return &linkFailure{Code: failedWrongKind, Detail: fmt.Sprintf("The link leads to the %s %s, but this operation needs the link of %s.", l.Kind, l.Canonical, withArticle(neededKind))}
}

// withArticle returns "a video" or "an account".
func withArticle(kind link.Kind) string {
	if kind == link.Account {
		return "an account"
	}
	return "a video"
}

// explainReference returns sentences for a caller who sent the refused link to an operation that takes an id or a link. The sentences say why the text
// is not a link of requiredKind. If the text is the link of neither a video nor an account, the sentences also say that an id can be sent.
func (f *linkFailure) explainReference(requiredKind link.Kind) string {
	if f.Code == failedWrongKind || f.isDeadLink() {
		return f.Detail
	}
	return fmt.Sprintf("Send the id, which is a UUID, or the link of %s. %s", withArticle(requiredKind), f.Detail)
}

// parseReference is like parseIDOrLink, except for a link that is refused permanently. The error then has the code not_found and says why.
func (s *Server) parseReference(ctx context.Context, requiredKind link.Kind, idOrLink string) (store.Ref, error) {
	ref, err := s.parseIDOrLink(ctx, requiredKind, idOrLink)
	if f := permanentFailure(err); f != nil {
		return store.Ref{}, problem(CodeNotFound, "Your organisation has no %s %s. %s", requiredKind, idOrLink, f.explainReference(requiredKind))
	}
	return ref, err
}

// parseIDOrLink parses an id, or a link of a video or account. If a link is refused, for example because its kind is not
// requiredKind, the error is a *linkFailure. If an id cannot exist, the error is *store.NotFoundError.
func (s *Server) parseIDOrLink(ctx context.Context, requiredKind link.Kind, idOrLink string) (store.Ref, error) {
	if canonicalUUID.MatchString(idOrLink) {
		id, err := uuid.Parse(idOrLink)
		if err != nil || id == uuid.Nil {
			return store.Ref{}, &store.NotFoundError{Kind: string(requiredKind), Names: []string{idOrLink}}
		}
		return store.Ref{ID: id}, nil
	}
	l, err := s.parseLink(ctx, requiredKind, idOrLink)
	return store.Ref{Link: l}, err
}

// parseLink parses a link. A short link is resolved. If the link is refused, for example because
// its kind is not requiredKind, the error is a *linkFailure.
func (s *Server) parseLink(ctx context.Context, requiredKind link.Kind, raw string) (link.Link, error) {
	read, err := s.parseLinks(ctx, requiredKind, []string{raw})
	if err != nil {
		return link.Link{}, err
	}
	if f := read[0].failure; f != nil {
		return link.Link{}, f
	}
	return read[0].link, nil
}

// parseLinks parses links, resolves short links, and returns the results in the order of urls. It
// returns an error only if the database failed or ctx has ended.
func (s *Server) parseLinks(ctx context.Context, requiredKind link.Kind, urls []string) ([]parsedLink, error) {
	out := make([]parsedLink, len(urls))
	var shorts []link.Link
	for i, address := range urls {
		l, err := link.Parse(address)
		if err != nil {
			out[i].failure = toLinkFailure(err)
			continue
		}
		out[i].link = l
		if l.Kind == link.Short {
			shorts = append(shorts, l)
		}
	}
	targets, err := s.resolveShortLinks(ctx, shorts)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].failure == nil && out[i].link.Kind == link.Short {
			out[i] = targets[out[i].link.Canonical]
		}
		if out[i].failure == nil && out[i].link.Kind != requiredKind {
			out[i].failure = failureForWrongLinkKind(out[i].link, requiredKind)
		}
	}
	return out, nil
}

// toLinkFailure converts an error of link.Parse into a linkFailure with a code and a sentence for the caller.
func toLinkFailure(err error) *linkFailure {
	if refused, ok := errors.AsType[*link.Error](err); ok {
		return &linkFailure{Code: string(refused.Reason), Detail: refused.Detail}
	}
	return &linkFailure{Code: string(link.InvalidURL), Detail: "This is not a link."}
}

// resolveShortLinks returns the target of each short link, or why the target could not be found. The target is the video or account to which the short
// link leads. The keys of the map are the canonical forms of the short links. If the database does not have the target of a short link,
// resolveShortLinks resolves the short link over the network and stores the target. A short link that is not resolved within resolveTimeout gets a
// failure. The error is not nil only if the targets cannot be read from the database or ctx has ended.
func (s *Server) resolveShortLinks(ctx context.Context, shorts []link.Link) (map[string]parsedLink, error) {
	if len(shorts) == 0 {
		return nil, nil //nolint:nilnil // a nil map is a valid empty map
	}
	known, err := s.store.ShortLinks(ctx, shorts)
	if err != nil {
		return nil, err
	}
	targets := make(map[string]parsedLink, len(shorts))
	var unresolved []link.Link
	for _, l := range shorts {
		if _, seen := targets[l.Canonical]; seen {
			continue
		}
		target, resolved := known[l.Canonical]
		targets[l.Canonical] = parsedLink{link: target}
		if !resolved {
			unresolved = append(unresolved, l)
		}
	}
	resolveCtx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	results := make([]parsedLink, len(unresolved))
	var group errgroup.Group
	group.SetLimit(maxResolvesPerOrganisation)
	for i, l := range unresolved {
		group.Go(func() error {
			results[i] = s.resolveShortLink(resolveCtx, l)
			return nil
		})
	}
	_ = group.Wait() // no function of the group returns an error
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := map[string]link.Link{}
	for i, l := range unresolved {
		if targets[l.Canonical] = results[i]; results[i].failure == nil {
			found[l.Canonical] = results[i].link
		}
	}
	if err := s.store.SaveShortLinks(ctx, found); err != nil {
		// Continue with the targets in memory. They were not stored, so the next request must resolve the same short links again.
		s.logger.WarnContext(ctx, "cannot store the targets of resolved short links in the database", "count", len(found), "error", err)
	}
	return targets, nil
}

// Limits for the number of short links that this server resolves at the same time.
const (
	maxResolvesPerOrganisation = 16 // limit for the short links of one organisation
	maxResolves                = 64 // limit for the short links of all organisations together
)

// resolveShortLink resolves one short link over the network. While a limit for concurrent short links is reached, it waits. If ctx ends, or if the
// resolver fails or panics, the result is a failure for this short link, and the request continues with its other links.
func (s *Server) resolveShortLink(ctx context.Context, short link.Link) (r parsedLink) {
	release, err := s.resolves.acquire(ctx, callerFrom(ctx).Organisation.ID)
	if err != nil {
		return parsedLink{failure: &linkFailure{Code: shortlink.CodeLinkUnresolved, Retryable: true, cause: err,
			Detail: fmt.Sprintf("Too many short links are being resolved. This short link had to wait for more than %s; try again later.", resolveTimeout)}}
	}
	defer release()
	defer func() {
		if p := recover(); p != nil {
			r = parsedLink{failure: s.internalFailure(ctx, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))}
		}
	}()
	target, err := s.resolver.Resolve(ctx, short)
	if err == nil {
		return parsedLink{link: target}
	}
	if failed, ok := errors.AsType[*shortlink.Error](err); ok {
		return parsedLink{failure: &linkFailure{Code: failed.Code, Detail: failed.Detail, Retryable: failed.Retryable}}
	}
	return parsedLink{failure: s.internalFailure(ctx, err)}
}

// internalFailure logs an unexpected error of the short-link resolver and returns a retryable failure for the link.
func (s *Server) internalFailure(ctx context.Context, cause error) *linkFailure {
	s.logger.ErrorContext(ctx, "cannot resolve a short link", "error", cause)
	return &linkFailure{Code: failedInternal, Detail: "The server failed to resolve this short link; try again later.", Retryable: true, cause: cause}
}
