package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"
)

// services looks accounts up: in the files of the machine, and where those do not know one with
// getent, which asks whatever else the machine has for them (NSS: LDAP, SSSD, winbind).
// A program without C reads the files only.
type services struct {
	paths []string // where getent may be, the first that is there counts
}

// machine is that of this machine. The paths are not the environment's: a daemon of root's
// runs what it finds there.
var machine = services{paths: []string{"/usr/bin/getent", "/bin/getent", "/run/current-system/sw/bin/getent"}}

// getentMax is how long getent may take: a directory server may be away.
const getentMax = 5 * time.Second

// errNoEntry says that no service knows what was asked for.
var errNoEntry = errors.New("no service of this machine knows it")

// ask returns the fields of the entry that getent has under a key.
func (s services) ask(database, key, separator string) ([]string, error) {
	i := slices.IndexFunc(s.paths, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
	if i < 0 || key == "" || strings.HasPrefix(key, "-") || strings.ContainsAny(key, ":\n\x00") {
		return nil, errNoEntry
	}
	ctx, cancel := context.WithTimeout(context.Background(), getentMax)
	defer cancel()
	c := exec.CommandContext(ctx, s.paths[i], database, key)
	c.Env = []string{"LC_ALL=C"}
	text, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 2 {
		return nil, errNoEntry
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s %s: %w", s.paths[i], database, key, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if separator == "" {
		return strings.Fields(line), nil
	}
	return strings.Split(line, separator), nil
}

// said reports whether getent itself has said that it cannot answer: not each one knows the
// groups of an account.
func said(err error) bool {
	var exit *exec.ExitError
	return err == nil || errors.As(err, &exit) && exit.ExitCode() > 0
}

// account returns the account that lookUp finds in the machine's files, else getent's under a key.
func (s services) account(key string, lookUp func(string) (*user.User, error)) (*user.User, error) {
	found, err := lookUp(key)
	if err == nil {
		return found, nil
	}
	fields, other := s.ask("passwd", key, ":")
	switch {
	case errors.Is(other, errNoEntry):
		return nil, err
	case other != nil:
		return nil, other
	case len(fields) < 7 || !isNumber(fields[2]) || !isNumber(fields[3]) || fields[0] != key && fields[2] != key:
		return nil, fmt.Errorf("getent passwd %s: %q is no entry of it", key, strings.Join(fields, ":"))
	}
	return &user.User{Username: fields[0], Uid: fields[2], Gid: fields[3], Name: fields[4], HomeDir: fields[5]}, nil
}

// group returns the number of a group.
func (s services) group(name string) (uint32, error) {
	found, err := user.LookupGroup(name)
	if err == nil {
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		return uint32(gid), err
	}
	fields, other := s.ask("group", name, ":")
	switch {
	case errors.Is(other, errNoEntry):
		return 0, err
	case other != nil:
		return 0, other
	case len(fields) < 3 || fields[0] != name:
		return 0, fmt.Errorf("getent group %s: %q is no entry of it", name, strings.Join(fields, ":"))
	}
	gid, err := strconv.ParseUint(fields[2], 10, 32)
	return uint32(gid), err
}

// groups returns the groups of an account: those of the files, and where this program has
// no C, those of all services, too.
func (s services) groups(account *user.User) ([]uint32, error) {
	ids, err := account.GroupIds()
	if !complete {
		fields, other := s.ask("initgroups", account.Username, "")
		if other == nil && len(fields) > 0 && fields[0] == account.Username {
			ids, err = append(ids, fields[1:]...), nil
		} else if !errors.Is(other, errNoEntry) && !said(other) {
			return nil, other
		}
	}
	if err != nil {
		return nil, err
	}
	var groups []uint32
	for _, id := range append(ids, account.Gid) {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil && !slices.Contains(groups, uint32(n)) {
			groups = append(groups, uint32(n))
		}
	}
	return groups, nil
}
