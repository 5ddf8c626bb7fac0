// Command figures writes the pages of docs/figures: measured figures, one page per
// subject, each table with the commands that gave it.
//
//	go run ./internal/figures -gridnode bin/gridnode -out docs/figures [SUBJECT…]
//
// It runs what a user would run (gridnode testnet … -o json, go test -bench, go test
// -v) and reads what that prints. It imports nothing of gridnode, so it measures the
// program that is shipped, and a table stays true when packages are rearranged.
//
// A subject is an entry of subjects(): a page with its tables; a table is what is
// run, what is taken from the output, and the sentence that explains it. To add a
// figure, write it there and run make figures SUBJECT=name. Pages are never edited by
// hand: a test sees to that, and to their width.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// command does what the command line asks for. Progress goes to talk.
func command(ctx context.Context, args []string, talk io.Writer) error {
	f := flag.NewFlagSet("figures", flag.ContinueOnError)
	f.SetOutput(talk)
	out := f.String("out", "docs/figures", "`directory` to write to")
	binary := f.String("gridnode", "bin/gridnode", "the program that is measured")
	logs := f.String("traces", "", "`directory` with the logs of the Parallel Workloads Archive; subjects that need them are skipped without")
	list := f.Bool("list", false, "print the subjects and how long they take")
	if err := f.Parse(args); err != nil {
		return err
	}
	all := subjects()
	if *list {
		for _, s := range all {
			fmt.Fprintf(talk, "%-36s %-8s %s\n", s.name, s.takes, s.title)
		}
		return nil
	}
	chosen, err := choose(all, f.Args())
	if err != nil {
		return err
	}
	at, err := look(ctx)
	if err != nil {
		return err
	}
	if *logs != "" {
		if *logs, err = filepath.Abs(*logs); err != nil { // tests run in the folders of their packages
			return err
		}
	}
	run := &commands{binary: *binary, logs: *logs, talk: talk}
	return write(ctx, *out, chosen, len(f.Args()) > 0, run, at)
}

// choose returns the subjects of those names, or all.
func choose(all []subject, names []string) ([]subject, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []subject
	var known []string
	for _, s := range all {
		known = append(known, s.name)
		if slices.Contains(names, s.name) {
			chosen = append(chosen, s)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("no subject %q: want some of %s", n, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// write measures each subject and writes its page, then the list of all pages. What
// fails is told, and does not keep the others from being written; it is returned in
// the end. A subject that lacks its logs is an error only if it was named.
func write(ctx context.Context, dir string, chosen []subject, named bool, run runner, at surroundings) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var failed []error
	for i, s := range chosen {
		if ctx.Err() != nil {
			return errors.Join(append(failed, ctx.Err())...)
		}
		run.tell(fmt.Sprintf("[%d/%d] %s, %s", i+1, len(chosen), s.name, s.takes))
		at.date = time.Now().UTC()
		text, err := s.page(ctx, run, at)
		switch {
		case errors.Is(err, errLogs) && !named:
			run.tell("skipped: " + err.Error())
			continue
		case err == nil:
			err = os.WriteFile(filepath.Join(dir, s.name+".md"), []byte(text), 0o644)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			run.tell(err.Error())
			failed = append(failed, err)
		}
	}
	failed = append(failed, writeIndex(dir, subjects()))
	return errors.Join(failed...)
}
