package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gridnode/internal/checkout"
	"gridnode/test/realsite"
)

// formerDefault is the former version where none was released.
const formerDefault = "HEAD~200"

// former returns the revision that a tree's program is exchanged with: what the command line names, else the
// last version that was released before it.
func former(ctx context.Context, source, named string) (string, error) {
	if named == "" {
		if tag, err := checkout.Git(ctx, source, "describe", "--tags", "--abbrev=0", "HEAD~1"); err == nil {
			named = tag
		} else {
			named = formerDefault
		}
	}
	return checkout.Commit(ctx, source, named)
}

// buildFormer builds the program of a revision, unless it is there.
func buildFormer(ctx context.Context, source, revision string) (string, error) {
	dir := filepath.Join(os.TempDir(), "gridnode-campaign-former-"+revision)
	program := filepath.Join(dir, "bin", "gridnode")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	tree, err := os.MkdirTemp("", "gridnode-campaign-former-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tree)
	if err := os.Chmod(tree, 0o755); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"git", "clone", "-q", "--shared", "--no-checkout", source, tree},
		{"git", "-C", tree, "checkout", "-q", revision},
		{"make", "-C", tree, "build"},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%q: %w: %s", args, err, out)
		}
	}
	if err := os.Rename(tree, dir); err != nil {
		if _, there := os.Stat(program); there != nil {
			return "", err // no round beside this one has built it either
		}
	}
	return program, nil
}

// versions stops daemons, in order or by a crash, and starts them again with the program of another version:
// sites of both run each other's jobs, read each other's stores, and take up each other's watchers.
func versions(ctx context.Context, p *plan) (*outcome, error) {
	revision, err := former(ctx, p.source, p.former)
	if err != nil {
		return nil, err
	}
	older, err := buildFormer(ctx, p.source, revision)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, p, func(s *site) error { s.program = older; return nil })
	if err != nil {
		return nil, err
	}
	w.out.note("former version " + revision)
	return w.round(ctx, func(context.Context) error { return w.exchange(older) })
}

// exchange starts a site anew with the other of two programs.
func (w *world) exchange(older string) error {
	s := w.sites[w.random.IntN(len(w.sites))]
	how := "after a crash"
	if w.random.IntN(2) == 0 {
		s.kill()
	} else {
		how = "after a stop"
		s.stop(patience)
	}
	if s.program == older {
		s.program = w.plan.program
		w.out.note("updated " + how)
		return s.start()
	}
	s.program = older
	err := s.start()
	if refusal := new(realsite.Refusal); errors.As(err, &refusal) && strings.Contains(refusal.Log, "later version") {
		w.out.note("store refused by the former version")
		s.program = w.plan.program
		return s.start()
	}
	w.out.note("went back " + how)
	return err
}
