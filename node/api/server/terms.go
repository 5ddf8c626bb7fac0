package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/site"
)

// terms returns when a job may be placed, nil if at once. Dependencies stand in spec by full IDs.
func (by *submitter) terms(spec *api.JobSpec) (*grid.Terms, error) {
	t := &grid.Terms{
		Held: spec.Hold, Drop: spec.DropUnmet, Retries: spec.Retries, Once: spec.NoRequeue, Lease: grid.Time(spec.Lease), Notify: spec.Notify, Nice: spec.Nice,
	}
	if err := parseDependency(spec.Dependency, t); err != nil {
		return nil, fmt.Errorf("dependency: %w", err)
	}
	for _, path := range []string{spec.Output, spec.Error} {
		if path != "" && !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("output and error: %q is not an absolute path", path)
		}
	}
	switch {
	case spec.Output != "" && !by.writes:
		return nil, fmt.Errorf("output: the daemon runs as another account than %s, so it writes no files for you: use the logs", by.user)
	case spec.Notify != "" && !by.writes:
		return nil, fmt.Errorf("notify: the daemon runs as another account than %s, so it runs no command for you", by.user)
	case spec.Error != "" && spec.Output == "":
		return nil, errors.New("error: without output there is no file for it")
	case spec.Begin != 0 && spec.BeginIn != 0:
		return nil, errors.New("begin and beginIn exclude each other")
	case spec.BeginIn < 0 || grid.Time(spec.BeginIn) > grid.SpanMax/2:
		return nil, fmt.Errorf("beginIn: %v, want more than 0", grid.Time(spec.BeginIn))
	case spec.BeginIn > 0:
		t.Begin = by.now + grid.Time(spec.BeginIn)
	case spec.Begin > 0:
		t.Begin = grid.Time(spec.Begin)
	}
	if s := spec.Signal; s != nil {
		t.Signal = grid.Signal{Number: s.Number, Before: grid.Time(s.Before), First: s.First}
		if s.Number < 1 || s.Before < 0 {
			return nil, fmt.Errorf("signal: %d, %v before the limit: want 1 to %d and at least 0", s.Number, grid.Time(s.Before), grid.SignalMax)
		}
	}
	switch {
	case spec.Lease < 0, spec.NoLease && spec.Lease != 0:
		return nil, fmt.Errorf("lease: want at least %v, or noLease, not both", grid.LeaseMin)
	case spec.NoLease:
		t.Lease = grid.NoLease
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	if len(t.After) == 0 && !t.Singleton && !t.Held && t.Begin == 0 && t.Retries == 0 && !t.Once && t.Signal == (grid.Signal{}) && t.Lease == 0 && t.Notify == "" && t.Nice == 0 {
		return nil, nil
	}
	return t, nil
}

// parseDependency reads what jobs a job waits for, as Slurm writes it, with full IDs.
func parseDependency(text string, t *grid.Terms) error {
	if text == "" {
		return nil
	}
	separator := ","
	if strings.Contains(text, "?") {
		if strings.Contains(text, ",") {
			return fmt.Errorf("%q: want all of them (,) or one of them (?), not both", text)
		}
		separator, t.Any = "?", true
	}
	for part := range strings.SplitSeq(text, separator) {
		name, rest, listed := strings.Cut(part, ":")
		if name == "singleton" && !listed {
			t.Singleton = true
			continue
		}
		if name == afterCorr { // of an array as of a job: elements is more precise
			name = grid.AfterOK.String()
		}
		condition, err := grid.ParseCondition(name)
		switch {
		case err != nil:
			return fmt.Errorf("%w, or singleton", err)
		case !listed || rest == "":
			return fmt.Errorf("%q names no job: want %s:ID[:ID]", part, name)
		}
		for text := range strings.SplitSeq(rest, ":") {
			id, err := grid.ParseJobID(text)
			if err != nil {
				return err
			}
			t.After = append(t.After, grid.Dependency{Condition: condition, Job: id})
		}
	}
	if t.Any && t.Singleton {
		return fmt.Errorf("%q: singleton is no choice", text)
	}
	return nil
}

// afterCorr is the condition by which each job of an array waits for the one of another
// array that has its index.
const afterCorr = "aftercorr"

