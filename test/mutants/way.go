package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// way is something that looks for a bug.
type way struct {
	name string
	// reaches says whether it executes the room of the bug at all.
	reaches func(ctx context.Context, g *garden, m *mutant) (bool, error)
	// look says whether it sees the bug. Chaos begins with seed from.
	look func(ctx context.Context, g *garden, p *plot, from int) (result, error)
}

// endToEnd is the way that takes minutes.
const endToEnd = "end-to-end"

// ways returns all there are.
func ways() []way {
	return []way{
		{"package", everywhere, inPackage},
		{"unit", everywhere, unit},
		{"transcript", transcribed, transcript},
		{"chaos", needing(chaosRoom), chaos},
		{endToEnd, needing("cmd/gridnode"), daemons},
	}
}

func waysOf(names string) (chosen []way, err error) {
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(ways(), func(w way) bool { return w.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-by %q: want package, unit, transcript, chaos, end-to-end", name)
		}
		chosen = append(chosen, ways()[i])
	}
	return chosen, nil
}

func everywhere(context.Context, *garden, *mutant) (bool, error) { return true, nil }

func needing(folder string) func(context.Context, *garden, *mutant) (bool, error) {
	return func(ctx context.Context, g *garden, m *mutant) (bool, error) { return g.needed(ctx, folder, m.Room) }
}

// transcripts is the name that tests of recorded conversations have in every room.
const transcripts = "^TestTranscripts$"

// nothing is the name of no test.
const nothing = "^$"

// unit runs the tests of the bug's package but for its transcripts.
func unit(ctx context.Context, g *garden, p *plot, _ int) (result, error) {
	by, err := g.test(ctx, p, p.Room, ".", transcripts)
	return result{Seen: by != "", By: by}, err
}

// inPackage runs all tests of the bug's package, if one of them executes what a sample has changed.
func inPackage(ctx context.Context, g *garden, p *plot, _ int) (result, error) {
	if p.drawn != nil {
		c, err := g.cover(ctx, p.Room)
		if err != nil {
			return result{}, err
		}
		if !c.reaches(p.drawn) {
			return result{Idle: true}, nil
		}
		p.processor = timesMost*c.processor + 10*time.Second
	}
	by, err := g.test(ctx, p, p.Room, ".", nothing)
	return result{Seen: by != "", By: by}, err
}

// timesMost is how many times the processor time of the tests without a bug a change of a sample
// may take: more is no end, and a clock would not tell on a busy machine.
const timesMost = 5

// siteRoom is where the cores meet; its transcripts are of whole sites.
const siteRoom = "node/site"

func transcribed(ctx context.Context, g *garden, m *mutant) (bool, error) {
	if _, err := os.Stat(filepath.Join(g.root, m.Room, "transcript_test.go")); err == nil {
		return true, nil
	}
	return g.needed(ctx, siteRoom, m.Room)
}

// transcript replays the conversations of the bug's room and of whole sites.
func transcript(ctx context.Context, g *garden, p *plot, _ int) (r result, err error) {
	for _, room := range slices.Compact([]string{p.Room, siteRoom}) {
		if _, err := os.Stat(filepath.Join(g.root, room, "transcript_test.go")); err != nil {
			continue
		}
		if r.By, err = g.test(ctx, p, room, transcripts, nothing); r.By != "" || err != nil {
			break
		}
	}
	r.Seen = r.By != ""
	return r, err
}

// daemons runs the tests with real daemons.
func daemons(ctx context.Context, g *garden, p *plot, _ int) (result, error) {
	by, err := g.test(ctx, p, "test/e2e", ".", nothing)
	return result{Seen: by != "", By: by}, err
}

// chaosRoom is the scenario that chaos runs.
const chaosRoom = "testnet/scenario/chaos"

// chaos runs seeds in virtual time until one is violated: first those that have seen most other bugs.
func chaos(ctx context.Context, g *garden, p *plot, from int) (result, error) {
	r := result{Seeds: from - 1, Flags: g.chaosFlags()}
	program, err := g.program(ctx, p)
	if err != nil {
		return r, err
	}
	over := make(map[int]bool)
	for {
		var left []int
		for _, seed := range p.first {
			if seed <= g.seeds && !over[seed] {
				left = append(left, seed)
			}
		}
		for seed := from; seed <= g.seeds; seed++ {
			if !over[seed] && !slices.Contains(left, seed) {
				left = append(left, seed)
			}
		}
		if len(left) == 0 {
			r.Seeds = g.seeds
			return r, nil
		}
		seed, said, err := g.sow(ctx, p, program, left, over)
		if err != nil {
			for r.Seeds < g.seeds && over[r.Seeds+1] {
				r.Seeds++
			}
			return r, err
		}
		if said == "" {
			continue
		}
		without, err := g.without(ctx, seed)
		if err != nil {
			return r, err
		}
		if over[seed] = true; without == "" {
			r.Seeds, r.Seen, r.By = seed, true, fmt.Sprintf("seed %d: %s", seed, said)
			return r, nil
		}
		fmt.Fprintf(os.Stderr, "  chaos       seed %d is violated without the bug, too, and left out: %s\n", seed, without)
	}
}

// without returns what a seed violates without a bug, "" if all is well.
func (g *garden) without(ctx context.Context, seed int) (string, error) {
	clean, err := g.program(ctx, nil)
	if err != nil {
		return "", err
	}
	_, said, err := g.sow(ctx, nil, clean, []int{seed}, make(map[int]bool))
	return said, err
}

// sow runs seeds until one is violated, and returns that and what it said, or nothing. Those that
// were well are over.
func (g *garden) sow(ctx context.Context, p *plot, program string, seeds []int, over map[int]bool) (seed int, said string, err error) {
	limited, stop := context.WithCancel(ctx)
	defer stop()
	args := slices.Clone(g.chaos)
	for _, seed := range seeds {
		args = append(args, strconv.Itoa(seed))
	}
	cmd := g.command(limited, p, program, args...)
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1") // as many bugs are looked for at a time as there are processors
	var talk strings.Builder
	cmd.Stderr = &talk
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, "", err
	}
	slow := time.AfterFunc(g.patience, stop)
	defer slow.Stop()
	for lines := bufio.NewScanner(out); said == "" && lines.Scan(); slow.Reset(g.patience) {
		number, words, _ := strings.Cut(lines.Text(), " ")
		if seed, err = strconv.Atoi(number); err != nil {
			continue // a panic, of which the rest tells
		}
		if said = words; said == "" {
			over[seed] = true
		}
	}
	if said != "" {
		stop()
		_ = cmd.Wait()
		if _, what, found := strings.Cut(said, "invariant violated: "); found { // when it was does not matter
			said = what
		}
		return seed, shorten(said), ctx.Err()
	}
	err = cmd.Wait()
	if err == nil || ctx.Err() != nil {
		return 0, "", ctx.Err()
	}
	seed = seeds[slices.IndexFunc(seeds, func(seed int) bool { return !over[seed] })] // it has not come to its end
	switch {
	case limited.Err() != nil:
		return seed, noEnd, nil
	case cmd.ProcessState.ExitCode() == 2 && !strings.Contains(talk.String(), "goroutine "): // flags, and no panic
		return 0, "", fmt.Errorf("%s: %s", strings.Join(args, " "), shorten(talk.String()))
	}
	return seed, cmp.Or(shorten(talk.String()), err.Error()), nil
}

// program builds what runs seeds, with the bug, or without one if p is nil, once.
func (g *garden) program(ctx context.Context, p *plot) (string, error) {
	return g.build(ctx, p, "seeds", "test/mutants/seeds", "build")
}
