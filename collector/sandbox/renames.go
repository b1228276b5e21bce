package sandbox

import (
	"errors"
	"fmt"

	"github.com/reeltally/reeltally/store/link"
)

type handleRef struct {
	platform link.Platform
	handle   string // folded
}

// bearer is whose a handle is that has changed hands: an account's, or nobody's.
type bearer struct {
	number uint32
	nobody bool
}

var (
	errNoAccount = errors.New("no account bears this handle")
	errNoHandle  = errors.New("no account can bear this handle")
	errTaken     = errors.New("an account bears this handle already")
)

// Rename gives the account of a handle another one, under which it is found from then on in everything, its videos as well. The
// handle that it had becomes a stranger's, an ordinary account of its own, or nobody's.
func (w *World) Rename(p link.Platform, handle, to string, stranger bool) error {
	old, ok := foldHandle(p, handle)
	if !ok {
		return fmt.Errorf("%w: %q", errNoAccount, handle)
	}
	account, ok := w.byHandle(p, old)
	if !ok || w.accountCategory(p, account.number) == AccountGone {
		return fmt.Errorf("%w: %q", errNoAccount, handle)
	}
	folded, ok := foldHandle(p, to)
	if !ok {
		return fmt.Errorf("%w: %q", errNoHandle, to)
	}
	next := bearer{nobody: true}
	if stranger {
		next = bearer{number: w.stranger(p, account.number)}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, moved := w.passed[handleRef{p, folded}]
	_, own := numberOfHandle(p, folded)
	if folded == old || moved && !now.nobody || own && !moved {
		return fmt.Errorf("%w: %q", errTaken, to)
	}
	w.passed[handleRef{p, folded}] = bearer{number: account.number}
	w.passed[handleRef{p, old}] = next
	w.rename(accountRef{p, account.number}, folded)
	if stranger {
		w.rename(accountRef{p, next.number}, old)
	}
	return nil
}

// stranger is the number of an ordinary account that has nothing to do with another.
func (w *World) stranger(p link.Platform, of uint32) uint32 {
	number := uint32(w.accountKey("stranger", p, of))
	for number == of || w.accountCategory(p, number) != AccountNormal {
		number++
	}
	return number
}

// rename is called with mu locked.
func (w *World) rename(ref accountRef, handle string) {
	known := w.names[ref]
	known.handle = handle
	w.names[ref] = known
}

// hasPassed says whose a handle is that has changed hands; ok is false for any other.
func (w *World) hasPassed(p link.Platform, handle string) (to bearer, ok bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	to, ok = w.passed[handleRef{p, handle}]
	return to, ok
}
