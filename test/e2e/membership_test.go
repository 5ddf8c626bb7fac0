package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMembers: a federation is made, a site is invited, runs a job for the first, and is
// revoked. A stranger that calls itself what the member is called, and asks less, gets
// nothing.
func TestMembers(t *testing.T) {
	t.Parallel()
	alpha := newLoner(t, "alpha", "--processors", "1")
	alpha.ok("federation", "create", "physics", "--org", "Institute")
	if text := alpha.ok("federation", "show"); !strings.Contains(text, "rights       offer,submit,lend,hold,bank,invite") {
		t.Errorf("show: %s", text)
	}
	alpha.code(5, "federation", "create", "physics")
	alpha.start()
	token := strings.TrimSpace(alpha.ok("invite", "--site", "beta"))
	beta := newLoner(t, "beta", "--join", token, "--foreign", "allow", "--price", "0.5").start()
	stranger := newLoner(t, "beta", "--join", alpha.addr, "--federation", "physics", "--foreign", "allow", "--price", "0.01").start()

	alpha.sees(2)
	alpha.eventually("beta's record can be found", func() bool { return strings.Contains(alpha.run("sites", beta.id).stdout, "record") })
	if text := alpha.ok("submit", "--policy", "cheapest", "--site", "beta", "-W", "--", "true"); strings.Contains(text, "0.01") {
		t.Errorf("the job went to the stranger: %s", text)
	}
	names := func() string {
		return strings.Join(strings.Fields(alpha.ok("members", "-o", "csv", "--no-headers")), " ")
	}
	if text := names(); !strings.Contains(text, "Institute") || strings.Contains(text, stranger.id) || strings.Count(text, "beta") != 1 {
		t.Errorf("members: %s", text)
	}

	for _, tt := range []struct {
		code int
		word string
		args []string
	}{
		{5, "may not invite", []string{"invite"}},
		{5, "may not invite", []string{"revoke", "alpha"}},
	} {
		if r := beta.code(tt.code, tt.args...); !strings.Contains(r.stderr, tt.word) {
			t.Errorf("beta %q: %v, want %q", tt.args, r, tt.word)
		}
	}
	for _, tt := range []struct {
		code int
		word string
		args []string
	}{
		{5, "no member", []string{"revoke", "gamma"}},
		{5, "this site itself", []string{"revoke", "alpha"}},
		{2, "want offer, submit", []string{"invite", "--rights", "everything"}},
		{2, "--valid", []string{"invite", "--valid", "soon"}},
		{5, "another member has that name", []string{"invite", "--site", "beta"}},
	} {
		if r := alpha.code(tt.code, tt.args...); !strings.Contains(r.stderr, tt.word) {
			t.Errorf("alpha %q: %v, want %q", tt.args, r, tt.word)
		}
	}

	if text := alpha.ok("revoke", "beta"); !strings.Contains(text, beta.id) {
		t.Errorf("revoke: %s", text)
	}
	alpha.sees(1)
	if r := alpha.code(5, "submit", "--site", beta.id, "-W", "--", "true"); !strings.Contains(r.stderr, "no site") {
		t.Errorf("a job for a revoked site: %v", r)
	}
	alpha.kill() // what was revoked stays so
	alpha.start()
	alpha.eventually("nobody but itself is a member", func() bool { return strings.Count(names(), "physics") == 1 })

	// The invitation was used; a damaged one says so; nothing is left of an init that failed.
	home := filepath.Join(t.TempDir(), "gamma")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	gamma := &site{TB: t, home: home}
	for _, tt := range []struct {
		code  int
		word  string
		token string
	}{
		{5, "used by beta", token},
		{2, "damaged", token[:len(token)-9]},
		{2, "no invitation", "physics"},
	} {
		if r := gamma.code(tt.code, "init", "--join", tt.token); !strings.Contains(r.stderr, tt.word) {
			t.Errorf("init with %.30s…: %v, want %q", tt.token, r, tt.word)
		}
		if _, err := os.Stat(filepath.Join(home, "key")); err == nil {
			t.Errorf("a key is left of an init that failed")
		}
	}
	again := strings.TrimSpace(alpha.ok("invite", "--rights", "submit"))
	gamma.ok("init", "--site", "gamma", "--join", again, "--listen", "/ip4/127.0.0.1/tcp/0")
	if text := gamma.ok("federation", "show"); !strings.Contains(text, "rights       submit\n") {
		t.Errorf("gamma: %s", text)
	}
}

// TestRootsAgree: of three root keys two must sign. A site whose request they have signed
// may invite.
func TestRootsAgree(t *testing.T) {
	t.Parallel()
	alpha := newLoner(t, "alpha")
	alpha.code(2, "federation", "create", "physics", "--roots", "3", "--quorum", "4")
	alpha.ok("federation", "create", "physics", "--roots", "3", "--quorum", "2")
	beta := newLoner(t, "beta")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	request := file("beta.csr", beta.ok("federation", "request"))
	var signed []string
	for _, n := range []string{"1", "2", "3"} {
		key := filepath.Join(alpha.home, "root-"+n+".key")
		signed = append(signed, file("beta-"+n+".pem", alpha.ok("federation", "sign", request, "--root-key", key, "--rights", "all")))
	}
	if r := beta.code(5, "federation", "install", signed[0]); !strings.Contains(r.stderr, "1 of 3 roots") {
		t.Errorf("one signature: %v", r)
	}
	if text := beta.ok("federation", "show"); !strings.Contains(text, "open") {
		t.Errorf("after an install that failed: %s", text)
	}
	if text := beta.ok("federation", "install", signed[1], signed[2]); !strings.Contains(text, "invite") {
		t.Errorf("two signatures: %s", text)
	}
	for _, tt := range []struct {
		word string
		args []string
	}{
		{"no request", []string{"federation", "sign", signed[0]}},
		{"CERTIFICATE REQUEST", []string{"federation", "install", request}},
	} {
		if r := beta.code(2, tt.args...); !strings.Contains(r.stderr, tt.word) {
			t.Errorf("%q: %v, want %q", tt.args, r, tt.word)
		}
	}
	beta.start()
	alpha.set("network.join", beta.addr).start()
	alpha.sees(2)
	gamma := newLoner(t, "gamma", "--join", strings.TrimSpace(beta.ok("invite"))).start()
	alpha.sees(3)
	if text := gamma.ok("renew"); !strings.Contains(text, "good until") {
		t.Errorf("renew: %s", text)
	}
	if r := alpha.code(5, "renew"); !strings.Contains(r.stderr, "root key") {
		t.Errorf("renew of a root's certificate: %v", r)
	}
}

