package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

type tokenCommands struct {
	Create tokenCreate `cmd:"" help:"Create a token. Its secret is printed once, alone on standard output."`
	List   tokenList   `cmd:"" help:"List an organisation's tokens without their secrets."`
	Revoke tokenRevoke `cmd:"" help:"Revoke a token. It stops working on all servers within a second."`
}

type tokenCreate struct {
	databaseCommand
	Org     string   `required:"" placeholder:"NAME|ID" help:"Name or id of the organisation that the token belongs to."`
	Name    string   `required:"" placeholder:"NAME" help:"Name of the token, 1 to 100 characters."`
	Scopes  string   `default:"read,write" placeholder:"SCOPES" help:"Scopes of the token, separated by commas: read, write, admin. A token with admin can manage tokens."`
	Expires lifetime `placeholder:"DURATION" help:"How long the token is valid, for example 30d or 12h. Without it, the token does not expire."`
	JSON    bool     `name:"json" help:"Print JSON: {\"token\", \"id\"}."`
}

// lifetime is a command-line argument with the time for which a token is valid. It is 0 if the user did not give the argument.
type lifetime struct{ time.Duration }

// UnmarshalText parses a duration that is longer than 0. The error contains the invalid text.
func (l *lifetime) UnmarshalText(text []byte) (err error) {
	if l.Duration, err = boot.ParseDuration(string(text)); err == nil && l.Duration <= 0 {
		return fmt.Errorf("%q is too short: the duration must be longer than 0, for example 30d", text)
	}
	return err
}

// Run creates a token and prints its secret.
func (c *tokenCreate) Run(ctx context.Context, p boot.Process) error {
	scopes, err := store.ParseScopes(c.Scopes)
	if err != nil {
		return boot.UsageError{Err: fmt.Errorf("--scopes: %w", err)}
	}
	if err := store.CheckName("token", c.Name); err != nil {
		return boot.UsageError{Err: fmt.Errorf("--name: %w", err)}
	}
	return c.withStore(ctx, p, func(st *store.Store) error {
		org, err := findOrganisation(ctx, st, c.Org)
		if err != nil {
			return err
		}
		t, secret, err := st.CreateToken(ctx, org.ID, c.Name, scopes, c.Expires.Duration)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(p.Stdout, struct {
				Token string    `json:"token"`
				ID    uuid.UUID `json:"id"`
			}{secret, t.ID})
		}
		if _, err := fmt.Fprintln(p.Stdout, secret); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stderr, "The new token of the organisation %s is %s. Its name is %s and its id is %s. The token is shown only once. Keep it secret.\n", plainText(org.Name), describeValidity(t), plainText(t.Name), t.ID)
		return err
	})
}

// describeValidity describes in words how long the token is valid.
func describeValidity(t store.Token) string {
	if t.ExpiresAt == nil {
		return "valid until it is revoked"
	}
	return "valid until " + t.ExpiresAt.Time().Format(time.DateTime) + " UTC"
}

type tokenList struct {
	databaseCommand
	Org  string `required:"" placeholder:"NAME|ID" help:"Name or id of the organisation."`
	JSON bool   `name:"json" help:"Print the tokens as a JSON list of objects."`
}

type tokenJSON struct {
	ID         uuid.UUID     `json:"id"`
	Name       string        `json:"name"`
	Scopes     []store.Scope `json:"scopes"`
	CreatedAt  apiTime       `json:"created_at"`
	ExpiresAt  *apiTime      `json:"expires_at"`
	RevokedAt  *apiTime      `json:"revoked_at"`
	LastUsedAt *apiTime      `json:"last_used_at"`
}

// Run lists the organisation's tokens, oldest first.
func (c *tokenList) Run(ctx context.Context, p boot.Process) error {
	return c.withStore(ctx, p, func(st *store.Store) error {
		org, err := findOrganisation(ctx, st, c.Org)
		if err != nil {
			return err
		}
		tokens, err := st.Tokens(ctx, org.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			out := make([]tokenJSON, len(tokens))
			for i, t := range tokens {
				out[i] = tokenJSON{t.ID, t.Name, t.Scopes, apiTime{t.CreatedAt.Time()}, toAPITime(t.ExpiresAt), toAPITime(t.RevokedAt), toAPITime(t.LastUsedAt)}
			}
			return writeJSON(p.Stdout, out)
		}
		now := store.InstantOf(time.Now())
		rows := [][]any{{"ID", "NAME", "SCOPES", "STATE", "CREATED", "EXPIRES", "LAST USED"}}
		for _, t := range tokens {
			rows = append(rows, []any{t.ID, t.Name, joinScopes(t.Scopes), t.State(now), formatInstant(&t.CreatedAt, ""), formatInstant(t.ExpiresAt, "never"), formatInstant(t.LastUsedAt, "never")})
		}
		return writeTable(p.Stdout, rows)
	})
}

func joinScopes(scopes []store.Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

// apiTime is a time whose JSON has the form of times in responses of the API.
type apiTime struct{ time.Time }

// MarshalJSON returns the time in UTC, such as "2026-02-22T10:12:44.100200+00:00".
func (t apiTime) MarshalJSON() ([]byte, error) { //nolint:unparam // json.Marshaler has an error
	return []byte(strconv.Quote(t.UTC().Format(server.TimeLayout))), nil
}

// toAPITime converts an instant of the store to an apiTime. If the instant is nil, it returns nil.
func toAPITime(i *store.Instant) *apiTime {
	if i == nil {
		return nil
	}
	return &apiTime{i.Time()}
}

// formatInstant formats a time of the store in UTC. If the time is nil, it returns ifNil.
func formatInstant(i *store.Instant, ifNil string) string {
	if i == nil {
		return ifNil
	}
	return i.Time().Format(time.DateTime)
}

type tokenRevoke struct {
	databaseCommand
	ID identifier `arg:"" help:"Id of the token, as shown by token list. It is not the secret."`
}

// Run revokes the token with the given id and confirms this on standard output.
func (c *tokenRevoke) Run(ctx context.Context, p boot.Process) error {
	return c.withStore(ctx, p, func(st *store.Store) error {
		if err := st.RevokeToken(ctx, c.ID.UUID); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Stdout, "Token %s is revoked.\n", c.ID)
		return err
	})
}
