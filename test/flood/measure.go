package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// row is what one flood did. Times are in milliseconds, but Recovery and Banned, which are
// in seconds.
type row struct {
	Flood       string  `json:"flood"`
	Peers       int     `json:"peers"`
	Sent        int64   `json:"sent"`
	IdleP50     float64 `json:"idleP50"`
	IdleP99     float64 `json:"idleP99"`
	FloodP50    float64 `json:"floodP50"`
	FloodP99    float64 `json:"floodP99"`
	Honest      int     `json:"honest"` // negotiations under the flood
	Lost        int     `json:"lost"`
	JobIdleP50  float64 `json:"jobIdleP50"`
	JobIdleP99  float64 `json:"jobIdleP99"`
	JobFloodP50 float64 `json:"jobFloodP50"`
	JobFloodP99 float64 `json:"jobFloodP99"`
	Jobs        int     `json:"jobs"` // under the flood
	JobsLost    int     `json:"jobsLost"`
	MemoryPeak  int64   `json:"memoryPeak"` // bytes
	Recovery    float64 `json:"recovery"`   // from the end of the flood until a window is as idle
	Banned      int     `json:"banned"`     // flooders, by key or by address
	BannedIn    float64 `json:"bannedIn"`   // until the last of them
	Fate        string  `json:"fate"`
	HonestBan   bool    `json:"honestBan"` // an honest peer was banned
}

const (
	windowProbes = 20               // of which the time back to idle is told
	recoveryMax  = 30 * time.Second // and then it is given up
	slowSpan     = 25 * time.Second // the flood that is slow needs so long
)

// measure has a flood run, and honest peers beside it.
func (w *world) measure(ctx context.Context, k kind, peers int, span time.Duration) (*row, error) {
	from := w.home
	if k.name == local {
		from = w.at // whose users are to have it as if nobody flooded
	}
	if k.name == "slow-reader" {
		span = max(span, slowSpan)
	}
	idle, idleJobs := w.honest(ctx, from, span) // as long as under the flood: the slowest of as many
	if len(idle.times) == 0 || len(idleJobs.times) == 0 {
		return nil, fmt.Errorf("nothing works without a flood: %d negotiations lost, %d jobs", idle.lost, idleJobs.lost)
	}
	w.flooded++
	o := order{Kind: k.name, To: w.at.addr, Seconds: span.Seconds(), Root: w.seed, Socket: w.at.socket()}
	for i := range peers {
		o.From = append(o.From, fmt.Sprintf("127.1.%d.%d", w.flooded, i+10))
	}
	within, cancel := context.WithTimeout(ctx, span+time.Minute)
	defer cancel()
	cmd, out, err := w.floodersProcess(within, o)
	if err != nil {
		return nil, err
	}
	var result outcome
	if err := out.Decode(&result); err != nil {
		return nil, fmt.Errorf("the flooders do not connect: %w", err)
	}
	peak, stop := w.watchMemory(ctx)
	under, underJobs := w.honest(ctx, from, span)
	err = out.Decode(&result)
	_ = cmd.Wait()
	if err != nil {
		stop()
		return nil, fmt.Errorf("the flooders: %w", err)
	}
	recovery := w.recover(ctx, idle.at(99))
	stop()
	r := &row{
		Flood: k.name, Peers: peers, Sent: result.Sent,
		IdleP50: ms(idle.at(50)), IdleP99: ms(idle.at(99)), FloodP50: ms(under.at(50)), FloodP99: ms(under.at(99)), Honest: len(under.times), Lost: under.lost,
		JobIdleP50: ms(idleJobs.at(50)), JobIdleP99: ms(idleJobs.at(99)), JobFloodP50: ms(underJobs.at(50)), JobFloodP99: ms(underJobs.at(99)),
		Jobs: len(underJobs.times), JobsLost: underJobs.lost, MemoryPeak: *peak, Recovery: recovery.Seconds(), BannedIn: result.Seconds,
	}
	return r, w.fate(ctx, r, &o, &result)
}

// honest has negotiations and jobs go on for a while, both at once.
func (w *world) honest(ctx context.Context, from *daemon, span time.Duration) (negotiations, ran sample) {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { negotiations = w.probe.watch(ctx) })
	wg.Go(func() { ran = jobs(ctx, w.program, from, w.at) })
	wg.Wait()
	return negotiations, ran
}

// watchMemory follows the memory of the flooded daemon until stop is called.
func (w *world) watchMemory(ctx context.Context) (peak *int64, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	peak = new(int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			*peak = max(*peak, w.at.memory())
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return peak, func() { cancel(); <-done }
}

// recover returns how long it takes until the slowest but one of some negotiations in a
// row is within twice what it is without a flood.
func (w *world) recover(ctx context.Context, idle time.Duration) time.Duration {
	began := time.Now()
	for time.Since(began) < recoveryMax && ctx.Err() == nil {
		first := time.Since(began)
		var s sample
		for range windowProbes {
			if took, err := w.probe.negotiate(ctx); err == nil {
				s.times = append(s.times, took)
			} else {
				s.lost++
			}
		}
		if s.lost == 0 && slices.Sorted(slices.Values(s.times))[windowProbes-2] <= 2*idle {
			return first
		}
	}
	return recoveryMax
}

// fate says what became of the flooders.
func (w *world) fate(ctx context.Context, r *row, o *order, result *outcome) error {
	if r.Flood == local {
		r.Fate = fmt.Sprintf("%d of %d went on to the end", r.Peers-result.Ended, r.Peers)
		return nil
	}
	reply, err := w.at.client.Bans(ctx)
	if err != nil {
		return err
	}
	why := ""
	banned := make(map[int]bool)
	for _, b := range reply.Bans {
		for i := range result.IDs {
			if b.Peer == result.IDs[i] || b.Peer == "" && b.Address == o.From[i] {
				banned[i], why = true, b.Why
			}
		}
		r.HonestBan = r.HonestBan || b.Peer == w.home.id || b.Peer == w.probe.t.host.ID().String() || b.Peer == "" && b.Address == "127.0.0.1"
	}
	r.Banned = len(banned)
	r.Fate = fmt.Sprintf("%d of %d banned, %d refused for good", r.Banned, r.Peers, result.Ended)
	if why != "" {
		r.Fate += ": " + why
	}
	if r.HonestBan {
		r.Fate += "; AN HONEST PEER WAS BANNED"
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
