package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gridnode/grid"
	"gridnode/node/api"
)

// dataSet is a file that gangs read, copied to where they run.
type dataSet struct{ name, digest string }

// share has a site hold data sets that others may copy.
func (w *world) share(ctx context.Context, s *site) error {
	for i := range 3 {
		text := w.text(1_000_000)
		d := dataSet{fmt.Sprintf("set-%d", i), digest(text)}
		path := filepath.Join(w.plan.dir, d.name)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		if err := s.ok(ctx, "dataset", "add", "--share", d.name, path); err != nil {
			return err
		}
		w.sets = append(w.sets, d)
	}
	return nil
}

// text returns bytes that are drawn, at least one and fewer than most.
func (w *world) text(most int) []byte {
	text := make([]byte, 1+w.random.IntN(most-1))
	for i := range text {
		text[i] = byte(w.random.UintN(256))
	}
	return text
}

// digest is what jobs write of their inputs.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16]
}

// submit gives a site a job, drawn from all that there are: at home, at another site, by price,
// spread, a gang, with files. A job that the site did not accept is nobody's.
func (w *world) submit(ctx context.Context) error {
	r := w.random
	s := w.sites[r.IntN(len(w.sites))]
	other := w.sites[r.IntN(len(w.sites))]
	rec := &record{ID: w.newID().String(), Home: s.name, Tasks: 1, Input: digest(nil)}
	if r.IntN(4) == 0 {
		rec.Code = int32(1 + r.IntN(3))
	}
	spec := api.JobSpec{ID: rec.ID, Time: api.Seconds(2 * grid.Minute), Lease: api.Seconds(15 * grid.Second), Args: []string{"sh", "-c", w.ledger.script(0.2+3*r.Float64(), rec.Code)}}
	kind := r.IntN(7)
	switch kind {
	case 0: // at home, if it is not lent what it lacks
	case 1:
		spec.Site = other.name
	case 2, 3:
		budget := api.Amount(10 * grid.Credit)
		spec.Policy, spec.Budget = []string{"cheapest", "fastest"}[kind-2], &budget
	case 4:
		rec.Tasks, spec.Tasks, spec.Spread = 2, 2, true
	case 5:
		rec.Tasks, spec.Tasks = 2, 2
		spec.Coallocation = &api.Coallocation{Components: "1@b,1@c"}
		if i := r.IntN(2 * len(w.sets)); i < len(w.sets) {
			spec.Inputs, rec.Input = []api.DataInput{{Name: w.sets[i].name}}, w.sets[i].digest
			w.out.note("gang that reads a data set")
		}
	case 6:
		return w.submitFiles(ctx, s, other, rec, spec)
	}
	w.out.note([]string{"local", "named", "cheapest", "fastest", "spread", "gang"}[kind])
	for range 20 { // who does not know whether it came asks again, with the same ID
		_, err := s.client.Submit(ctx, []api.JobSpec{spec})
		if err == nil {
			w.add(rec)
			return nil
		}
		if e := new(api.Error); errors.As(err, &e) {
			w.out.note("not accepted: " + e.Code)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.again(); err != nil {
			return err
		}
	}
	w.out.note("no answer")
	return nil
}

func (w *world) add(r *record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, r)
}

func (w *world) newID() (id grid.JobID) {
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte(w.random.UintN(256))
	}
	id, _ = grid.JobIDFromBytes(b)
	return id
}

// submitFiles gives a site a job that brings a file along and leaves a copy of it.
func (w *world) submitFiles(ctx context.Context, s, other *site, rec *record, spec api.JobSpec) error {
	text := w.text(300_000)
	dir := filepath.Join(w.plan.dir, "work", rec.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	input := filepath.Join(dir, "input")
	if err := os.WriteFile(input, text, 0o600); err != nil {
		return err
	}
	rec.Input, rec.Copied, rec.dir = digest(text), true, dir
	w.out.note("files")
	cmd := s.command(ctx, append([]string{"submit", "-q", "-t", "2m", "--lease", "15s", "--site", other.name, "-D", dir, "--in", input + "=input", "--out", "output", "--"}, spec.Args...)...)
	cmd.Env = append(cmd.Env, "PWD="+dir)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil { // who knows whether it came: nobody was told so
		w.out.note("not accepted")
		return ctx.Err()
	}
	rec.ID = strings.TrimSpace(string(out))
	if _, err := grid.ParseJobID(rec.ID); err != nil {
		return fmt.Errorf("submit says %q: %w", out, err)
	}
	w.add(rec)
	return nil
}

// lease has a site borrow of another.
func (w *world) lease(ctx context.Context) {
	s, other := w.sites[1+w.random.IntN(2)], w.sites[w.random.IntN(3)]
	if s == other {
		return
	}
	if _, err := s.client.RequestLease(ctx, api.LeaseRequest{Site: other.name, Processors: 1, Time: api.Seconds(20 * grid.Second)}); err == nil {
		w.out.note("lease")
	}
}

// look fills in what a job's home says of it.
func (w *world) look(ctx context.Context, r *record) error {
	s := w.siteOf(r.Home)
	reply, err := s.client.Jobs(ctx, url.Values{"id": {r.ID}, "all": {"true"}})
	if e := new(api.Error); err != nil && !errors.As(err, &e) {
		return err
	}
	if err != nil || len(reply.Jobs) != 1 {
		return nil
	}
	j := reply.Jobs[0]
	r.Known, r.Over, r.State, r.Exit, r.Epoch, r.Reason = true, j.Over(), j.State, j.ExitCode, j.Epoch, j.Reason
	if j.State != "done" && j.State != "failed" {
		return nil
	}
	var text bytes.Buffer
	if err := s.client.Logs(ctx, r.ID, nil, &text); err != nil {
		text.WriteString("\n" + err.Error())
	}
	r.Output = text.String()
	if r.Copied {
		return w.lookCopy(ctx, s, r)
	}
	return nil
}

// lookCopy reads what came home of it.
func (w *world) lookCopy(ctx context.Context, s *site, r *record) error {
	if _, err := s.client.JobFiles(ctx, r.ID, true); err != nil {
		r.Reason += "; files: " + err.Error()
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "output"))
	if err != nil {
		r.Result = err.Error()
		return nil
	}
	r.Result = digest(text)
	return nil
}
