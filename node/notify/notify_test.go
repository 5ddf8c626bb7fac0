package notify

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gridnode/grid"
	"gridnode/node/run"
	"gridnode/node/sandbox"
	"gridnode/node/site"
)

// home is a host as far as commands are concerned, with one job that is over.
type home struct {
	testing.TB
	Config
	view site.View
	log  bytes.Buffer
	dir  string // of the job
}

func newHome(t testing.TB, command string) *home {
	h := &home{TB: t, dir: t.TempDir()}
	id, err := grid.JobIDFromBytes(bytes.Repeat([]byte{7}, 16))
	if err != nil {
		t.Fatal(err)
	}
	job := &grid.Job{ID: id, Home: "alpha", Name: "fit", Number: 12, Command: &grid.Command{Dir: h.dir}, Terms: &grid.Terms{Notify: command}}
	h.view = site.View{Job: job, State: site.Failed, Site: "beta", Start: 1, End: 2, Result: grid.Result{ExitCode: 3}, Reason: "out of\nmemory"}
	h.Config = Config{
		Self: "alpha", Files: run.Files{Home: t.TempDir()}, Log: slog.New(slog.NewTextHandler(&h.log, nil)),
		Account: func(*grid.Job) (*run.Account, error) { return nil, nil },
		View:    func(context.Context, grid.JobID) (site.View, error) { return h.view, nil },
		Over:    func(context.Context) []grid.JobID { return []grid.JobID{id} },
		Name:    func(_ context.Context, id grid.SiteID) string { return "site " + string(id) },
		Home:    func(context.Context, grid.JobID) {},
	}
	if err := h.Files.Make(); err != nil {
		t.Fatal(err)
	}
	return h
}

// calls has the job's command run, unless it has.
func (h *home) calls(ctx context.Context) {
	New(h.Config).try(ctx, call{job: h.view.Job.ID, since: time.Now()})
}

func (h *home) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(h.dir, name)) // none: nothing
	return string(text)
}

func (h *home) noted() bool {
	_, err := os.Stat(h.Files.Fetched(h.view.Job.ID) + doneMark)
	return err == nil
}

func TestCommandIsToldOfItsJob(t *testing.T) {
	h := newHome(t, `echo "$GRIDNODE_JOB_NAME $GRIDNODE_JOB_NUMBER $GRIDNODE_JOB_STATE $GRIDNODE_JOB_EXIT_CODE at $GRIDNODE_JOB_SITE: $GRIDNODE_JOB_REASON" >>said`)
	h.calls(t.Context())
	h.calls(t.Context())
	if got := h.file("said"); got != "fit 12 failed 3 at site beta: out of memory\n" || h.log.Len() > 0 {
		t.Errorf("said %q, logged %s; want one line and nothing", got, &h.log)
	}
}

// TestCommandRunsAtLeastOnce: a command that was on its way when the host stopped runs again.
func TestCommandRunsAtLeastOnce(t *testing.T) {
	h := newHome(t, `echo begun >>said; read -r line <gate; [ "$line" = go ]`)
	gate := filepath.Join(h.dir, "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	reads := func() io.WriteCloser { // returns once the command does
		pipe, err := os.OpenFile(gate, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		return pipe
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { New(h.Config).Run(ctx); close(done) }()
	pipe := reads()
	stop()
	<-done
	pipe.Close()
	if h.noted() {
		t.Fatal("noted as run although the host stopped meanwhile")
	}
	done = make(chan struct{})
	go func() { h.calls(t.Context()); close(done) }()
	pipe = reads()
	if _, err := io.WriteString(pipe, "go\n"); err != nil {
		t.Fatal(err)
	}
	pipe.Close()
	<-done
	if !h.noted() || h.log.Len() > 0 {
		t.Errorf("not noted as run: %s", &h.log)
	}
	if got := h.file("said"); got != "begun\nbegun\n" {
		t.Errorf("said %q, want that it has begun twice", got)
	}
}

func TestCommandThatFails(t *testing.T) {
	for _, tt := range []struct{ name, command, logged string }{
		{"code", "echo no mail here; exit 4", "exit status 4: no mail here"},
		{"too long", "echo waiting; sleep 1000 & wait", "ended after 300ms: waiting"},
		{"a lot to say", "i=0; while [ $i -lt 999 ]; do echo 0123456789; i=$((i+1)); done; echo last; exit 1", "last\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t, tt.command)
			h.Span = 300 * time.Millisecond
			if tt.name != "too long" {
				h.Span = time.Minute
			}
			h.calls(t.Context())
			if !strings.Contains(h.log.String(), tt.logged) || h.log.Len() > 2*tailMax || !h.noted() {
				t.Errorf("logged %s; want %q, and that it has run to be noted", &h.log, tt.logged)
			}
		})
	}
}

// TestCommandRunsAsItsOwner: with the rights of that account, from a directory that it can enter.
func TestCommandRunsAsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as other accounts")
	}
	h := newHome(t, "id -u; id -g; pwd; echo $USER; exit 1")
	h.Account = func(*grid.Job) (*run.Account, error) {
		return &run.Account{Account: sandbox.Account{User: 65534, Group: 65533}, Name: "ada"}, nil
	}
	h.calls(t.Context())
	if want := `65534\n65533\n/\nada`; !strings.Contains(h.log.String(), want) {
		t.Errorf("logged %s, want %q", &h.log, want)
	}
}

// TestNoCommandOfOthers: neither jobs of other sites nor those without a command have one.
func TestNoCommandOfOthers(t *testing.T) {
	h := newHome(t, "echo begun >said")
	h.view.Foreign = true
	h.calls(t.Context())
	c := New(h.Config)
	foreign := *h.view.Job
	foreign.Home = "beta"
	c.Note([]grid.Event{{Kind: grid.JobFinished, Job: &foreign}, {Kind: grid.JobStarted, Job: h.view.Job}, {Kind: grid.JobFinished, Job: &grid.Job{Home: "alpha"}}})
	if h.file("said") != "" || c.calls.Len() > 0 {
		t.Errorf("said %q, calls %v; want nothing", h.file("said"), c.calls)
	}
	c.Note([]grid.Event{{Kind: grid.JobRefused, Job: h.view.Job}})
	if c.calls.Len() != 1 {
		t.Error("nothing is called for a job that was refused")
	}
}
