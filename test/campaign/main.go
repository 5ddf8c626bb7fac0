// Command campaign damages real sites, time and again, and looks whether anything that they
// promise was broken: daemons, watchers and jobs are killed, disks lose what was not flushed,
// stored files are damaged, networks fall apart, memory, descriptors and clocks go wrong, programs
// are exchanged by others.
//
// Each kind of damage has a file of its own here. What came of each round is a line of a file
// of results, and the next run goes on where the last one stopped. It prints a table in the end.
// It needs root, and touches nothing but its own processes, namespaces and files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gridnode/internal/checkout"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	broken, err := campaign(ctx)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(2)
	case broken > 0:
		os.Exit(1)
	}
}

// kind is a kind of damage.
type kind struct {
	name   string
	strike string        // what is counted
	want   int           // strikes of a whole campaign
	each   int           // strikes of a round at most
	most   time.Duration // of a round: what takes longer hangs
	round  func(ctx context.Context, p *plan) (*outcome, error)
}

// kinds are all of them, in the order in which they come.
var kinds = []kind{
	{"kills", "kills of daemons, watchers and jobs", 2000, 40, roundMost, kills},
	{"cuts", "power cuts", 300, 24, roundMost, cuts},
	{"damage", "damages to stored files", 1000, 100, roundMost, damages},
	{"partitions", "partitions", 300, 24, roundMost, partitions},
	{"exhaustion", "shortages of memory and descriptors", 60, 12, roundMost, exhaustions},
	{"clock", "steps of a clock", 60, 12, roundMost, clocks},
	{"versions", "exchanges of a program by another version", 300, 24, roundMost, versions},
	{"soak", "minutes of load", 24 * 60, 6 * 60, soakMost + roundMost, soak},
}

// plan is what a round is told.
type plan struct {
	program string // gridnode
	source  string // root of the tree
	dir     string // of the round: empty, removed when nothing was broken
	commit  string
	former  string // revision of the former version, as the command line names it
	seed    uint64
	strikes int // at most so many
}

// campaign does what the command line says, and returns how many promises were broken.
func campaign(ctx context.Context) (broken int, err error) {
	program := flag.String("gridnode", "bin/gridnode", "the program")
	only := flag.String("only", "", "kinds of damage, with commas; all if empty")
	n := flag.Int("n", 0, "strikes of each kind, with those in the file of results; 0: those of a whole campaign")
	seed := flag.Uint64("seed", 1, "of the first round; each round has one of its own")
	file := flag.String("results", "test/campaign/results.jsonl", "file of results, a line each round; the one of the tree is kept with it")
	again := flag.Bool("again", false, "first run the rounds that broke a promise once more, each in place of what came of it")
	span := flag.Duration("for", 0, "stop after the round in which this has passed; 0: when all is done")
	abreast := flag.Int("abreast", 1, "rounds at a time")
	former := flag.String("former", "", "revision of the program that kind versions exchanges with this one; the last released one if empty, or "+formerDefault)
	format := flag.String("o", "table", "table or json")
	show := flag.Bool("show", false, "only print what the file of results has")
	flag.Parse()
	chosen, err := choose(*only)
	if err != nil {
		return 0, err
	}
	printed, ok := formats[*format]
	if !ok || flag.NArg() > 0 {
		return 0, fmt.Errorf("-o %q %q: want table or json, and flags only", *format, flag.Args())
	}
	found, err := openResults(*file)
	if err != nil {
		return 0, err
	}
	defer found.close()
	if !*show {
		if os.Geteuid() != 0 {
			return 0, errors.New("it mounts, kills and partitions: run it as root, on a machine of its own")
		}
		fmt.Fprintf(os.Stderr, "seed %d, results in %s\n", *seed, *file)
		if *span > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *span+soakMost+roundMost)
			defer cancel()
		}
		want := func(k kind) int {
			if *n > 0 {
				return *n
			}
			return k.want
		}
		base := plan{program: *program, former: *former}
		if err = runAll(ctx, base, chosen, found, want, *seed, *span, *abreast, *again); err != nil && ctx.Err() == nil {
			return 0, err
		}
	}
	rows := tabulate(chosen, found)
	for _, r := range rows {
		broken += len(r.Broken)
	}
	return broken, printed(os.Stdout, rows)
}

