package chaos

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/testnet/scenario/federation"
)

// shrinker looks for a script with less in it that still violates the same invariant.
type shrinker struct {
	class string // of the violation
	most  int64  // events of a trial
	small *Script
	at    grid.Time // when small violates it
	runs  int
}

// shows reports whether a listed script violates the invariant, too.
func (x *shrinker) shows(ctx context.Context, s *Script) bool {
	x.runs++
	quiet := s.copy()
	quiet.Progress, quiet.Out, quiet.Ended = nil, "", nil
	t := &trial{script: quiet, most: x.most}
	_, err := t.run(ctx)
	if err == nil || ctx.Err() != nil || classOf(err) != x.class {
		return false
	}
	x.at = t.n.Now()
	return true
}

// try keeps a script if it still shows the violation.
func (x *shrinker) try(ctx context.Context, change func(s *Script)) bool {
	s := x.small.copy()
	change(s)
	at := x.at
	if ctx.Err() != nil || !x.shows(ctx, s) {
		x.at = at
		return false
	}
	x.small = s
	return true
}

// shrink leaves out what it can until nothing more can go or the time is over: what comes
// after the violation, kinds of faults, features, faults, wishes, sites, jobs.
func (x *shrinker) shrink(ctx context.Context, within time.Duration, at grid.Time) {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	x.at = at
	for before := ""; before != x.weight() && ctx.Err() == nil; {
		before = x.weight()
		x.shorten(ctx)
		x.calm(ctx)
		fewer(ctx, x, func(s *Script) *[]Strike { return &s.Strikes })
		fewer(ctx, x, func(s *Script) *[]Wish { return &s.Wishes })
		x.narrow(ctx)
		fewer(ctx, x, func(s *Script) *[]string { return &s.Jobs })
	}
}

// weight changes with everything that is left out.
func (x *shrinker) weight() string { return x.small.size() + x.small.Faults + x.small.Features }

// shorten leaves out what comes after the violation, and then some.
func (x *shrinker) shorten(ctx context.Context) {
	needed := (x.at - federation.Warmup).Seconds() / 3600
	for _, hours := range []float64{needed + 0.01, x.small.Hours / 2, x.small.Hours * 3 / 4} {
		if hours < 0.001 || hours >= x.small.Hours {
			continue
		}
		x.try(ctx, func(s *Script) {
			s.Hours = hours
			end := federation.Warmup + s.span()
			s.Strikes = slices.DeleteFunc(s.Strikes, func(f Strike) bool { return f.At >= end })
			s.Wishes = slices.DeleteFunc(s.Wishes, func(w Wish) bool { return w.At >= end })
		})
	}
}

// calm leaves out kinds of faults, and features.
func (x *shrinker) calm(ctx context.Context) {
	for _, list := range []func(s *Script) *string{
		func(s *Script) *string { return &s.Faults }, func(s *Script) *string { return &s.Features },
	} {
		x.try(ctx, func(s *Script) { *list(s) = "none" })
		for _, name := range strings.Split(*list(x.small), ",") {
			if name == "none" {
				break
			}
			x.try(ctx, func(s *Script) {
				left := slices.DeleteFunc(strings.Split(*list(s), ","), func(n string) bool { return n == name })
				*list(s) = cmp.Or(strings.Join(left, ","), "none")
			})
		}
	}
}

// narrow leaves out the last sites, as many as it can.
func (x *shrinker) narrow(ctx context.Context) {
	for _, sites := range []int{2, 3, 4, x.small.Sites / 2, x.small.Sites * 3 / 4, x.small.Sites - 1} {
		if sites >= 1 && sites < x.small.Sites && x.try(ctx, func(s *Script) { s.within(sites) }) {
			return
		}
	}
}

// within makes it a script of its first sites.
func (s *Script) within(sites int) {
	s.Sites = sites
	strikes := s.Strikes[:0]
	for _, f := range s.Strikes {
		f.Sites = slices.DeleteFunc(slices.Clone(f.Sites), func(site int) bool { return site >= sites })
		if len(f.Sites) > 0 {
			strikes = append(strikes, f)
		}
	}
	s.Strikes = strikes
	s.Wishes = slices.DeleteFunc(s.Wishes, func(w Wish) bool { return w.Site >= sites || w.Lender >= sites })
}

// fewer leaves out parts of a list of the script: halves first, then ever smaller ones
// (Zeller and Hildebrandt 2002).
func fewer[T any](ctx context.Context, x *shrinker, list func(*Script) *[]T) {
	for part := len(*list(x.small)); part > 0; part /= 2 {
		for from := 0; from < len(*list(x.small)) && ctx.Err() == nil; {
			to := min(from+part, len(*list(x.small)))
			if !x.try(ctx, func(s *Script) {
				l := list(s)
				*l = slices.Delete(*l, from, to)
			}) {
				from = to
			}
		}
	}
}
