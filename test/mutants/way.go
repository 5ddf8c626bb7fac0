package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
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
			return nil, fmt.Errorf("-by %q: want unit, transcript, chaos, end-to-end", name)
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
	by, err := g.test(ctx, p, ".", transcripts, "./"+p.Room)
	return result{Seen: by != "", By: by}, err
}

// siteRoom is where the cores meet; its transcripts are of whole sites.
const siteRoom = "node/site"

func transcribed(ctx context.Context, g *garden, m *mutant) (bool, error) {
	if _, err := os.Stat(filepath.Join(g.root, m.Room, "transcript_test.go")); err == nil {
		return true, nil
	}
	return g.needed(ctx, siteRoom, m.Room)
}

// transcript replays the conversations of the bug's room and of whole sites.
func transcript(ctx context.Context, g *garden, p *plot, _ int) (result, error) {
	var packages []string
	for _, room := range []string{p.Room, siteRoom} {
		_, err := os.Stat(filepath.Join(g.root, room, "transcript_test.go"))
		if err == nil && !slices.Contains(packages, "./"+room) {
			packages = append(packages, "./"+room)
		}
	}
	by, err := g.test(ctx, p, transcripts, nothing, packages...)
	return result{Seen: by != "", By: by}, err
}

// daemons runs the tests with real daemons.
func daemons(ctx context.Context, g *garden, p *plot, _ int) (result, error) {
	by, err := g.test(ctx, p, ".", nothing, "./test/e2e")
	return result{Seen: by != "", By: by}, err
}

// chaosRoom is the scenario that chaos runs.
const chaosRoom = "testnet/scenario/chaos"

// chaos runs seeds in virtual time until one is violated, a processor each.
func chaos(ctx context.Context, g *garden, p *plot, from int) (result, error) {
	r := result{Seeds: from - 1, Flags: g.chaosFlags()}
	program, err := g.program(ctx, p)
	if err != nil {
		return r, err
	}
	for ; r.Seeds < g.seeds; r.Seeds++ {
		seed, said, err := g.next(ctx, program, r.Seeds+1)
		if err != nil {
			return r, err
		}
		if said == "" {
			r.Seeds = seed - 1
			continue
		}
		r.Seeds, r.Seen, r.By = seed, true, fmt.Sprintf("seed %d: %s", seed, said)
		return r, nil
	}
	return r, nil
}

// next runs the seeds from one on, as many as there are processors to use, and returns the
// first that is violated and what it said; or the last, and nothing.
func (g *garden) next(ctx context.Context, program string, from int) (seed int, said string, err error) {
	last := min(from+workers()-1, g.seeds)
	words := make([]string, last-from+1)
	errs := make([]error, len(words))
	var wg sync.WaitGroup
	for i := range words {
		wg.Go(func() { words[i], errs[i] = g.seed(ctx, program, from+i) })
	}
	wg.Wait()
	for i, w := range words {
		if errs[i] != nil {
			return 0, "", errs[i]
		}
		if w == "" {
			continue
		}
		clean, err := g.program(ctx, nil)
		if err != nil {
			return 0, "", err
		}
		without, err := g.seed(ctx, clean, from+i)
		if err != nil {
			return 0, "", err
		}
		if without != "" {
			fmt.Fprintf(os.Stderr, "  chaos       seed %d is violated without the bug, too, and left out: %s\n", from+i, without)
			continue
		}
		return from + i, w, nil
	}
	return last, "", nil
}

// seed runs one seed and returns what it said if it was violated, "" if all was well.
func (g *garden) seed(ctx context.Context, program string, seed int) (string, error) {
	limited, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	args := append([]string{"--seed", strconv.Itoa(seed)}, g.chaos...)
	cmd := g.command(limited, nil, program, args...)
	var talk strings.Builder
	cmd.Stderr = &talk
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "", nil
	case limited.Err() != nil:
		return "no end", nil
	case cmd.ProcessState == nil:
		return "", err
	case cmd.ProcessState.ExitCode() == 2 && !strings.Contains(talk.String(), "goroutine "): // flags, and no panic
		return "", fmt.Errorf("%s: %s", strings.Join(args, " "), shorten(talk.String()))
	}
	for line := range strings.Lines(talk.String()) {
		if line = strings.TrimSpace(line); line != "" {
			if _, what, found := strings.Cut(line, "invariant violated: "); found { // when it was does not matter
				line = what
			}
			return shorten(line), nil
		}
	}
	return err.Error(), nil
}

// program builds what runs a seed, with the bug, or without one if p is nil, once.
func (g *garden) program(ctx context.Context, p *plot) (string, error) {
	path := filepath.Join(g.dir, "seeds")
	if p != nil {
		if path = filepath.Join(filepath.Dir(p.overlay), "seeds"); p.program != "" {
			return p.program, nil
		}
	} else if _, err := os.Stat(path); err == nil {
		return path, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	out, err := g.command(ctx, p, "go", "build", "-ldflags=-w", "-o", path, "./test/mutants/seeds").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	if p != nil {
		p.program = path
	}
	return path, nil
}