// roundMost bounds most rounds.
const roundMost = 15 * time.Minute

// runAll runs rounds of each kind in turn, so many at a time, until each has its strikes; if again, first those
// that broke a promise.
func runAll(ctx context.Context, base plan, chosen []kind, found *results, want func(kind) int, seed uint64, span time.Duration, abreast int, again bool) error {
	var err error
	if base.program, err = filepath.Abs(base.program); err != nil {
		return err
	}
	if base.source, err = os.Getwd(); err != nil {
		return err
	}
	if base.commit, err = checkout.Commit(ctx, base.source, "HEAD"); err != nil {
		base.commit = "unknown"
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	q := &queue{chosen: chosen, found: found, want: want, seed: seed, running: map[round]int{}}
	if again {
		q.again = found.broken()
	}
	if span > 0 {
		q.end = time.Now().Add(span)
	}
	var all sync.WaitGroup
	for range abreast {
		all.Go(func() {
			for ctx.Err() == nil {
				k, p, more := q.next(base)
				if !more {
					return
				}
				err := k.once(ctx, p, found)
				q.done(k, p)
				if err != nil && ctx.Err() == nil {
					stop(fmt.Errorf("%s, seed %d: %w", k.name, p.seed, err))
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// queue says which round comes next. It may be used concurrently.
type queue struct {
	chosen []kind
	found  *results
	want   func(kind) int
	seed   uint64
	end    time.Time // no round begins after it; zero: that does not matter

	mu      sync.Mutex
	again   []outcome     // rounds to be run once more, before all others
	at      int           // in chosen
	running map[round]int // strikes of rounds under way
}

// round is one, as its line in the file of results names it.
type round struct {
	kind string
	seed uint64
}

// next returns a kind that has not all its strikes yet, and the plan of a round.
func (q *queue) next(base plan) (k kind, p *plan, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.end.IsZero() && time.Now().After(q.end) {
		return k, nil, false
	}
	begin := func(k kind, seed uint64, strikes int) (kind, *plan, bool) {
		p := base
		p.seed, p.strikes = seed, strikes
		q.running[round{k.name, seed}] = strikes
		return k, &p, true
	}
	for i, o := range q.again {
		if at := slices.IndexFunc(q.chosen, func(k kind) bool { return k.name == o.Kind }); at >= 0 {
			q.again = slices.Delete(q.again, i, i+1)
			return begin(q.chosen[at], o.Seed, q.chosen[at].each)
		}
	}
	for range q.chosen {
		k := q.chosen[q.at%len(q.chosen)]
		q.at++
		left := q.want(k) - q.found.strikes(k.name)
		for r, strikes := range q.running {
			if r.kind == k.name && !q.found.ran(r.kind, r.seed) {
				left -= strikes
			}
		}
		if left <= 0 {
			continue
		}
		seed := q.seed
		for q.found.ran(k.name, seed) || q.running[round{k.name, seed}] > 0 {
			seed++
		}
		return begin(k, seed, min(left, k.each))
	}
	return k, nil, false
}

// done says that a round is over.
func (q *queue) done(k kind, p *plan) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, round{k.name, p.seed})
}

// once runs a round and keeps what came of it.
func (k kind) once(ctx context.Context, p *plan, found *results) (err error) {
	if p.dir, err = os.MkdirTemp("", "gridnode-campaign-"+k.name+"-"); err != nil {
		return err
	}
	if err := os.Chmod(p.dir, 0o711); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, k.most)
	defer cancel()
	began := time.Now()
	o, err := k.round(ctx, p)
	if err != nil {
		return fmt.Errorf("%w; see %s", err, p.dir)
	}
	o.Kind, o.Seed, o.Commit, o.At, o.Seconds = k.name, p.seed, p.commit, began.UTC(), time.Since(began).Seconds()
	fmt.Fprintf(os.Stderr, "%s, seed %d: %s\n", k.name, p.seed, o)
	if len(o.Broken) > 0 {
		fmt.Fprintln(os.Stderr, "  kept:", p.dir)
	} else if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	return found.add(*o)
}

func choose(only string) (chosen []kind, err error) {
	if only == "" {
		return kinds, nil
	}
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %q: no such kind", name)
		}
		chosen = append(chosen, kinds[i])
	}
	return chosen, nil
}
