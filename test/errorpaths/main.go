// Command errorpaths lists the error paths that no test executes: branches in the cores, the store and
// the network that return an error, and that a coverage profile has at zero. Most failures that
// end in a catastrophe are errors that were handled in code that never ran before.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

// looked are the packages whose branches are looked at.
var looked = []string{
	"./directory/...", "./market/...", "./lease/...", "./coalloc/...", "./internal/lrms/...", "./internal/wire",
	"./node/pilot", "./node/site", "./node/member", "./node/store/...", "./node/p2p/...",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := list(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "errorpaths:", err)
		os.Exit(1)
	}
}

func list(ctx context.Context) error {
	tests := flag.String("tests", "./...", "packages whose tests are run, with blanks")
	profile := flag.String("profile", "", "a coverage profile that is there already; nothing is run then")
	flag.Parse()
	path := *profile
	if path == "" {
		dir, err := os.MkdirTemp("", "gridnode-errorpaths")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "profile")
		args := append([]string{"test", "-coverpkg", strings.Join(looked, ","), "-coverprofile", path}, strings.Fields(*tests)...)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go %q: %w", args, err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	ran, err := readProfile(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	all, never := 0, 0
	for _, file := range ran.files() {
		source, err := os.ReadFile(strings.TrimPrefix(file, "gridnode/"))
		if err != nil {
			return err
		}
		branches, err := errorBranches(file, source)
		if err != nil {
			return err
		}
		for _, b := range branches {
			all++
			if !ran.at(file, b.first) {
				never++
				fmt.Printf("%s:%d: %s\n", strings.TrimPrefix(file, "gridnode/"), b.line, b.text)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "%d of %d error paths were never executed\n", never, all)
	return nil
}
