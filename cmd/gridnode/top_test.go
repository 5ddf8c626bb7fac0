package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// someOverview has jobs of every stage and, in the name of one, what a terminal would obey.
func someOverview() *overview {
	o := &overview{Site: "alpha", Certain: true, Sites: []api.SiteInfo{{Name: "beta", Processors: 8, Free: 3}, {Name: "alpha", Processors: 4, Free: 4}}}
	for i, state := range []string{"done", "queued", "running", "failed"} {
		o.Jobs = append(o.Jobs, api.Job{ID: fmt.Sprintf("job%d5678", i), Name: "\x1b[2Jn" + state, State: state, End: api.Instant(i)})
	}
	o.sort()
	return o
}

func typed(s *topScreen, keys ...tea.Key) (last tea.Cmd) {
	for _, k := range keys {
		_, last = s.Update(tea.KeyPressMsg(k))
	}
	return last
}

func TestTopScreen(t *testing.T) {
	s := &topScreen{take: func() (*overview, error) { return nil, errors.New("daemon is away") }, shown: someOverview(), every: time.Hour}
	if s.lines() != nil {
		t.Error("lines for a terminal of unknown size")
	}
	for _, size := range []tea.WindowSizeMsg{{Width: 120, Height: 24}, {Width: 20, Height: 6}, {Width: 1, Height: 1}, {Width: 3, Height: 2}} {
		s.Update(size)
		lines := s.lines()
		if len(lines) != size.Height {
			t.Errorf("%d lines on a terminal of %d", len(lines), size.Height)
		}
		for _, line := range lines {
			if ansi.StringWidth(line) > size.Width || strings.Contains(line, "\x1b[2J") {
				t.Errorf("line %q on a terminal %d wide", line, size.Width)
			}
		}
	}
	s.Update(tea.WindowSizeMsg{Width: 120, Height: 24})
	shows := func(want ...string) {
		t.Helper()
		rest := ansi.Strip(s.View().Content)
		for _, text := range want {
			_, after, found := strings.Cut(rest, text)
			if !found {
				t.Fatalf("no %q, in the order of %q, in:\n%s", text, want, s.View().Content)
			}
			rest = after
		}
	}
	shows("2 sites, 7 of 12 processors free", "1 run, 1 wait, 2 over", "alpha", "beta", "job2", "job1", "job3", "job0", "q end")
	typed(s, tea.Key{Code: tea.KeyDown})
	if shows("job1", "job3"); strings.Contains(s.View().Content, "job2") {
		t.Error("the first job is shown still")
	}
	typed(s, tea.Key{Code: 'o', Text: "o"})
	if shows("2 sites", "job2", "job1"); strings.Contains(s.View().Content, "job3") {
		t.Error("a job that is over is shown still")
	}
	look := typed(s, tea.Key{Code: 'r', Text: "r"})
	if again := typed(s, tea.Key{Code: 'r', Text: "r"}); again != nil {
		t.Error("looks again before the first answer")
	}
	if _, next := s.Update(look()); next == nil {
		t.Error("does not look again after a failure")
	}
	shows("daemon is away", "job2")
	if _, next := s.Update(due{s.looks - 1}); next != nil {
		t.Error("looks for a time that another look came before")
	}
	s.rounds = s.looks + 2
	_, look = s.Update(due{s.looks})
	if _, next := s.Update(look()); next == nil || next() != tea.Quit() {
		t.Error("goes on after the last round")
	}
	if quit := typed(s, tea.Key{Code: 'q', Text: "q"}); quit == nil || quit() != tea.Quit() {
		t.Error("q does not end it")
	}
}

// TestTopPrinted: as often as is said, each time as a value of its own.
func TestTopPrinted(t *testing.T) {
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetOut(&out)
	looks := 0
	take := func() (*overview, error) { looks++; return someOverview(), nil }
	if err := printTop(cmd, listing{format: formatJSON}, take, time.Microsecond, 2); err != nil || looks != 2 {
		t.Fatalf("%d looks, %v", looks, err)
	}
	decoder := json.NewDecoder(&out)
	for range 2 {
		var o overview
		if err := decoder.Decode(&o); err != nil || len(o.Jobs) != 4 || o.Jobs[0].State != "running" {
			t.Fatalf("%+v, %v", o, err)
		}
	}
}
