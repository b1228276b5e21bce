package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// settingsPage is the content of the page of settings.
type settingsPage struct {
	Account client.Authentication
	Tokens  []tokenRow
	Secret  string // secret of a token that was just made, which is shown once
	Name    string // name of that token
	Problem *Problem
	History int // how many days back the tier's histories reach
	MayMake bool
}

// tokenRow is a token in the list of tokens.
type tokenRow struct {
	store.Token
	State  string // valid, expired or revoked
	IsThis bool   // true if the visitor's session acts for the token
}

// Created returns when the token was made.
func (r tokenRow) Created() time.Time { return r.CreatedAt.Time() }

// Expires returns when the token expires, or nil.
func (r tokenRow) Expires() *time.Time { return timeOf(r.ExpiresAt) }

// LastUsed returns when the token was last used, or nil.
func (r tokenRow) LastUsed() *time.Time { return timeOf(r.LastUsedAt) }

// timeOf converts an instant of the store. It returns nil for nil.
func timeOf(i *store.Instant) *time.Time {
	if i == nil {
		return nil
	}
	t := i.Time()
	return &t
}

// showSettings shows the tokens, the tier and the limits of the organisation.
func showSettings(v *visit) error {
	return v.renderSettings(http.StatusOK, settingsPage{})
}

// renderSettings shows the page of settings.
func (v *visit) renderSettings(status int, content settingsPage) error {
	if err := v.get("/authenticate", nil, &content.Account); err != nil {
		return err
	}
	tokens, err := v.Backend.Tokens(v.r.Context(), v.id.Organisation.ID)
	if err != nil {
		return err
	}
	now := store.InstantOf(v.Now())
	for _, t := range slices.Backward(tokens) {
		row := tokenRow{Token: t, State: "valid", IsThis: t.ID == v.id.Token.ID}
		if t.ExpiresAt != nil && *t.ExpiresAt <= now {
			row.State = "expired"
		}
		if t.RevokedAt != nil {
			row.State = "revoked"
		}
		content.Tokens = append(content.Tokens, row)
	}
	content.History = v.Backend.HistoryDays(v.id.Organisation.Tier)
	content.MayMake = v.id.Token.May(store.ScopeWrite)
	return v.render(status, "settings", "settings", "Settings", content)
}

// tokenDays are the lives of a token that the form offers, in days. 0 means that the token does not expire.
var tokenDays = []int{30, 90, 365, 0}

// createToken makes the token in the form and shows its secret once.
func createToken(v *visit) error {
	if err := v.mayChangeTokens("create_token"); err != nil {
		return err
	}
	refuse := func(detail string) error {
		return v.renderSettings(http.StatusBadRequest, settingsPage{Problem: &Problem{Detail: detail}})
	}
	name := v.r.PostFormValue("name")
	if err := store.CheckName("token", name); err != nil {
		return refuse("The name of a token must have 1 to 100 characters.")
	}
	days, err := strconv.Atoi(v.r.PostFormValue("days"))
	if err != nil || !slices.Contains(tokenDays, days) {
		return refuse("Choose how long the token is valid: 30, 90 or 365 days, or until it is revoked.")
	}
	scopes, err := store.ParseScopes(v.r.PostFormValue("scopes"))
	if err != nil {
		return refuse("Choose what the token may do: read, or read and write.")
	}
	secret, err := v.Backend.CreateToken(v.r.Context(), v.id.Organisation.ID, name, scopes, time.Duration(days)*24*time.Hour)
	if err != nil {
		return err
	}
	return v.renderSettings(http.StatusOK, settingsPage{Secret: secret, Name: name})
}

// revokeToken revokes a token of the organisation.
func revokeToken(v *visit) error {
	if err := v.mayChangeTokens("revoke_token"); err != nil {
		return err
	}
	id, err := uuid.Parse(v.r.PathValue("id"))
	if err != nil {
		return errNotFound
	}
	if err := v.Backend.RevokeToken(v.r.Context(), v.id.Organisation.ID, id); err != nil {
		return err
	}
	v.redirect("/settings?notice=token-revoked")
	return nil
}

// mayChangeTokens returns a *Problem if the session's token may not write, or if the organisation has changed too many tokens in the current
// minute. change is the name of the change.
func (v *visit) mayChangeTokens(change string) error {
	if !v.id.Token.May(store.ScopeWrite) {
		return &Problem{Status: http.StatusForbidden, Title: "Scope missing", Detail: "You signed in with a token that may only read. To change tokens, sign in with one that may also write."}
	}
	return v.Backend.CountWrite(v.r.Context(), v.id.Organisation, change)
}
