package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Caller is who makes a request.
type Caller struct {
	Name  string // of the account; its number if it has no name
	Role  Role
	UID   uint32
	Token string // by whose name it came; empty: through the socket
	Site  string // of a visitor: the ID of his site
}

// Peer is an account as the kernel tells it.
type Peer struct {
	UID, GID uint32
	Groups   []uint32 // besides GID
}

// List is the accounts that have a role.
type List struct {
	Everybody bool // every account of the machine
	Accounts  []string
	Groups    []string // by name or number
}

// ParseList reads accounts and groups: NAME, @GROUP, or * for everybody. Names that are
// numbers are those of accounts without a name.
func ParseList(items []string) (l List, err error) {
	for _, item := range items {
		name, group := strings.CutPrefix(item, "@")
		switch {
		case item == "*":
			l.Everybody = true
		case name == "" || strings.ContainsAny(name, " \t:/@*"):
			return List{}, fmt.Errorf("%q: want the name of an account, @ and that of a group, or *", item)
		case group:
			l.Groups = append(l.Groups, name)
		default:
			l.Accounts = append(l.Accounts, name)
		}
	}
	return l, nil
}

// People says who is what at a site. The zero value knows root and nobody else; do not
// change it once it is in use.
type People struct {
	Own                      uint32 // account of the daemon
	Admins, Operators, Users List
	See                      Sight // of users, of the jobs of others
	Root                     bool  // root may submit jobs that run as root
	Names                    Names // nil: those of this machine
	Alone                    bool  // jobs run as the daemon's account, whatever that is: another scheduler starts them
}

// Names is where names of accounts and groups come from.
type Names interface {
	Account(uid uint32) string         // the number, if it has none
	Groups(account string) []uint32    // that an account belongs to
	Group(name string) (uint32, error) // the number of a group
}

func (p *People) names() Names {
	if p.Names == nil {
		return Machine
	}
	return p.Names
}

// Local returns who is at the other end of the socket.
func (p *People) Local(peer Peer) Caller {
	names := p.names()
	c := Caller{UID: peer.UID, Name: names.Account(peer.UID)}
	groups := append(slices.Clip(peer.Groups), peer.GID)
	c.Role = p.role(peer.UID, c.Name, groups)
	return c
}

// role returns the greatest role of an account.
func (p *People) role(uid uint32, name string, groups []uint32) Role {
	if uid == 0 || uid == p.Own {
		return Admin
	}
	for _, of := range []struct {
		list *List
		role Role
	}{{&p.Admins, Admin}, {&p.Operators, Operator}, {&p.Users, User}} {
		if p.listed(of.list, name, groups) {
			return of.role
		}
	}
	return Stranger
}

func (p *People) listed(l *List, name string, groups []uint32) bool {
	if l.Everybody || slices.Contains(l.Accounts, name) {
		return true
	}
	return slices.ContainsFunc(l.Groups, func(group string) bool {
		gid, err := p.names().Group(group)
		return err == nil && slices.Contains(groups, gid)
	})
}

// Submission refusals; test with errors.Is.
var (
	// ErrRoot: jobs of root do not run as root here.
	ErrRoot = errors.New("jobs of root are not run here, as they would run as root: submit as another account, or set users.root to allow")
	// ErrNotOwn: the daemon cannot run jobs as anybody but itself.
	ErrNotOwn = errors.New("only root runs jobs as other accounts")
)

// MayRun returns an error if jobs of an account cannot run here as that account.
func (p *People) MayRun(uid uint32) error {
	switch {
	case (p.Own != 0 || p.Alone) && uid != p.Own:
		return fmt.Errorf("the daemon runs as account %s and runs jobs of that account only: %w", p.names().Account(p.Own), ErrNotOwn)
	case uid == 0 && !p.Root:
		return ErrRoot
	}
	return nil
}
