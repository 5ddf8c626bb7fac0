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
		account, err := user.LookupId(number)
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
	return remember(a, "group "+name, func() (uint32, error) {
		group, err := user.LookupGroup(name)
		if err != nil {
			return 0, err
		}
		gid, err := strconv.ParseUint(group.Gid, 10, 32)
		return uint32(gid), err
	})
}

// Find returns the account that a name of Names.Account stands for. A number without an
// account stands for itself: it has a group of that number, no other, and no home.
func Find(name string) (Account, error) { return Machine.(*accounts).find(name) }

func (a *accounts) find(name string) (Account, error) {
	return remember(a, "name "+name, func() (Account, error) { return lookUp(name) })
}

func lookUp(name string) (Account, error) {
	account, err := user.Lookup(name)
	if number, bad := strconv.ParseUint(name, 10, 32); bad == nil {
		if account, err = user.LookupId(name); err != nil {
			return Account{Name: name, UID: uint32(number), GID: uint32(number)}, nil
		}
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
	ids, err := account.GroupIds()
	if err != nil {
		return Account{}, fmt.Errorf("groups of account %q: %w", name, err)
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil && uint32(n) != found.GID {
			found.Groups = append(found.Groups, uint32(n))
		}
	}
	return found, nil
}

func isNumber(name string) bool {
	_, err := strconv.ParseUint(name, 10, 64)
	return err == nil
}
