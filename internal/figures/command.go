package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// logsName stands for the directory of the logs in commands, so that a page names no
// path of the machine that wrote it.
const logsName = "logs"

// errLogs is returned for a command that reads logs where no -traces was given.
var errLogs = errors.New("needs -traces, a directory with the logs")

// runner gives what a command prints to standard output.
type runner interface {
	output(ctx context.Context, command string) ([]byte, error)
	tell(line string) // progress
}

// commands runs commands of two programs: gridnode, and go.
type commands struct {
	binary string
	logs   string // absolute, or empty
	talk   io.Writer
}

func (c *commands) tell(line string) { fmt.Fprintln(c.talk, line) }

// output runs a command. No shell sees it: words are separated by spaces, and quotes
// around one are for who types it.
func (c *commands) output(ctx context.Context, command string) ([]byte, error) {
	words := strings.Fields(command)
	for i, w := range words {
		words[i] = strings.Trim(w, "'")
		if w == logsName || strings.HasPrefix(w, logsName+"/") {
			if c.logs == "" {
				return nil, fmt.Errorf("%w: %s", errLogs, command)
			}
			words[i] = c.logs + w[len(logsName):]
		}
	}
	if words[0] == "gridnode" {
		words[0] = c.binary
	}
	var out, talk bytes.Buffer
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &talk
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if c.logs != "" {
		cmd.Env = append(os.Environ(), "GRIDNODE_TRACES="+c.logs)
	}
	begun := time.Now()
	err := cmd.Run()
	c.tell(fmt.Sprintf("  %6.1f s  %s", time.Since(begun).Seconds(), command))
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", command, err, tail(talk.String()), tail(out.String()))
	}
	return out.Bytes(), nil
}

// tail returns the last lines of what a command said.
func tail(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "")
}
