package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// town is a machine with few accounts.
type town map[string]uint32

func (t town) Account(uid uint32) string {
	for name, n := range t {
		if n == uid {
			return name
		}
	}
	return fmt.Sprint(uid)
}

func (t town) Groups(account string) []uint32 { return []uint32{t[account]} }

func (t town) Group(name string) (uint32, error) {
	if gid, ok := map[string]uint32{"staff": 50, "wheel": 10}[name]; ok {
		return gid, nil
	}
	return 0, errors.New("no such group")
}

func list(t *testing.T, items ...string) List {
	t.Helper()
	l, err := ParseList(items)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRoleOfAPeer(t *testing.T) {
	p := People{
		Own: 900, Names: town{"root": 0, "gridnode": 900, "ann": 1000, "ben": 1001, "cy": 1002},
		Admins: list(t, "@wheel"), Operators: list(t, "ben"), Users: list(t, "ann", "@staff", "@nosuch", "7000"),
	}
	for _, tt := range []struct {
		peer Peer
		name string
		want Role
	}{
		{Peer{UID: 0}, "root", Admin},
		{Peer{UID: 900, GID: 900}, "gridnode", Admin},
		{Peer{UID: 1000, GID: 1000}, "ann", User},
		{Peer{UID: 1000, GID: 1000, Groups: []uint32{10}}, "ann", Admin}, // the greatest counts
		{Peer{UID: 1001, GID: 1001, Groups: []uint32{50}}, "ben", Operator},
		{Peer{UID: 1002, GID: 50}, "cy", User},
		{Peer{UID: 1002, GID: 1002, Groups: []uint32{7000}}, "cy", Stranger},
		{Peer{UID: 7000, GID: 7000}, "7000", User},
		{Peer{UID: 7001, GID: 7001}, "7001", Stranger},
	} {
		c := p.Local(tt.peer)
		if c.Name != tt.name || c.Role != tt.want {
			t.Errorf("%+v is %s, %v, want %s, %v", tt.peer, c.Name, c.Role, tt.name, tt.want)
		}
	}
	p.Users = list(t, "*")
	if c := p.Local(Peer{UID: 7001, GID: 7001}); c.Role != User {
		t.Errorf("where everybody is a user, an account is %v", c.Role)
	}
}

func TestParseList(t *testing.T) {
	for _, bad := range []string{"", "@", "ann ben", "a/b", "@@x", "**", "a:b"} {
		if l, err := ParseList([]string{bad}); err == nil {
			t.Errorf("%q is read as %+v", bad, l)
		}
	}
	l := list(t, "ann", "@staff", "*")
	if !l.Everybody || !slices.Equal(l.Accounts, []string{"ann"}) || !slices.Equal(l.Groups, []string{"staff"}) {
		t.Errorf("%+v", l)
	}
}

func TestWhoseJobsRun(t *testing.T) {
	names := town{"root": 0, "gridnode": 900}
	for _, tt := range []struct {
		people People
		uid    uint32
		want   error
	}{
		{People{Names: names}, 1000, nil},
		{People{Names: names}, 0, ErrRoot},
		{People{Names: names, Root: true}, 0, nil},
		{People{Names: names, Own: 900}, 900, nil},
		{People{Names: names, Own: 900}, 1000, ErrNotOwn},
		{People{Names: names, Own: 900, Root: true}, 0, ErrNotOwn},
		{People{Names: names, Own: 0, Alone: true, Root: true}, 0, nil},
	} {
		err := tt.people.MayRun(tt.uid)
		if !errors.Is(err, tt.want) {
			t.Errorf("daemon of %d, job of %d: %v, want %v", tt.people.Own, tt.uid, err, tt.want)
		}
		if tt.want == ErrNotOwn && !strings.Contains(err.Error(), "gridnode") {
			t.Errorf("%v does not say whose jobs run", err)
		}
	}
}

// A greater role reaches at least as far.
func TestRolesAreOrdered(t *testing.T) {
	for pattern, c := range Calls {
		if c.Of(Stranger) != No || c.Of(User) > c.Of(Operator) || c.Of(Operator) > c.Of(Admin) || c.Of(Admin) == No {
			t.Errorf("%s: %v", pattern, c)
		}
	}
}

// A number that is the name of an account stands for the number.
func TestNumbersAreAccounts(t *testing.T) {
	a, err := Find("1234567")
	if err != nil || a.UID != 1234567 || a.GID != 1234567 || a.Home != "" || len(a.Groups) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := Find("root"); err != nil || a.UID != 0 {
		t.Errorf("root: %+v, %v", a, err)
	}
	if _, err := Find("no-such-account"); err == nil {
		t.Error("an account that does not exist was found")
	}
}
