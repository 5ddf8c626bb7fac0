package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// silent are verbs without -o: what they print is not theirs, or a program's.
var silent = []string{
	"attach", "exec", "logs", // what a job writes
	"completion", "backup", // a script; a file
	"debug bundle", "debug log", // a file; what the daemon writes
	"start", "slurm", // a daemon; words of Slurm's
	"config set", "init", "restore", "peers unban", // they say on standard error what has changed
	"federation create", "federation join", "federation request", "federation sign", "federation install", "federation rotate",
}

// TestVerbsByName: a verb is found by the name in its table, without the others being made.
func TestVerbsByName(t *testing.T) {
	for _, v := range slices.Concat(clientVerbs, wholeVerbs) {
		root := newRootFor([]string{v.name, "--help"})
		var names []string
		for _, cmd := range root.Commands() {
			names = append(names, cmd.Name())
		}
		if !slices.Equal(names, []string{v.name}) {
			t.Errorf("%s alone makes %q", v.name, names)
		}
	}
	if all, some := len(newRoot().Commands()), len(newRootFor([]string{"no-such-verb"}).Commands()); all != some || all < 40 {
		t.Errorf("%d verbs, and %d to choose from where none is named", all, some)
	}
}

// TestEveryVerbSaysItOneWay: every verb that prints takes -o json, csv and name.
func TestEveryVerbSaysItOneWay(t *testing.T) {
	verbs := 0
	var check func(cmd *cobra.Command, path string)
	check = func(cmd *cobra.Command, path string) {
		if slices.Contains(silent, path) || cmd.Hidden {
			return
		}
		for _, below := range cmd.Commands() {
			check(below, strings.TrimSpace(path+" "+below.Name()))
		}
		if cmd.HasSubCommands() {
			return
		}
		verbs++
		flag := cmd.Flags().Lookup("output")
		if flag == nil || flag.Shorthand != "o" {
			t.Errorf("%s has no -o", path)
			return
		}
		if err := flag.Value.Set("json"); err != nil {
			t.Errorf("%s -o json: %v", path, err)
		}
		formats := []string{"csv", "name"}
		switch {
		case path == "top", path == "testnet reproduce": // several tables; CSV of reports goes to --out
			formats = nil
		case strings.HasPrefix(path, "testnet "): // a report has no name
			formats = formats[:1]
		}
		for _, format := range formats {
			if err := flag.Value.Set(format); err != nil {
				t.Errorf("%s -o %s: %v", path, format, err)
			}
		}
	}
	check(newRoot(), "")
	if verbs < 40 {
		t.Errorf("saw only %d verbs", verbs)
	}
}

// TestVersionFlag: --version says what the verb does.
func TestVersionFlag(t *testing.T) {
	var flag, verb bytes.Buffer
	for _, run := range []struct {
		out  *bytes.Buffer
		args []string
	}{{&flag, []string{"--version"}}, {&verb, []string{"version"}}} {
		root := newRoot()
		root.SetArgs(run.args)
		root.SetOut(run.out)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
	}
	if flag.String() != verb.String() || !strings.HasPrefix(flag.String(), "gridnode ") {
		t.Errorf("--version says %q, version %q", &flag, &verb)
	}
}

// TestLinesOfSeveralJobs: each line stands behind its job's name, however it comes.
func TestLinesOfSeveralJobs(t *testing.T) {
	var out bytes.Buffer
	p := prefixed{to: &severalLogs{w: &out}, before: "sweep[3]: "}
	for _, piece := range []string{"on", "e\ntwo\nth", "ree"} {
		if _, err := p.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	if want := "sweep[3]: one\nsweep[3]: two\nsweep[3]: three\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}
