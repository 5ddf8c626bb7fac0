package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gridnode/grid"
	"gridnode/node/kept"
	"gridnode/node/run"
	"gridnode/node/site"
)

// TestLogsSayThatTheyAreCut: of a job here, of one on a leased processor, and of one with
// components, whose outputs are one; and nothing is said of what is whole.
func TestLogsSayThatTheyAreCut(t *testing.T) {
	t.Parallel()
	hosts := teamAs(t, func(i int, cfg *HostConfig) {
		if i == 0 {
			cfg.Files.Log = 4096 // of what comes from elsewhere: the engine here has the default
		}
	}, 1, 2)
	home := hosts[0]
	lines := "i=0; while [ $i -lt %; do echo a line of some length $i; i=$((i+1)); done"
	whole, long := strings.Replace(lines, "%", "10 ]", 1), strings.Replace(lines, "%", "400 ]", 1)
	blocker := scriptJob(home, 1, "sleep 1000")
	submitJob(t, home, blocker)
	if a := borrowFrom(t, home, hosts[1], 1, grid.Hour); a.Err != nil {
		t.Fatal(a.Err)
	}
	for _, tt := range []struct {
		name string
		job  *grid.Job
		cut  bool
	}{
		{"leased, whole", scriptJob(home, 2, whole), false},
		{"leased, cut", scriptJob(home, 3, long), true},
		{"components, each of which fits", dividedJob(hosts, 4, strings.Replace(lines, "%", "100 ]", 1), 1, 1), true},
	} {
		if tt.job.Coallocate != nil {
			cancel1(t, home, blocker)
		}
		submitJob(t, home, tt.job)
		until(t, "it is over", func() bool { return stateOf(t, home, tt.job).State.Terminal() })
		v := stateOf(t, home, tt.job)
		text := readOutput(t, home, tt.job, run.Stdout)
		note := kept.Note(4096)
		cut := OutputCut(home, &v)
		switch {
		case v.State != site.Done:
			t.Fatalf("%s: %v: %s", tt.name, v.State, v.Reason)
		case tt.cut && (!strings.HasSuffix(text, note) || len(text) != 4096+len(note) || len(cut) != 1 || cut[0] != run.Stdout):
			t.Errorf("%s: %d bytes that end with %q, cut: %v", tt.name, len(text), text[max(len(text)-100, 0):], cut)
		case !tt.cut && (strings.Contains(text, "gridnode:") || cut != nil || len(text) == 0):
			t.Errorf("%s: %d bytes, cut: %v", tt.name, len(text), cut)
		}
	}
}

// TestOutputThatIsNotWhatItWas: of an output that was cut short or damaged on its disk what is there is
// handed out, and then said what is wrong with it, wherever the job ran; nothing is said of one that is whole.
func TestOutputThatIsNotWhatItWas(t *testing.T) {
	t.Parallel()
	var configs []HostConfig
	hosts := teamAs(t, func(_ int, cfg *HostConfig) { configs = append(configs, *cfg) }, 2, 2)
	home, other := hosts[0], hosts[1]
	const script = "echo to be read; echo trouble >&2"
	own, long := scriptJob(home, 1, script), scriptJob(home, 2, script+"; head -c 2000000 /dev/zero")
	away := shellJob(home, 3, script)
	away.Site = other.ID()
	gang := dividedJob(hosts, 4, script, 1, 1)
	over := func(jobs ...*grid.Job) {
		t.Helper()
		for _, j := range jobs {
			submitJob(t, home, j)
			until(t, "it is over", func() bool { return stateOf(t, home, j).State.Terminal() })
			if v := stateOf(t, home, j); v.State != site.Done {
				t.Fatalf("%v: %s", v.State, v.Reason)
			}
		}
	}
	over(own, long, away, gang)
	until(t, "the output is home", func() bool { return home.files.HasFetched(away.ID) })

	blocker := scriptJob(home, 5, "sleep 1000")
	blocker.Processors, blocker.Tasks = 2, 2
	submitJob(t, home, blocker)
	if a := borrowFrom(t, home, other, 1, grid.Hour); a.Err != nil {
		t.Fatal(a.Err)
	}
	leased := scriptJob(home, 6, script)
	over(leased)
	cancel1(t, home, blocker)
	awaitState(t, home, blocker.ID, site.CancelledByUser)

	adopted := scriptJob(home, 7, script+"; read line <"+fifo(t))
	submitJob(t, home, adopted)
	until(t, "it writes", func() bool { return readOutput(t, home, adopted, run.Stderr) != "" })
	closeHost(t, home)
	home = realHost(t, configs[0])
	if err := os.WriteFile(strings.TrimPrefix(adopted.Command.Args[2], script+"; read line <"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	awaitState(t, home, adopted.ID, site.Done)

	for _, tt := range []struct {
		name string
		job  *grid.Job
		far  bool // more is not read by who asks for the job
	}{{"own", own, false}, {"long", long, true}, {"elsewhere", away, false}, {"gang", gang, false}, {"leased", leased, false}, {"adopted", adopted, false}} {
		t.Run(tt.name, func(t *testing.T) {
			v := stateOf(t, home, tt.job)
			base := home.files.Task(home.ID(), grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch})
			if v.Site != home.ID() {
				base = home.files.Fetched(v.Job.ID)
			}
			whole, err := os.ReadFile(base + run.Stdout.Suffix())
			if err != nil || len(whole) == 0 {
				t.Fatal(err)
			}
			read := func(follow bool) (string, error) {
				t.Helper()
				r, err := home.Output(t.Context(), v.Job.ID, run.Stdout, follow)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				text, err := io.ReadAll(r)
				return string(text), err
			}
			flipped := slices.Clone(whole)
			flipped[3] ^= 4
			for _, kind := range []struct {
				text []byte
				err  error
				said string
				loss Loss
			}{
				{whole, nil, "", Loss{}},
				{whole[:5], run.ErrOutputShort, fmt.Sprintf("output is missing %d bytes of its stdout", len(whole)-5), Loss{Missing: int64(len(whole) - 5)}},
				{flipped, run.ErrOutputChanged, "output is damaged: its stdout", Loss{Changed: !tt.far}},
			} {
				if err := os.WriteFile(base+run.Stdout.Suffix(), kind.text, 0o600); err != nil {
					t.Fatal(err)
				}
				for _, follow := range []bool{false, true} {
					if text, err := read(follow); text != string(kind.text) || !errors.Is(err, kind.err) || err != nil && !strings.Contains(err.Error(), kind.said) {
						t.Errorf("follow %v: %d bytes read, want %d, and %v, want %v", follow, len(text), len(kind.text), err, kind.err)
					}
				}
				if losses := OutputLosses(home, &v); losses != [2]Loss{kind.loss, {}} {
					t.Errorf("lost are %+v, want %+v of its standard output", losses, kind.loss)
				}
			}
		})
	}
}

// fifo makes a pipe that has a name.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
