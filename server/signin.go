package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/reeltally/reeltally/server/web"
	"github.com/reeltally/reeltally/store"
)

// This file contains the methods of pageBackend for sessions: signing in with a token, a login link or a setup link, and signing out.

// signInLimit limits the failed sign-in attempts from one IP address per minute. An attempt uses a
// token, a login link or a setup link.
var signInLimit = addressLimit{"sign_in", 10, "sign-in attempts"}

// limitSignIn calls attempt, an attempt to sign in, and returns its error as a *web.Problem. If the IP address has made too many failed attempts in the
// current minute, limitSignIn does not call attempt. It counts the attempt before the call, so that concurrent attempts cannot exceed the limit.
func (b pageBackend) limitSignIn(ctx context.Context, attempt func() error) error {
	limits := b.s.tokens.addressLimits
	err := limits.countRequest(ctx, signInLimit, clientAddress(ctx))
	if err == nil {
		if err = attempt(); err == nil {
			limits.uncountRequest(ctx, signInLimit, clientAddress(ctx)) // a successful attempt does not count towards the limit
		}
	}
	return b.problem(ctx, err)
}

// SignIn creates a session for a token and returns the session's secret.
func (b pageBackend) SignIn(ctx context.Context, token string) (session string, err error) {
	err = b.limitSignIn(ctx, func() error {
		if !strings.HasPrefix(token, "rt_") {
			return problem(CodeTokenMalformed, "This is not a token of ReelTally: a token starts with rt_.")
		}
		if !store.WellFormedToken(token) {
			return problem(CodeTokenMistyped, "The token's checksum does not fit, so it was mistyped or cut off.")
		}
		id, err := b.s.tokens.findToken(ctx, token, clientAddress(ctx))
		if err != nil {
			return err
		}
		session, err = b.s.store.CreateSession(ctx, id.Token.ID)
		return err
	})
	return session, err
}

// FindLoginLink returns the token and the organisation of a login link. The link can still be used afterwards.
func (b pageBackend) FindLoginLink(ctx context.Context, link string) (id store.Identity, err error) {
	err = b.limitSignIn(ctx, func() (err error) {
		id, err = b.s.store.LoginLink(ctx, link)
		return err
	})
	return id, err
}

// UseLoginLink creates a session for a login link and returns the session's secret. The link cannot be used again.
func (b pageBackend) UseLoginLink(ctx context.Context, link string) (session string, err error) {
	err = b.limitSignIn(ctx, func() (err error) {
		session, err = b.s.store.UseLoginLink(ctx, link)
		return err
	})
	return session, err
}

// CheckSetupLink returns an error if the setup link cannot be used. With a setup link, the operator creates the first organisation.
func (b pageBackend) CheckSetupLink(ctx context.Context, link string) error {
	return b.limitSignIn(ctx, func() error { return b.s.store.CheckSetupLink(ctx, link) })
}

// SetUp creates the first organisation with a setup link. The link cannot be used again.
func (b pageBackend) SetUp(ctx context.Context, link, name string) (done store.Setup, err error) {
	err = b.limitSignIn(ctx, func() (err error) {
		if err := store.CheckName("organisation", name); err != nil {
			return &web.Problem{Status: http.StatusBadRequest, Title: "Invalid name", Detail: "The name cannot be used: " + withFullStop(err.Error())}
		}
		done, err = b.s.store.SetUp(ctx, link, name)
		return err
	})
	return done, err
}

// Identify returns the token and the organisation of the session with this secret.
func (b pageBackend) Identify(ctx context.Context, secret string) (store.Identity, error) {
	id, err := b.s.sessions.findToken(ctx, secret, clientAddress(ctx))
	return id, b.problem(ctx, err)
}

// SignOut ends the session with this secret.
func (b pageBackend) SignOut(ctx context.Context, secret string) error {
	err := b.s.store.EndSession(ctx, secret)
	b.s.sessions.forgetToken(secret)
	return b.problem(ctx, err)
}