// elements returns the terms of the job of an array that has an index.
func elements(t *grid.Terms, dependency string, index int64) *grid.Terms {
	if t == nil || !strings.Contains(dependency, afterCorr) {
		return t
	}
	own := *t
	own.After = slices.Clone(t.After)
	at := 0
	for part := range strings.FieldsFuncSeq(dependency, func(r rune) bool { return r == ',' || r == '?' }) {
		name, rest, _ := strings.Cut(part, ":")
		if name == "singleton" {
			continue
		}
		for range strings.Split(rest, ":") {
			if name == afterCorr {
				own.After[at].Job = arrayJobID(own.After[at].Job, index)
			}
			at++
		}
	}
	return &own
}

// corresponds returns an error unless what "aftercorr" names are arrays that have a job for
// each index.
func (a changer) corresponds(ctx context.Context, spec *api.JobSpec) (err error) {
	for part := range strings.FieldsFuncSeq(spec.Dependency, func(r rune) bool { return r == ',' || r == '?' }) {
		name, rest, _ := strings.Cut(part, ":")
		if name != afterCorr || spec.Array == nil {
			continue
		}
		for text := range strings.SplitSeq(rest, ":") {
			array, _ := grid.ParseJobID(text) // it was made by resolve
			failed := a.host.Do(ctx, func(s *site.Site) {
				for _, index := range spec.Array {
					if _, known := s.Glance(arrayJobID(array, index)); !known {
						err = errorf(api.CodeUsage, "dependency: aftercorr: the other job is no array with a job of index %d", index)
						return
					}
				}
			})
			if err = errors.Join(err, failed); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve replaces what users call jobs in a dependency by their full IDs, and an array
// by its own.
func (a changer) resolve(ctx context.Context, dependency string) (string, error) {
	if dependency == "" {
		return "", nil
	}
	var out strings.Builder
	for rest := dependency; rest != ""; {
		i := strings.IndexAny(rest, ":,?")
		word := rest
		if i >= 0 {
			word = rest[:i]
		}
		id := out.Len() > 0 && strings.HasSuffix(out.String(), ":")
		if !id {
			out.WriteString(word)
		} else if err := a.resolveOne(ctx, word, &out); err != nil {
			return "", errorf(api.CodeUsage, "dependency: %v", err)
		}
		if i < 0 {
			break
		}
		out.WriteByte(rest[i])
		rest = rest[i+1:]
	}
	return out.String(), nil
}

func (a changer) resolveOne(ctx context.Context, text string, out *strings.Builder) error {
	if strings.HasPrefix(text, "+") {
		return fmt.Errorf("%q: a pause after the other job is not possible", text)
	}
	ids, err := a.identify(ctx, []string{text})
	if err != nil {
		return err
	}
	if len(ids) == 1 {
		out.WriteString(ids[0].String())
		return nil
	}
	var array grid.JobID
	err = a.host.Do(ctx, func(s *site.Site) {
		if v, known := s.Glance(ids[0]); known && v.Job.Array != nil {
			array = v.Job.Array.ID
		}
	})
	out.WriteString(array.String())
	return err
}

// arrayOf returns what the jobs of an array have in common as its members.
func arrayOf(id grid.JobID, spec *api.JobSpec) grid.Array {
	a := grid.Array{ID: id, Count: int64(len(spec.Array)), Min: slices.Min(spec.Array), Max: slices.Max(spec.Array), Step: 1, Most: spec.ArrayMost}
	if n := len(spec.Array); n > 1 {
		if step := spec.Array[1] - spec.Array[0]; step > 0 && spec.Array[n-1]-spec.Array[0] == step*int64(n-1) {
			a.Step = step
		}
	}
	return a
}

// setTerms adds what users see of the terms of a job.
func setTerms(out *api.Job, j *grid.Job) {
	if a := j.Array; a != nil {
		out.ArrayNumber, out.ArrayIndex, out.ArrayMost = a.Number, &a.Index, a.Most
	}
	t := j.Terms
	if t == nil {
		return
	}
	out.Begin, out.Retries, out.Notify, out.Nice = api.Instant(t.Begin), t.Retries, t.Notify, t.Nice
	var parts []string
	for _, d := range t.After {
		parts = append(parts, d.Condition.String()+":"+d.Job.String())
	}
	if t.Singleton {
		parts = append(parts, "singleton")
	}
	separator := ","
	if t.Any {
		separator = "?"
	}
	out.Dependency = strings.Join(parts, separator)
}
