package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program's parts list has Go's own library and every module in it, each with a licence.
// What takes minutes, building all twice and comparing, is `make dist-twice`'s.
func TestPartsOfAProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &dist{root: "../..", version: "1.2.3", date: time.Unix(1_700_000_000, 0).UTC()}
	p, err := d.parts(self)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.list) == 0 || p.list[0].path != "std" || p.list[0].licence != "BSD-3-Clause" {
		t.Fatalf("Go's library is not the first part: %+v", p.list)
	}
	one, err := p.bom(d)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := p.bom(d)
	if !bytes.Equal(one, two) || !json.Valid(one) {
		t.Error("two parts lists differ, or are no JSON")
	}
	notices, err := p.notices()
	if err != nil || !strings.Contains(string(notices), "Redistribution and use") {
		t.Errorf("no text of Go's licence among the notices: %v", err)
	}
}

// Every module that gridnode is built of has a licence that is known, so that nothing is
// found out on the day of a release.
func TestEveryModuleHasALicence(t *testing.T) {
	d := &dist{root: "../.."}
	said, err := d.command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", "./cmd/gridnode").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(said)) {
		words := strings.Fields(line)
		if len(words) != 3 || seen[words[0]] {
			continue
		}
		seen[words[0]] = true
		if _, err := newPart(words[0], words[1], words[2]); err != nil {
			t.Error(err)
		}
	}
	if len(seen) < 50 {
		t.Errorf("saw only %d modules", len(seen))
	}
}

// Where a licence is not known nothing is handed out.
func TestModuleWithoutLicence(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("All rights reserved."), 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err := newPart("example.org/x", "v1.0.0", dir); err == nil {
		t.Errorf("taken as %q", m.licence)
	}
}

// The same text packed twice gives the same bytes: what packages hold has no clock in it.
func TestPackingIsReproducible(t *testing.T) {
	text := bytes.Repeat([]byte("gridnode "), 1000)
	one, err := pack(text)
	if err != nil {
		t.Fatal(err)
	}
	two, err := pack(text)
	if err != nil || !bytes.Equal(one, two) || len(one) > 500 {
		t.Errorf("%d and %d bytes, %v", len(one), len(two), err)
	}
}

// The scripts and the unit are right as far as the tools at hand can tell.
func TestPackageFiles(t *testing.T) {
	scripts, err := filepath.Glob("../../deploy/package/*.sh")
	if err != nil || len(scripts) < 4 {
		t.Fatalf("saw only %d scripts: %v", len(scripts), err)
	}
	for _, script := range scripts {
		if out, err := exec.Command("sh", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here: the unit is not checked")
	}
	cmd := exec.Command(analyze, "security", "--offline=true", "--threshold=30", "../../deploy/systemd/gridnode.service")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the unit's exposure is above 3: %v\n%s", err, out)
	}
}
