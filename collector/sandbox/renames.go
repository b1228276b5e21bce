package sandbox

import (
	"errors"
	"fmt"

	"github.com/reeltally/reeltally/store/link"
)

type handleRef struct {
	platform link.Platform
	handle   string // the handle in lower case, without "@"
}

// handleOwner is the current owner of a handle. The world stores it for the old and the new handle of each renamed account.
type handleOwner struct {
	number uint32 // the number of the account that has the handle
	unused bool   // true if no account has the handle
}

var (
	errNoAccount     = errors.New("no account has this handle")
	errInvalidHandle = errors.New("the new handle is not valid on this platform")
	errTaken         = errors.New("an account already has this handle")
)

// Rename changes the handle of an account, including its handle in the data of its videos. If
// reuseHandle is true, another account gets the old handle.
func (w *World) Rename(p link.Platform, handle, newHandle string, reuseHandle bool) error {
	old, ok := normalizeHandle(p, handle)
	if !ok {
		return fmt.Errorf("%w: %q", errNoAccount, handle)
	}
	account, ok := w.accountByHandle(p, old)
	if !ok || w.accountCategory(p, account.number) == AccountGone {
		return fmt.Errorf("%w: %q", errNoAccount, handle)
	}
	folded, ok := normalizeHandle(p, newHandle)
	if !ok {
		return fmt.Errorf("%w: %q", errInvalidHandle, newHandle)
	}
	next := handleOwner{unused: true}
	if reuseHandle {
		next = handleOwner{number: w.otherAccount(p, account.number)}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	current, moved := w.renamed[handleRef{p, folded}]
	_, own := accountNumberFromHandle(p, folded)
	if folded == old || moved && !current.unused || own && !moved {
		return fmt.Errorf("%w: %q", errTaken, newHandle)
	}
	w.renamed[handleRef{p, folded}] = handleOwner{number: account.number}
	w.renamed[handleRef{p, old}] = next
	w.setHandle(accountRef{p, account.number}, folded)
	if reuseHandle {
		w.setHandle(accountRef{p, next.number}, old)
	}
	return nil
}

// otherAccount returns the number of an account other than the excluded one. The account has the category AccountNormal.
func (w *World) otherAccount(p link.Platform, excluded uint32) uint32 {
	number := uint32(w.accountKey("stranger", p, excluded))
	for number == excluded || w.accountCategory(p, number) != AccountNormal {
		number++
	}
	return number
}

// setHandle sets the handle of an account. The caller must have locked w.mu.
func (w *World) setHandle(ref accountRef, handle string) {
	known := w.names[ref]
	known.handle = handle
	w.names[ref] = known
}

// ownerAfterRename returns the current owner of an old or new handle of a renamed account. For any
// other handle, ok is false.
func (w *World) ownerAfterRename(p link.Platform, handle string) (owner handleOwner, ok bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	owner, ok = w.renamed[handleRef{p, handle}]
	return owner, ok
}
