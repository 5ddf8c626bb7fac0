package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gridnode/test/realsite"
)

// leakPatience is how long what is under way may take to come back once all jobs are over: a
// lease as long as its term, a cheque as long as its bank is asked for it.
const leakPatience = 2 * time.Minute

// leaks notes what has not come back: processors, leases, credits, processes, files.
func (w *world) leaks(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, leakPatience)
	defer cancel()
	var left []string
	_ = realsite.Until(wait, time.Second, func() (bool, error) {
		left = w.left(wait)
		return len(left) == 0, nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.out.Broken = append(w.out.Broken, left...)
	return nil
}

// left returns what is not back at the moment.
func (w *world) left(ctx context.Context) (left []string) {
	add := func(format string, args ...any) { left = append(left, "leak: "+fmt.Sprintf(format, args...)) }
	for _, s := range w.sites {
		sites, err := s.client.Sites(ctx)
		if err != nil {
			add("site %s does not answer: %v", s.name, err)
			continue
		}
		for _, other := range sites.Sites {
			if other.Self && other.Free != s.processors {
				add("%d of %d processors of site %s are free with no job there", other.Free, s.processors, s.name)
			}
		}
		leases, err := s.client.Leases(ctx, "")
		if err != nil {
			add("site %s does not tell its leases: %v", s.name, err)
			continue
		}
		for _, l := range leases.Leases {
			add("site %s has lease %d, %s, %s", s.name, l.Number, l.Direction, l.State)
		}
		for _, name := range scratch(s, w.over()) {
			add("site %s has left %s of a job that is over", s.name, name)
		}
	}
	for _, p := range w.processes("") {
		if p.what == "job" {
			add("process %d of job %s is alive", p.pid, p.job)
		}
	}
	return append(left, w.books(ctx)...)
}

// over returns the IDs of the jobs that are over.
func (w *world) over() map[string]bool {
	ids := map[string]bool{}
	for _, r := range w.jobs {
		if r.Over {
			ids[r.ID] = true
		}
	}
	return ids
}

// scratch returns what a site has of the working directories of jobs that are over. Outputs are kept.
func scratch(s *site, over map[string]bool) (left []string) {
	for _, pattern := range []string{s.home + "/tasks/*", s.home + "/foreign/*/*", s.scratch() + "/*", s.scratch() + "/foreign/*/*"} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			id, _, _ := strings.Cut(filepath.Base(name), ".")
			if info, err := os.Stat(name); err == nil && info.IsDir() && over[id] {
				left = append(left, name)
			}
		}
	}
	return left
}

// books returns what is wrong with the bank's.
func (w *world) books(ctx context.Context) []string {
	bank := w.sites[0]
	reply, err := bank.client.BankBalance(ctx, url.Values{"all": {"true"}})
	if err != nil {
		return []string{"leak: the bank does not answer: " + err.Error()}
	}
	var accounts []account
	paid := map[string]int{}
	for _, a := range reply.Accounts {
		accounts = append(accounts, account{int64(a.Settled), int64(a.Committed)})
		statement, err := bank.client.BankStatement(ctx, url.Values{"account": {a.Account}, "limit": {"1000"}})
		if err != nil {
			continue // of who has none
		}
		for _, e := range statement.Entries {
			if e.Kind == "redeem" && e.Settled > 0 && e.Job != "" {
				paid[fmt.Sprintf("execution %d of job %s", e.Epoch, e.Job)]++
			}
		}
	}
	return judgeMoney(accounts, paid)
}

// defects returns lines of the daemons' logs that say that something in them is wrong.
func (w *world) defects() (lines []string) {
	for _, s := range w.sites {
		text, _ := os.ReadFile(s.log())
		for line := range strings.Lines(string(text)) {
			for _, word := range []string{"panic:", "a defect", "DATA RACE"} {
				if strings.Contains(line, word) {
					lines = append(lines, "defect: the log of site "+s.name+" has "+strings.TrimSpace(line))
				}
			}
		}
	}
	return lines
}
