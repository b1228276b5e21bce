package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/store"
)

type tokenCommands struct {
	Create tokenCreate `cmd:"" help:"Make a token. Its secret is shown this once."`
	List   tokenList   `cmd:"" help:"List an organisation's tokens, without their secrets."`
	Revoke tokenRevoke `cmd:"" help:"End a token for good, within a second everywhere."`
}

type tokenCreate struct {
	operator
	Org     identifier    `required:"" placeholder:"ID" help:"The organisation that it speaks for."`
	Name    string        `required:"" placeholder:"NAME" help:"What it is called, 1 to 100 characters."`
	Scopes  string        `default:"read,write" placeholder:"SCOPES" help:"What it may do: read, write or both, separated by a comma."`
	Expires time.Duration `placeholder:"DURATION" help:"How long it is valid, for example 720h; for ever without."`
	JSON    bool          `name:"json" help:"Answer with JSON: {\"token\", \"id\"}."`
}

// Run makes the token.
func (c *tokenCreate) Run(ctx context.Context, p boot.Process) error {
	scopes, err := store.ParseScopes(c.Scopes)
	if err != nil {
		return boot.UsageError{Err: fmt.Errorf("--scopes: %w", err)}
	}
	if c.Expires < 0 {
		return boot.UsageError{Err: fmt.Errorf("--expires is %s; it must be longer than 0, for example 720h", c.Expires)}
	}
	return c.with(ctx, p, func(st *store.Store) error {
		t, secret, err := st.CreateToken(ctx, c.Org.UUID, c.Name, scopes, c.Expires)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(p.Stdout, struct {
				Token string    `json:"token"`
				ID    uuid.UUID `json:"id"`
			}{secret, t.ID})
		}
		_, err = fmt.Fprintf(p.Stdout, "%s\nThis is token %s (%s), %s. It is shown this once: keep it where nobody else reads it.\n",
			secret, t.ID, t.Name, validity(t))
		return err
	})
}

func validity(t store.Token) string {
	if t.ExpiresAt == nil {
		return "valid until it is revoked"
	}
	return "valid until " + t.ExpiresAt.Time().Format(time.DateTime) + " UTC"
}

type tokenList struct {
	operator
	Org  identifier `required:"" placeholder:"ID" help:"The organisation."`
	JSON bool       `name:"json" help:"Answer with JSON: a list of objects."`
}

type tokenJSON struct {
	ID         uuid.UUID     `json:"id"`
	Name       string        `json:"name"`
	Scopes     []store.Scope `json:"scopes"`
	CreatedAt  time.Time     `json:"created_at"`
	ExpiresAt  *time.Time    `json:"expires_at"`
	RevokedAt  *time.Time    `json:"revoked_at"`
	LastUsedAt *time.Time    `json:"last_used_at"`
}

// Run lists the tokens, the oldest first.
func (c *tokenList) Run(ctx context.Context, p boot.Process) error {
	return c.with(ctx, p, func(st *store.Store) error {
		tokens, err := st.Tokens(ctx, c.Org.UUID)
		if err != nil {
			return err
		}
		if c.JSON {
			out := make([]tokenJSON, len(tokens))
			for i, t := range tokens {
				out[i] = tokenJSON{t.ID, t.Name, t.Scopes, t.CreatedAt.Time(), timeOf(t.ExpiresAt), timeOf(t.RevokedAt), timeOf(t.LastUsedAt)}
			}
			return writeJSON(p.Stdout, out)
		}
		now := store.InstantOf(time.Now())
		rows := [][]any{{"ID", "NAME", "SCOPES", "STATE", "CREATED", "EXPIRES", "LAST USED"}}
		for _, t := range tokens {
			state := "valid"
			switch {
			case t.RevokedAt != nil:
				state = "revoked"
			case t.ExpiresAt != nil && *t.ExpiresAt <= now:
				state = "expired"
			}
			rows = append(rows, []any{t.ID, t.Name, joined(t.Scopes), state, shown(&t.CreatedAt, ""), shown(t.ExpiresAt, "never"), shown(t.LastUsedAt, "never")})
		}
		return writeTable(p.Stdout, rows)
	})
}

func joined(scopes []store.Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

func timeOf(i *store.Instant) *time.Time {
	if i == nil {
		return nil
	}
	t := i.Time()
	return &t
}

func shown(i *store.Instant, none string) string {
	if i == nil {
		return none
	}
	return i.Time().Format(time.DateTime)
}

type tokenRevoke struct {
	operator
	ID identifier `arg:"" help:"The token's id, as the list shows it; not its secret."`
}

// Run ends the token.
func (c *tokenRevoke) Run(ctx context.Context, p boot.Process) error {
	return c.with(ctx, p, func(st *store.Store) error {
		if err := st.RevokeToken(ctx, c.ID.UUID); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Stdout, "Token %s is revoked.\n", c.ID)
		return err
	})
}
