package store

import (
	"context"
	"runtime"

	"github.com/alexedwards/argon2id"
)

// passwordCost has the parameters of argon2id that OWASP recommends: 19 MiB of memory and two passes.
var passwordCost = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// hashSlots contains one value for each password hash that is being computed. Its capacity limits
// the memory that many concurrent requests use.
var hashSlots = make(chan struct{}, runtime.NumCPU())

// HashPassword returns the argon2id hash of a password in its encoded form, which includes salt and cost.
func HashPassword(ctx context.Context, password string) (string, error) {
	if err := waitForHashing(ctx); err != nil {
		return "", err
	}
	defer func() { <-hashSlots }()
	return argon2id.CreateHash(password, passwordCost)
}

// PasswordMatches returns true if hash was computed from password.
func PasswordMatches(ctx context.Context, password, hash string) (bool, error) {
	if err := waitForHashing(ctx); err != nil {
		return false, err
	}
	defer func() { <-hashSlots }()
	return argon2id.ComparePasswordAndHash(password, hash)
}

// waitForHashing waits until a password hash may be computed or ctx ends. If it returns nil, the
// caller must receive from hashSlots after the computation.
func waitForHashing(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err // check ctx first, because a select with two ready cases chooses one at random
	}
	select {
	case hashSlots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
