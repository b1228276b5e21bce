package store

import (
	"context"
	"runtime"

	"github.com/alexedwards/argon2id"
)

// passwordCost is what OWASP asks for: 19 MiB, two passes. A flood of attempts is held to a hash a processor at a time,
// or it would take all memory.
var passwordCost = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

var hashing = make(chan struct{}, runtime.NumCPU())

// HashPassword returns the argon2id hash of a password, in the encoded form that carries salt and cost.
func HashPassword(ctx context.Context, password string) (string, error) {
	if err := enterHashing(ctx); err != nil {
		return "", err
	}
	defer func() { <-hashing }()
	return argon2id.CreateHash(password, passwordCost)
}

// PasswordMatches says whether a password is the one that was hashed.
func PasswordMatches(ctx context.Context, password, hash string) (bool, error) {
	if err := enterHashing(ctx); err != nil {
		return false, err
	}
	defer func() { <-hashing }()
	return argon2id.ComparePasswordAndHash(password, hash)
}

func enterHashing(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err // where a place is free as well, select would pick either
	}
	select {
	case hashing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
