package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/node/sandbox"
)

// commandsOf returns the commands of the first blocks of a section of README.md.
func commandsOf(t *testing.T, heading string, blocks int) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("README.md has no section %q", heading)
	}
	for range blocks {
		_, rest, _ := strings.Cut(section, "\n```\n")
		block, rest, found := strings.Cut(rest, "\n```\n")
		if !found {
			t.Fatalf("%q has fewer than %d blocks", heading, blocks)
		}
		section = rest
		var list []string
		for line := range strings.Lines(block) {
			command, _, _ := strings.Cut(line, "   ")
			list = append(list, strings.TrimSpace(command))
		}
		all = append(all, list)
	}
	return all
}

// TestReadme runs what README.md tells a newcomer: with eight commands a federation is made,
// a second site invited, a job run there inside walls, and its home banned there.
func TestReadme(t *testing.T) {
	t.Parallel()
	if _, err := sandbox.Find().Walls(sandbox.Auto); err != nil {
		t.Skipf("left out: %v", err)
	}
	blocks := commandsOf(t, "A federation of your own", 4)
	var count int
	for _, list := range blocks {
		count += len(list)
	}
	if count != 8 {
		t.Errorf("%d commands, want eight: %q", count, blocks)
	}
	words := map[string]string{}
	var sites []*site
	for i, name := range []string{"alpha", "beta"} {
		s := &site{TB: t, home: filepath.Join(t.TempDir(), name), walls: "auto"}
		if err := os.Mkdir(s.home, 0o700); err != nil {
			t.Fatal(err)
		}
		words[fmt.Sprintf("192.0.2.%d:7531", i+1)] = fmt.Sprintf("127.0.0.1:%d", freePort(t))
		sites = append(sites, s)
		t.Cleanup(func() { s.run("stop") })
	}
	alpha, beta := sites[0], sites[1]
	do := func(s *site, command string) string {
		t.Helper()
		for word, by := range words {
			command = strings.ReplaceAll(command, word, by)
		}
		cmd := s.command(t.Context())
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", command}
		cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
		out, err := cmd.Output()
		if err != nil {
			said := ""
			if exit, ok := err.(*exec.ExitError); ok {
				said = string(exit.Stderr)
			}
			t.Fatalf("%s: %v: %s", command, err, said)
		}
		return strings.TrimSpace(string(out))
	}
	last := func(s *site, list []string) (said string) {
		t.Helper()
		for _, command := range list {
			said = do(s, command)
		}
		return said
	}
	words["TOKEN"] = last(alpha, blocks[0])
	last(beta, blocks[1])
	alpha.sees(2)
	if said := do(alpha, blocks[2][0]); said != "hello from beta" {
		t.Errorf("the job says %q", said)
	}
	for name, text := range map[string]string{"input.dat": "some data\n", "analyse.py": "#!/bin/sh\necho at $GRIDNODE_SITE: $(cat input.dat) >plot\n"} {
		if err := os.WriteFile(filepath.Join(alpha.home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do(alpha, blocks[2][1])
	if plot, err := os.ReadFile(filepath.Join(alpha.home, "plot")); string(plot) != "at beta: some data\n" {
		t.Errorf("home comes %q, %v", plot, err)
	}
	do(beta, blocks[3][0])
	if r := alpha.run("submit", "--site", "beta", "-W", "--", "true"); r.code == 0 {
		t.Errorf("a job runs at a site that has banned its home: %v", r)
	}
	do(alpha, "gridnode revoke beta")
	alpha.sees(1)
}
