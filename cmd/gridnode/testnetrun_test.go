package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var seeds = flag.Int("seeds", 0, "run every scenario of testnet run as its help gives it, unshortened, for so many seeds (0: few, in a minute)")

// plan says how many seeds a command line gets in the usual test, and what makes those
// after the first quick. A line that is quick by itself is run as it stands.
type plan struct {
	seeds   int
	shorter []string
	first   []string // makes the first run shorter, too
}

// planOf returns the plan of a command line of a scenario. Chaos with no flags is what
// people try first: a whole day of it once, and parts of a day for other seeds.
func planOf(scenario string, args []string) plan {
	switch {
	case scenario == "chaos" && len(args) == 0:
		return plan{seeds: 8, shorter: []string{"--hours", "3"}}
	case scenario == "chaos":
		return plan{seeds: 4, shorter: []string{"--hours", "2"}, first: []string{"--hours", "4"}}
	case scenario == "hostile":
		return plan{seeds: 3, shorter: []string{"--hours", "0.1"}, first: []string{"--hours", "0.2"}}
	case scenario == "packing":
		return plan{seeds: 2, shorter: []string{"--total", "2000"}}
	case slices.Contains(args, "--sites") || slices.Contains(args, "gossip"):
		return plan{seeds: 2}
	}
	return plan{seeds: 8}
}

// TestScenariosAsTheHelpGivesThem runs `testnet run SCENARIO` without flags and with those
// of each example of its help, through the command line itself: flags, defaults and the
// checks of the scenario are what a user gets. A failure names the command to repeat it.
func TestScenariosAsTheHelpGivesThem(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations in one goroutine")
	}
	scenarios := scenariosOf(newRoot())
	if len(scenarios) == 0 {
		t.Fatal("testnet run has no scenarios")
	}
	logs := &exampleLogs{dir: t.TempDir()}
	for _, cmd := range scenarios {
		lines := append([]string{cmd.CommandPath()}, strings.Split(cmd.Example, "\n")...)
		for _, line := range lines {
			words := shellWords(t, strings.TrimSpace(line))
			own, found := strings.CutPrefix(strings.Join(words, "\x00"), strings.Join(strings.Fields(cmd.CommandPath()), "\x00"))
			if !found {
				t.Errorf("%s: the example %q is about something else", cmd.CommandPath(), line)
				continue
			}
			args := logs.replace(t, strings.FieldsFunc(own, func(r rune) bool { return r == 0 }))
			t.Run(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "gridnode testnet run ")), func(t *testing.T) {
				t.Parallel()
				runSeeds(t, cmd.Name(), args)
			})
		}
	}
}

// runSeeds runs one command line for several seeds.
func runSeeds(t *testing.T, scenario string, args []string) {
	p := planOf(scenario, args)
	if *seeds > 0 {
		p = plan{seeds: *seeds}
	}
	for i := range p.seeds {
		words := slices.Concat([]string{"testnet", "run", scenario}, args)
		if i == 0 {
			words = append(words, p.first...)
		} else {
			words = append(append(words, p.shorter...), "--seed", strconv.Itoa(i+1))
		}
		if out, err := runLine(t.Context(), words); err != nil {
			t.Errorf("%v\n%s\nto see it again: gridnode %s", err, out, quoted(words))
		} else if !seenResult.MatchString(out) {
			t.Errorf("no result in what it prints:\n%s\nto see it again: gridnode %s", out, quoted(words))
		}
	}
}

// seenResult is what a table and JSON have in common, or what sums up many seeds.
var seenResult = regexp.MustCompile(`trace hash [0-9a-f]{16}|"traceHash": "[0-9a-f]{16}"|(?m:^violations +0$)`)

// runLine runs a command line in this process; a panic is an error.
func runLine(ctx context.Context, words []string) (out string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	root, b := newRoot(), &bytes.Buffer{}
	root.SetArgs(words)
	root.SetOut(b)
	root.SetErr(b)
	_, err = root.ExecuteContextC(ctx)
	return b.String(), err
}

// scenariosOf returns the commands below testnet run.
func scenariosOf(root *cobra.Command) []*cobra.Command {
	run, _, err := root.Find([]string{"testnet", "run"})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(run.Commands(), func(c *cobra.Command) bool { return !c.Runnable() || c.Hidden })
}

// shellWords splits a line as a shell does, as far as examples need it.
func shellWords(t *testing.T, line string) (words []string) {
	var word strings.Builder
	inside, begun := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			inside, begun = !inside, true
		case r == ' ' && !inside:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		case !inside && strings.ContainsRune(`"\$|&;<>(){}`+"`", r):
			t.Fatalf("%s: this test does not know what a shell makes of %q", line, r)
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// quoted is shellWords undone.
func quoted(words []string) string {
	for i, w := range words {
		if strings.ContainsAny(w, " ;*") {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

// exampleLogs stands for the logs that examples name and that nobody has to have: each
// is a week of a small machine.
type exampleLogs struct{ dir string }

// replace puts a log of this test in the place of each that is named.
func (l *exampleLogs) replace(t *testing.T, args []string) []string {
	t.Helper()
	for i, arg := range args {
		cluster, name, named := strings.Cut(arg, "=")
		if !named {
			cluster, name = "", arg
		} else {
			cluster += "="
		}
		name = filepath.Base(name)
		if !strings.HasSuffix(name, ".swf.gz") {
			continue
		}
		if strings.HasPrefix(name, "*") { // as a shell would expand it: one is enough
			name = "KTH-SP2-1996-2.1-cln.swf.gz"
		}
		path := filepath.Join(l.dir, strings.TrimSuffix(name, ".gz"))
		if err := os.WriteFile(path, weekOfJobs(), 0o600); err != nil {
			t.Fatal(err)
		}
		args[i] = cluster + path
	}
	return args
}

// weekOfJobs is a log in the Standard Workload Format.
func weekOfJobs() []byte {
	b := []byte("; MaxProcs: 128\n; UnixStartTime: 0\n")
	for i := range 2000 {
		runtime, processors := 30+i*i%7000, 1<<(i%7)
		b = fmt.Appendf(b, "%d %d 0 %d %d -1 -1 %d %d -1 1 %d 1 1 1 -1 -1 -1\n", i+1, i*300, runtime, processors, processors, 2*runtime, i%9)
	}
	return b
}
