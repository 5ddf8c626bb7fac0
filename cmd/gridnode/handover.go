//go:build client

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// clientOnly says that this is the client alone.
const clientOnly = true

// main runs a verb of the client, or starts the whole program in this one's place.
func main() {
	if code, yes := carryOut(); yes {
		os.Exit(code)
	}
	line := commandLine()
	root := newRootFor(line)
	if found, _, err := root.Find(line); err != nil || found == root {
		os.Exit(handOver())
	}
	root.SetArgs(line)
	cmd, err := root.ExecuteC()
	if errors.Is(err, errWhole) {
		os.Exit(handOver())
	}
	os.Exit(report(root, cmd, err))
}

// wholeVerbs are none here.
var wholeVerbs []verb

// handOver starts the whole program with the same command line in this process. It returns
// an exit code if it cannot.
func handOver() int {
	program, err := findWhole()
	if err == nil {
		err = fmt.Errorf("%s: %w", program, syscall.Exec(program, os.Args, os.Environ()))
	}
	fmt.Fprintf(os.Stderr, "gridnode: start the whole program: %v\n", err)
	return exitFailed
}

// wholeName is the whole program's. It lies beside the client, or where packages put what
// users do not call themselves.
const wholeName = "gridnoded"

func findWhole() (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(self)
	for _, path := range []string{filepath.Join(dir, wholeName), filepath.Join(dir, "..", "libexec", "gridnode", wholeName)} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not beside %s: install both", wholeName, self)
}

// What follows of a submission needs the formats of files, modules and requests.

type cargo struct{}

func (l *luggage) pack(context.Context, io.Reader) error {
	if l.apart() {
		return errWhole
	}
	return nil
}

func (l *luggage) path(string, string) error { return errWhole }

func (l *luggage) tree(context.Context, *api.Client) (string, error) { return "", errWhole }

func (d *division) details(*api.JobSpec, *api.Coallocation, bool) error { return errWhole }

func (s *submission) handModule(*cobra.Command, *api.Client, *api.JobSpec) error { return errWhole }
