package access

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// directoryOf returns services with a getent that knows what the script says.
func directoryOf(t *testing.T, script string) services {
	t.Helper()
	path := filepath.Join(t.TempDir(), "getent")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return services{paths: []string{filepath.Join(t.TempDir(), "none"), path}}
}

// TestAccountsOfADirectoryService: who is in no file of the machine is found with getent, by
// name and by number, with home and groups; who is nowhere is not found.
func TestAccountsOfADirectoryService(t *testing.T) {
	s := directoryOf(t, `case "$1 $2" in
"passwd adalovelace" | "passwd 710815") echo "adalovelace:*:710815:710000:Ada:/home/ada:/bin/sh" ;;
"group analysts") echo "analysts:*:710001:adalovelace" ;;
"initgroups adalovelace") echo "adalovelace           710000 710001 710002" ;;
"passwd broken") echo "something else" ;;
"passwd slow") echo "the server is away" >&2; exit 1 ;;
*) exit 2 ;;
esac
`)
	for _, key := range []string{"adalovelace", "710815"} {
		a, err := s.lookUp(key)
		if err != nil || a.Name != "adalovelace" || a.UID != 710815 || a.GID != 710000 || a.Home != "/home/ada" {
			t.Errorf("%s is %+v, %v", key, a, err)
		}
		if want := []uint32{710001, 710002}; !complete && !slices.Equal(a.Groups, want) {
			t.Errorf("%s has the groups %v, want %v", key, a.Groups, want)
		}
	}
	if gid, err := s.group("analysts"); err != nil || gid != 710001 {
		t.Errorf("the group is %d, %v", gid, err)
	}
	for name, want := range map[string]string{"nobodyknowsme": "unknown user", "broken": "no entry", "slow": "getent passwd slow", "-s": "unknown user"} {
		if a, err := s.lookUp(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v, %v: want %q", name, a, err, want)
		}
	}
	if _, err := s.group("nobodyknowsit"); err == nil {
		t.Error("a group that nobody knows has a number")
	}
	if a, err := s.lookUp("710816"); err != nil || a.UID != 710816 || a.GID != 710816 || a.Home != "" {
		t.Errorf("a number without an account is %+v, %v", a, err)
	}
}

// TestGroupsThatGetentDoesNotKnow: where getent has no list of an account's groups, those of the
// files count.
func TestGroupsThatGetentDoesNotKnow(t *testing.T) {
	s := directoryOf(t, `[ "$1" = initgroups ] && exit 1; exit 2`)
	if a, err := s.lookUp("root"); err != nil || a.UID != 0 {
		t.Errorf("root is %+v, %v", a, err)
	}
}

// TestAccountsOfTheFiles: root is found without getent, and as getent has it.
func TestAccountsOfTheFiles(t *testing.T) {
	for _, s := range []services{{}, machine, directoryOf(t, "exit 2")} {
		if a, err := s.lookUp("root"); err != nil || a.UID != 0 || a.GID != 0 || a.Home == "" {
			t.Errorf("root is %+v, %v", a, err)
		}
	}
}
