package slurm

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/node/run"
	"gridnode/node/shim"
	"gridnode/node/site"
)

// A controller that lost what it had not saved gives numbers again: they are passed over.
func TestNumbersArePassedOver(t *testing.T) {
	dir := t.TempDir()
	counter := filepath.Join(dir, "counter")
	script := "#!/bin/sh\nn=$(cat " + counter + "); n=$((n+1)); echo $n >" + counter + "\necho \"sbatch: Job $n to start at 2026-11-22T17:00:00 using 1 processors on nodes n1 in partition main\" >&2\n"
	if err := os.WriteFile(filepath.Join(dir, "sbatch"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, tt := range []struct {
		was, want string
		highest   int64
	}{{"3", "7\n", 7}, {"7", "8\n", 7}, {"9", "10\n", 7}, {"3", "4\n", 5000}, {"3", "3", 0}} {
		if err := os.WriteFile(counter, []byte(tt.was), 0o600); err != nil {
			t.Fatal(err)
		}
		e := &Engine{ctx: t.Context(), commands: newCommands(), highest: tt.highest}
		e.passNumbers()
		e.passNumbers() // once is enough
		if got, _ := os.ReadFile(counter); string(got) != tt.want && string(got) != tt.want+"\n" {
			t.Errorf("at %s, with %d given: it came to %q, want %q", tt.was, tt.highest, got, tt.want)
		}
	}
}

// A controller whose clock differs is an error that says by how much.
func TestClocksAreCompared(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for ahead, want := range map[time.Duration]string{0: "", 2 * time.Second: "", 2 * time.Minute: "ahead", -2 * time.Minute: "behind"} {
		text := "Configuration data as of " + time.Now().Add(ahead).UTC().Format("2006-01-02T15:04:05") + "\nAccountingStorageBackupHost = (null)\n"
		if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\ncat <<'EOT'\n"+text+"EOT\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := (&Engine{commands: newCommands()}).clocks(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v ahead: %v", ahead, err)
		}
	}
}

// What Slurm says of a job that it has begun before, or has lost sight of, and what its shim has
// written make one end, and cancel nothing that runs.
func TestAJobThatSlurmWouldBeginAgain(t *testing.T) {
	by := func(cause shim.Cause, code int32) *shim.Ended {
		return &shim.Ended{ID: "x", Cause: cause, ExitCode: code, Start: grid.Second, End: 2 * grid.Second}
	}
	for _, tt := range []struct {
		name, state, exit string
		silent            bool
		end               *shim.Ended
		over, lost        bool
		code              int32
		cancelled, held   bool // in Slurm
	}{
		{name: "it has ended", state: "PENDING", end: by(shim.CauseExit, 3), over: true, code: 3, cancelled: true},
		{name: "it runs", state: "PENDING", held: true},
		{name: "it was killed", state: "PENDING", silent: true, over: true, lost: true, cancelled: true},
		{name: "it was put back", state: "REQUEUED", end: by(shim.CauseKill, 143), over: true, lost: true, code: 143, cancelled: true},
		{name: "its end is on its way", state: "COMPLETED"},
		{name: "its end is on its way, with a code", state: "FAILED", exit: "3:0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			exit := tt.exit
			if exit == "" {
				exit = "0:0"
			}
			for name, text := range map[string]string{
				"scontrol": "[ $1 = hold ] && { echo >>" + dir + "/held; exit; }; echo 'JobId=7 JobName=gridnode-x JobState=" + tt.state + " Reason=None ExitCode=" + exit + " StartTime=2030-01-01T00:00:00 EndTime=Unknown'",
				"scancel":  "echo \"$@\" >>" + dir + "/cancelled",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			var ends []*run.Ended
			k := &keeper{Engine: &Engine{
				ctx: t.Context(), commands: newCommands(), orders: orders{t.TempDir()}, log: slog.New(slog.DiscardHandler),
				ended: func(e *run.Ended) { ends = append(ends, e) }, room: func(*site.Room) {}, ways: newWays(orders{}, nil),
			}}
			began := k.orders.path("x", ".gone.7")
			if err := os.WriteFile(began, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.silent {
				if err := os.Chtimes(began, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.end != nil {
				text, err := json.Marshal(tt.end)
				if err == nil {
					err = os.WriteFile(k.orders.path("x", ".end"), text, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			j := &job{name: "x", id: "7"}
			k.ask(j)
			j.looked = time.Time{}
			k.ask(j) // once is enough
			switch {
			case !tt.over && len(ends) > 0:
				t.Errorf("its end is told: %+v", ends[0])
			case tt.over && (len(ends) != 1 || ends[0].Lost != tt.lost || ends[0].Result.ExitCode != tt.code || ends[0].Result.Start > grid.Time(time.Now().UnixMicro())):
				t.Errorf("told: %+v", ends)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "cancelled")); (err == nil) != tt.cancelled {
				t.Errorf("scancel was called with %q", text)
			}
			if _, err := os.Stat(filepath.Join(dir, "held")); (err == nil) != tt.held {
				t.Errorf("held: %v, want %t", err, tt.held)
			}
		})
	}
}

// Of two submissions of one job the one that waits beside the other is cancelled; files of what is
// over stay as long as Slurm lists it.
func TestASecondSubmissionIsCancelled(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scancel"), []byte("#!/bin/sh\necho \"$@\" >>"+dir+"/cancelled\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	k := &keeper{Engine: &Engine{
		cfg: Config{linger: time.Nanosecond}, ctx: t.Context(), commands: newCommands(), orders: orders{t.TempDir()}, log: slog.New(slog.DiscardHandler),
		jobs:    map[run.Process]*job{{}: {name: "x", id: "7"}},
		lingers: map[string]lingering{"old": {id: "3"}, "listed": {id: "4"}},
	}}
	for _, name := range []string{"old", "listed"} {
		if err := os.WriteFile(k.orders.path(name, ".order"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.tidy([]listed{
		{id: "4", state: Running, name: "gridnode-listed"}, {id: "5", state: Waiting, name: "gridnode-listed"}, {id: "7", state: Running, name: "gridnode-x"}, {id: "8", state: Waiting, name: "gridnode-x"},
		{id: "9", state: Running, name: "gridnode-x"}, {id: "10", state: Waiting, name: "gridnode-y"},
	})
	if text, _ := os.ReadFile(filepath.Join(dir, "cancelled")); string(text) != "--state=PENDING 5\n--state=PENDING 8\n" {
		t.Errorf("scancel was called with %q, want 5 and 8, if they wait", text)
	}
	if names, err := k.orders.all(); err != nil || len(names) != 1 || names[0] != "listed" || len(k.lingers) != 1 {
		t.Errorf("left: %q, %v, %v", names, k.lingers, err)
	}
}

// A poll that has taken as long as commands wait for a controller that is being restarted says that
// it may have been: numbers that it gave before are passed over then.
func TestASlowPollMayHaveMetARestart(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for pause, want := range map[string]bool{"0": true, "1.1": false} {
		for name, text := range map[string]string{"squeue": "sleep " + pause, "sinfo": "echo 0/4/0/4"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		told := 0
		k := &keeper{Engine: &Engine{
			ctx: t.Context(), commands: newCommands(), orders: orders{t.TempDir()}, log: slog.New(slog.DiscardHandler), numbered: true,
			room: func(*site.Room) { told++ },
		}}
		p := k.poll()
		k.take(p)
		if p.took < time.Second && k.numbered != want || p.took >= time.Second && k.numbered || told != 1 {
			t.Errorf("after %v: numbered %t, told %d times", p.took, k.numbered, told)
		}
	}
}
