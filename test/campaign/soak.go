package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridnode/test/realsite"
)

// soakMost is how long the sites of a round are under load: each round has new ones.
const soakMost = 6 * time.Hour

// silentMost is how many times in a row the numbers of a site may be missing: a busy machine leaves little to it.
const silentMost = 4

// soak keeps sites busy for hours without damaging anything, a minute a strike, and looks whether memory,
// descriptors and goroutines of their daemons grow.
func soak(ctx context.Context, p *plan) (*outcome, error) {
	w, err := newWorld(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	var seen [][]sample
	silent := 0
	for ; w.out.Strikes < p.strikes; w.out.Strikes++ {
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; {
			if err := w.submit(ctx); err != nil {
				return nil, err
			}
			pause(ctx, 500*time.Millisecond)
		}
		switch row, err := w.sample(ctx); {
		case err == nil:
			seen, silent = append(seen, row), 0
		case ctx.Err() != nil || silent == silentMost:
			return nil, err
		default:
			w.out.note("told no numbers")
			silent++
		}
	}
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	for i, s := range w.sites {
		var of []sample
		for _, row := range seen {
			of = append(of, row[i])
		}
		for _, text := range growth(of) {
			w.out.breaks("leak: site %s: %s", s.name, text)
		}
	}
	w.out.Broken = append(w.out.Broken, w.defects()...)
	return w.out, ctx.Err()
}

// sample is what a daemon has at a moment.
type sample struct{ memory, descriptors, goroutines int64 }

func (w *world) sample(ctx context.Context) (row []sample, err error) {
	for _, s := range w.sites {
		memory, descriptors := usage(s.daemon.Process.Pid)
		var goroutines int64
		wait, cancel := context.WithTimeout(ctx, metricWithin)
		err := realsite.Until(wait, time.Second, func() (told bool, err error) {
			goroutines, err = s.metric(wait, "go_goroutines")
			return err == nil, err
		})
		cancel()
		if err != nil {
			return nil, err
		}
		row = append(row, sample{memory, int64(descriptors), goroutines})
	}
	return row, nil
}

// metricWithin is how long a daemon is asked for its numbers: one that gets little of a busy machine refuses now and then.
const metricWithin = 30 * time.Second

// metric returns a number of the daemon's.
func (s *site) metric(ctx context.Context, name string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gridnode/metrics", nil)
	if err != nil {
		return 0, err
	}
	reply, err := s.client.HTTP().Do(request)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return 0, err
	}
	if reply.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("site %s told no numbers: %s: %.200s", s.name, reply.Status, text)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int64(n), err
		}
	}
	return 0, fmt.Errorf("site %s has no number %s", s.name, name)
}

// growth returns what has grown from the second quarter of the time to the last: the first fills caches.
// Load comes and goes, so that a quarter counts by its median, and what is near is the same.
func growth(of []sample) (grown []string) {
	if len(of) < 8 {
		return nil
	}
	n := len(of) / 4
	for _, what := range []struct {
		name  string
		slack int64
		of    func(sample) int64
	}{
		{"memory", 32 << 20, func(s sample) int64 { return s.memory }},
		{"descriptors", 20, func(s sample) int64 { return s.descriptors }},
		{"goroutines", 100, func(s sample) int64 { return s.goroutines }},
	} {
		early, late := median(of[n:2*n], what.of), median(of[len(of)-n:], what.of)
		if late > early+early/4+what.slack {
			grown = append(grown, fmt.Sprintf("%s grew from %d to %d", what.name, early, late))
		}
	}
	return grown
}

func median(of []sample, value func(sample) int64) int64 {
	var list []int64
	for _, s := range of {
		list = append(list, value(s))
	}
	slices.Sort(list)
	return list[len(list)/2]
}
