package access

import (
	"fmt"
	"os/user"
	"strconv"
	"sync"
	"time"
)

// Account is an account of this machine, as its jobs run.
type Account struct {
	Name     string
	UID, GID uint32
	Groups   []uint32 // besides GID
	Home     string   // empty: it has none
}

// Machine is the accounts of this machine.
var Machine Names = new(accounts)

// knownFor is how long what was looked up counts: a directory service may be slow, and a
// new group should count soon.
const knownFor = 30 * time.Second

// knownMax bounds what is remembered.
const knownMax = 4096

// accounts remembers what the machine says. Safe for concurrent use.
type accounts struct {
	mu    sync.Mutex
	known map[string]known
}

type known struct {
	value any
	err   error
	at    time.Time
}

// remember returns what was looked up under a key lately, or looks it up.
func remember[T any](a *accounts, key string, lookUp func() (T, error)) (T, error) {
	now := time.Now()
	a.mu.Lock()
	k, ok := a.known[key]
	a.mu.Unlock()
	if ok && now.Sub(k.at) < knownFor {
		return k.value.(T), k.err
	}
	value, err := lookUp()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= knownMax {
		a.known = make(map[string]known)
	}
	a.known[key] = known{value, err, now}
	return value, err
}

// Account implements Names.
func (a *accounts) Account(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	name, _ := remember(a, "uid "+number, func() (string, error) {
		account, err := machine.account(number, user.LookupId)
		if err != nil || isNumber(account.Username) { // a name that is a number would stand for another account
			return number, nil
		}
		return account.Username, nil
	})
	return name
}

// Groups implements Names.
func (a *accounts) Groups(account string) []uint32 {
	found, err := a.find(account)
	if err != nil {
		return nil
	}
	return append(found.Groups[:len(found.Groups):len(found.Groups)], found.GID)
}

// Group implements Names.
func (a *accounts) Group(name string) (uint32, error) {
	if gid, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(gid), nil
	}
	return remember(a, "group "+name, func() (uint32, error) { return machine.group(name) })
}

// Find returns the account that a name of Names.Account stands for. A number without an
// account stands for itself: it has a group of that number, no other, and no home.
func Find(name string) (Account, error) { return Machine.(*accounts).find(name) }

func (a *accounts) find(name string) (Account, error) {
	return remember(a, "name "+name, func() (Account, error) { return machine.lookUp(name) })
}

func (s services) lookUp(name string) (Account, error) {
	by := user.Lookup
	number, bad := strconv.ParseUint(name, 10, 32)
	if bad == nil {
		by = user.LookupId
	}
	account, err := s.account(name, by)
	if err != nil && bad == nil {
		return Account{Name: name, UID: uint32(number), GID: uint32(number)}, nil
	}
	if err != nil {
		return Account{}, fmt.Errorf("account %q: %w", name, err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return Account{}, fmt.Errorf("account %q has the number %q: %w", name, account.Uid, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return Account{}, fmt.Errorf("account %q has the group %q: %w", name, account.Gid, err)
	}
	found := Account{Name: account.Username, UID: uint32(uid), GID: uint32(gid), Home: account.HomeDir}
	groups, err := s.groups(account)
	if err != nil {
		return Account{}, fmt.Errorf("groups of account %q: %w", name, err)
	}
	for _, n := range groups {
		if n != found.GID {
			found.Groups = append(found.Groups, n)
		}
	}
	return found, nil
}

func isNumber(name string) bool {
	_, err := strconv.ParseUint(name, 10, 64)
	return err == nil
}
