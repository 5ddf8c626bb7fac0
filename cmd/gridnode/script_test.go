package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// scriptFlags is a flag set like that of submit, as far as scripts need it.
func scriptFlags() *pflag.FlagSet {
	f := pflag.NewFlagSet("submit", pflag.ContinueOnError)
	f.StringP("time", "t", "", "")
	f.Int64P("ntasks", "n", 1, "")
	f.StringP("job-name", "J", "", "")
	f.String("deadline", "", "")
	f.StringP("output", "o", "table", "")
	f.String("stdout", "", "")
	f.StringP("partition", "p", "", "")
	f.BoolP("wait", "W", false, "")
	return f
}

func TestScriptOptions(t *testing.T) {
	s := &script{path: "job.sh", text: `#!/bin/sh
#SBATCH -n 4 --time=1:00:00   # a remark
#SBATCH --partition debug --qos=low
#SBATCH -o out.%j -J "two words"
#GRID --deadline 2h -W

# plain comment
echo hello
#GRID --ntasks 99
`}
	flags := scriptFlags()
	if err := flags.Parse([]string{"--time", "5"}); err != nil {
		t.Fatal(err)
	}
	var warnings strings.Builder
	batch, err := s.options(flags, false, &warnings)
	if err != nil || !batch {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"ntasks": "4", "time": "5", "job-name": "two words", "deadline": "2h", "wait": "true", "output": "table", "stdout": "out.%j", "partition": "debug"} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s = %q, want %q", name, got, want)
		}
	}
	want := "note: job.sh:3: --qos=low is left out: gridnode has no accounts of that kind\n"
	if warnings.String() != want {
		t.Errorf("warnings %q, want %q", warnings.String(), want)
	}
}

func TestScriptOptionsRefuse(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"#!/bin/sh\n#GRID --dedline 2h\n", "job.sh:2: unknown option --dedline; did you mean --deadline?"},
		{"#!/bin/sh\n\n#SBATCH -C fast -n 2\n##SBATCH --x11\n#SBATCH --nosuch\ntrue\n#SBATCH --uid=3\n", "this asks for what gridnode cannot do (--lenient leaves it out):\n  " +
			"job.sh:3: -C: sites have no features: name one with --clusters\n  job.sh:5: unrecognized option '--nosuch'"},
		{"#!/bin/sh\n#SBATCH --x11\n#SBATCH --time=soon\n", "this asks for what gridnode cannot do (--lenient leaves it out):\n  " +
			"job.sh:2: --x11: a batch job has no display\n  job.sh:3: --time: \"soon\" is not a span of time"},
		{"#!/bin/sh\n#SBATCH -n 1\n#SBATCH --time=soon\n", "job.sh:3: --time: \"soon\" is not"},
		{"#!/bin/sh\n#GRID --deadline\n", "job.sh:2: --deadline wants a value"},
		{"#!/bin/sh\n#GRID -n four\n", "job.sh:2: "},
		{"#!/bin/sh\n#GRID 4\n", `job.sh:2: "4" is not an option`},
		{"#!/bin/sh\n#GRID -J 'open\n", "job.sh:2: "},
	} {
		s := &script{path: "job.sh", text: tt.text}
		_, err := s.options(scriptFlags(), false, os.Stderr)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("options of %q: %v, want %q", tt.text, err, tt.want)
		}
	}
}

func TestScriptCommand(t *testing.T) {
	for _, tt := range []struct {
		head string
		want []string // TEXT stands for the script itself
	}{
		{"#!/bin/bash -e", []string{"/bin/bash", "-e", "-c", "TEXT", "job", "a", "b"}},
		{"#!/usr/bin/env python3", []string{"/usr/bin/env", "python3", "-c", "TEXT", "a", "b"}},
		{"#! /usr/bin/perl", []string{"/usr/bin/perl", "-e", "TEXT", "--", "a", "b"}},
	} {
		path := filepath.Join(t.TempDir(), "job")
		text := tt.head + "\nbody\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if !isScript(path) {
			t.Fatalf("%q is not taken for a script", tt.head)
		}
		s, err := readScript(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.path = "job"
		got, err := s.command([]string{"a", "b"})
		for i := range tt.want {
			tt.want[i] = strings.Replace(tt.want[i], "TEXT", text, 1)
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("command of %q = %q, %v, want %q", tt.head, got, err, tt.want)
		}
	}
	long := "#!/bin/sh\n" + strings.Repeat("x", scriptMax)
	if _, err := readScript("-", strings.NewReader(long)); err != nil {
		t.Errorf("a script of %d bytes, which travels as a file: %v", len(long), err)
	}
	long = "#!/bin/sh\n" + strings.Repeat("x", scriptFileMax)
	if _, err := readScript("-", strings.NewReader(long)); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("a script of %d bytes: %v, want an error that says it is too long", len(long), err)
	}
	if _, err := readScript("-", strings.NewReader("echo")); err == nil {
		t.Error("a text without #! was taken")
	}
	s := &script{path: "x", interpreter: []string{"/usr/bin/awk", "-f"}}
	if got, err := s.command(nil); err == nil {
		t.Errorf("an awk script became %q, want an error", got)
	}
}

func TestPlainFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, mode := range map[string]os.FileMode{"job.sh": 0o600, "plot.py": 0o600, "program": 0o700, "ls": 0o600} {
		if err := os.WriteFile(name, []byte("echo hello\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, advice := range map[string]string{
		"job.sh": "--in job.sh -- sh job.sh", "./job.sh": "#!/bin/sh as", "plot.py": "#!/usr/bin/env python3 as its first line, or submit what runs it: gridnode submit --in plot.py -- python3 plot.py",
		"program": "-- ./program", "./program": "", "ls": "", "no-such-file": "", ".": "",
	} {
		if err := plainFile(path); (err != nil) != (advice != "") || err != nil && !strings.Contains(err.Error(), advice) {
			t.Errorf("%s: %v, want the advice %q", path, err, advice)
		}
	}
}

func TestAJobOnAClusterKnowsItself(t *testing.T) {
	const id = "5x6ae6wr5vgx50cjxf8xwnan2r"
	t.Setenv("SLURM_JOB_ID", "37")
	t.Setenv("GRIDNODE_JOB_ID", id)
	if got, want := splitJobs("12,37,37_4,13_[1,37]"), []string{"12", id, "37_4", "13_[1,37]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := dependent.ReplaceAllStringFunc("afterok:37:12?after:37,singleton", jobHere), "afterok:"+id+":12?after:"+id+",singleton"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	t.Setenv("GRIDNODE_JOB_ID", "")
	if got := splitJobs("37"); got[0] != "37" {
		t.Errorf("outside of a job got %q", got)
	}
}