// TestRootsAreReplaced: one root key of three is lost. The two others, which are kept at two
// places, replace it; what they have certified stays good.
func TestRootsAreReplaced(t *testing.T) {
	t.Parallel()
	alpha := newLoner(t, "alpha")
	alpha.ok("federation", "create", "physics", "--roots", "3", "--quorum", "2")
	beta := newLoner(t, "beta", "--join", strings.TrimSpace(alpha.start().ok("invite")))
	alpha.kill()
	key := func(n string) string { return filepath.Join(alpha.home, "root-"+n+".key") }
	file := func(name, text string) string {
		path := filepath.Join(alpha.home, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	print := func(s *site) string {
		_, text, _ := strings.Cut(s.ok("federation", "show"), "fingerprint")
		text, _, _ = strings.Cut(text, "\n")
		return strings.TrimSpace(text)
	}
	old := print(beta)
	for _, tt := range []struct {
		code int
		word string
		args []string
	}{
		{2, "--root-key", nil},
		{2, "none is replaced", []string{"--root-key", key("1") + "," + key("2") + "," + key("3")}},
		{1, "is the key of no root", []string{"--root-key", filepath.Join(beta.home, "key")}},
	} {
		r := alpha.run(append([]string{"federation", "rotate"}, tt.args...)...)
		if r.code != tt.code || !strings.Contains(r.stderr, tt.word) && !strings.Contains(r.stderr, "no key in it") {
			t.Errorf("rotate %q: %v, want %d, %q", tt.args, r, tt.code, tt.word)
		}
	}

	// Root 1 alone cannot do it. It would replace root 2 as well, so it names both.
	both := alpha.code(0, "federation", "rotate", "--root-key", key("1")+","+key("2"), "--new-key", filepath.Join(alpha.home, "root-4.key"))
	next := file("next.pem", both.stdout)
	alone := file("alone.pem", alpha.ok("federation", "rotate", "--root-key", key("1"), "--new-key", filepath.Join(alpha.home, "other.key")))
	if r := beta.code(5, "federation", "install", alone); !strings.Contains(r.stderr, "1 of the 3 roots") {
		t.Errorf("one root's word: %v", r)
	}
	if print(beta) != old {
		t.Error("one root's word has changed the roots")
	}
	second := file("second.pem", alpha.ok("federation", "rotate", "--root-key", key("2"), "--next", alone))
	if r := beta.code(5, "federation", "install", second); !strings.Contains(r.stderr, "would not be a member") {
		t.Errorf("new roots of which one has certified this site: %v", r)
	}
	for _, s := range []*site{alpha, beta} {
		if text := s.ok("federation", "install", next); !strings.Contains(text, "is a member of physics") || print(s) == old {
			t.Errorf("install: %s, roots %s", text, print(s))
		}
	}
	alpha.start()
	beta.set("network.join", alpha.addr).start()
	alpha.sees(2)
	beta.kill()
	if r := beta.code(5, "federation", "install", alone); !strings.Contains(r.stderr, "do not take the place") {
		t.Errorf("what only one of the roots that there are now has agreed to: %v", r)
	}
}

// TestOnlyRootIsReplaced: the only root gives its word for another one, and that certifies anew
// whom it had certified. Who was invited by one of these keeps what it has.
func TestOnlyRootIsReplaced(t *testing.T) {
	t.Parallel()
	alpha := newLoner(t, "alpha")
	alpha.ok("federation", "create", "physics")
	beta := newLoner(t, "beta", "--join", strings.TrimSpace(alpha.start().ok("invite")))
	alpha.kill()
	dir := t.TempDir()
	print := func(name string, s *site, args ...string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(s.ok(args...)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newKey := filepath.Join(dir, "root-new.key")
	next := print("next.pem", alpha, "federation", "rotate", "--root-key", filepath.Join(alpha.home, "root.key"), "--all", "--new-key", newKey)
	request := print("alpha.csr", alpha, "federation", "request")
	if r := alpha.code(1, "federation", "sign", request, "--root-key", newKey); !strings.Contains(r.stderr, "--roots") {
		t.Errorf("signed without the new root's certificate: %v", r)
	}
	signed := print("alpha.pem", alpha, "federation", "sign", request, "--root-key", newKey, "--roots", next, "--rights", "all")
	if r := beta.code(5, "federation", "install", next); !strings.Contains(r.stderr, "would not be a member") {
		t.Errorf("a new root that has certified nobody: %v", r)
	}
	for _, s := range []*site{alpha, beta} {
		if text := s.ok("federation", "install", next, signed); !strings.Contains(text, "is a member of physics") {
			t.Errorf("install: %s", text)
		}
	}
	alpha.start()
	beta.set("network.join", alpha.addr).start()
	alpha.sees(2)
}
