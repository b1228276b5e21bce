package store

import (
	"context"
	"runtime"

	"github.com/alexedwards/argon2id"
)

// passwordCost is the cost that OWASP recommends: 19 MiB and two passes. At most one hash for each processor is computed at a time, so
// that many attempts cannot use up the memory.
var passwordCost = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

var hashing = make(chan struct{}, runtime.NumCPU())

// HashPassword returns the argon2id hash of a password in its encoded form, which includes salt and cost.
func HashPassword(ctx context.Context, password string) (string, error) {
	if err := enterHashing(ctx); err != nil {
		return "", err
	}
	defer func() { <-hashing }()
	return argon2id.CreateHash(password, passwordCost)
}

// PasswordMatches returns true if hash is the hash of password.
func PasswordMatches(ctx context.Context, password, hash string) (bool, error) {
	if err := enterHashing(ctx); err != nil {
		return false, err
	}
	defer func() { <-hashing }()
	return argon2id.ComparePasswordAndHash(password, hash)
}

func enterHashing(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err // select would choose at random if a place is free as well
	}
	select {
	case hashing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
