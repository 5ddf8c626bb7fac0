package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What subsystems log changes while the daemon runs: by a word, and by its settings.
func TestLogLevels(t *testing.T) {
	alpha := newSite(t, "alpha").start()
	level := func(part string) (level string) {
		t.Helper()
		var all []struct{ Part, Level string }
		alpha.json(&all, "log", "level")
		for _, l := range all {
			if l.Part == part {
				return l.Level
			}
		}
		return ""
	}
	if got := level("api"); got != "info" {
		t.Errorf("api logs from %q on, want info", got)
	}
	alpha.ok("log", "level", "error", "api=info")
	if store, api := level("store"), level("api"); store != "error" || api != "info" {
		t.Errorf("store logs from %q on, api from %q", store, api)
	}
	for _, bad := range []string{"p3p=info", "p2p=loud", "loud"} {
		alpha.code(2, "log", "level", "p2p=debug", bad)
	}
	if got := level("p2p"); got != "error" {
		t.Errorf("a refused change has p2p log from %q on", got)
	}
	alpha.ok("config", "set", "log.levels", "p2p=debug,store=warn")
	alpha.ok("reload")
	if p2p, node := level("p2p"), level("node"); p2p != "debug" || node != "info" {
		t.Errorf("after a reload p2p logs from %q on, node from %q", p2p, node)
	}
	alpha.ok("stop")
	alpha.ok("config", "set", "log.format", "json")
	alpha.start()
	lines := alpha.ok("debug", "log")
	var record struct{ Level, Msg string }
	first, _, _ := strings.Cut(lines, "\n")
	if err := json.Unmarshal([]byte(first), &record); err != nil || record.Msg == "" {
		t.Errorf("the log begins with %q: %v", first, err)
	}
	if text, err := os.ReadFile(filepath.Join(alpha.home, "daemon.log")); err != nil || !strings.Contains(string(text), first) {
		t.Errorf("%q is not in the log: %v", first, err)
	}
}

// A bundle has what helps to find a defect, with and without a daemon, and no secret of the
// site.
func TestDebugBundle(t *testing.T) {
	alpha := newSite(t, "alpha").start()
	alpha.ok("submit", "-W", "--", "echo", "private")
	token := strings.TrimSpace(alpha.ok("token", "create", "root"))
	if !strings.HasPrefix(token, "gridnode_") {
		t.Fatalf("the token is %q", token)
	}
	key, err := os.ReadFile(filepath.Join(alpha.home, "key"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bundle")
	alpha.ok("debug", "bundle", file)
	all := unpack(t, file)
	for name, word := range map[string]string{
		"version.json": "go1", "settings.json": "site.name", "doctor.json": "disk", "node.json": alpha.id, "peers.json": "peers",
		"metrics.txt": "gridnode_build_info", "goroutines.txt": "goroutine ", "log.txt": "ready", "loglevels.json": "p2p",
	} {
		if !strings.Contains(all[name], word) {
			t.Errorf("%s lacks %q: %.200q", name, word, all[name])
		}
	}
	for name, text := range all {
		if strings.HasSuffix(name, ".error") {
			t.Errorf("%s: %s", name, text)
		}
		for _, secret := range []string{string(key), base64.StdEncoding.EncodeToString(key), token, "PRIVATE KEY", "echo private"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a secret", name)
			}
		}
	}
	alpha.ok("stop")
	other := file + "2"
	alpha.ok("debug", "bundle", other)
	if all := unpack(t, other); !strings.Contains(all["doctor.json"], "daemon") || !strings.Contains(all["node.json.error"], "no daemon") {
		t.Errorf("without a daemon: %q", slices.Collect(maps.Keys(all)))
	}
}

// unpack reads a tar.gz: contents by name without folder.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	from, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	z, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		var text []byte
		if err == nil {
			text, err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(h.Name)] = string(text)
	}
}
