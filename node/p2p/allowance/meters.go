package allowance

import (
	"fmt"
	"sync"
	"time"
)

// metersMax bounds the peers and addresses of which is remembered what they asked for.
const (
	metersMax  = 4096
	sweepPause = time.Second
	// holdMax is the most of one wait that counts: a peer that waits long sends nothing.
	holdMax = 500 * time.Millisecond
)

// Meters are the allowances of all peers, or of all addresses. Safe for concurrent use.
type Meters struct {
	lines *Lines
	mu    sync.Mutex
	all   map[string]*meter
	swept time.Time // when those that may be forgotten were looked for
}

// meter is what one peer has asked for.
type meter struct {
	buckets [Classes]Bucket // without a rate until the class is used
	above   time.Time       // until when it has been counted as above its allowance
	held    time.Duration   // of the latest time, for how long it was
	seen    time.Time
	slow    []time.Time // when it did not send, or take, something in time
	usage   Usage
}

// Usage is what a peer has asked for, since it was first seen or forgotten.
type Usage struct {
	Messages int64
	Bytes    int64
	Held     int64 // messages that were read late, as it was above its allowance
}

// Verdict is what becomes of something that a peer has sent.
type Verdict struct {
	Wait time.Duration // until it may be looked at
	Ban  string        // why the peer is to be banned; empty: it is not
}

// NewMeters returns the meters of nobody yet; lines are Table, but in tests.
func NewMeters(lines *Lines) *Meters { return &Meters{lines: lines, all: make(map[string]*meter)} }

// Draw takes tokens of a class from who's allowance. bytes are for the record only.
func (m *Meters) Draw(now time.Time, who string, c Class, tokens float64, bytes int) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.meter(now, who)
	if t == nil { // more than we can remember ask at once: each has a little
		return Verdict{Wait: time.Second}
	}
	b := &t.buckets[c]
	if b.rate == 0 {
		*b = NewBucket(now, m.lines[c].Rate, m.lines[c].Burst)
		b.strict = c < Streams
	}
	if c < Streams {
		t.usage.Messages++
	}
	t.usage.Bytes += int64(bytes)
	wait := b.Draw(now, tokens)
	t.forgive(now)
	if wait == 0 {
		return Verdict{}
	}
	t.usage.Held++
	t.hold(now, now.Add(min(wait, holdMax)))
	if t.held > Patience {
		t.held = 0
		return Verdict{wait, fmt.Sprintf("it went on above its allowance of %s (%g a second)", c, m.lines[c].Rate)}
	}
	return Verdict{Wait: wait}
}

// forgive lets time below the allowance count.
func (t *meter) forgive(now time.Time) {
	if from := later(t.seen, t.above); now.After(from) {
		t.held = max(0, t.held-now.Sub(from)/forgiving)
	}
	t.seen = now
}

// hold counts a span above the allowance, once however many wait through it.
func (t *meter) hold(from, to time.Time) {
	if from = later(from, t.above); to.After(from) {
		t.held += to.Sub(from)
		t.above = to
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Slow counts that who left a message half sent, or did not take one in time, and says
// why it is to be banned; nothing if it is not.
func (m *Meters) Slow(now time.Time, who string) (ban string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.meter(now, who)
	if t == nil {
		return ""
	}
	if n := len(t.slow); n > 0 && now.Sub(t.slow[n-1]) < slowGap {
		return ""
	}
	for len(t.slow) > 0 && now.Sub(t.slow[0]) > SlowSpan {
		t.slow = t.slow[1:]
	}
	if t.slow = append(t.slow, now); len(t.slow) < SlowMax {
		return ""
	}
	t.slow = nil
	return fmt.Sprintf("%d times in %v it left a message half sent or did not take one", SlowMax, SlowSpan)
}

// Usage returns what who has asked for.
func (m *Meters) Usage(who string) Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.all[who]; t != nil {
		return t.usage
	}
	return Usage{}
}

// meter returns who's, a new one if it has none; nil if there are too many.
func (m *Meters) meter(now time.Time, who string) *meter {
	t := m.all[who]
	if t == nil && len(m.all) >= metersMax && now.Sub(m.swept) >= sweepPause {
		m.swept = now
		m.forget(now)
	}
	if t == nil && len(m.all) < metersMax {
		t = &meter{seen: now}
		m.all[who] = t
	}
	return t
}

// forget drops those that are as new ones would be.
func (m *Meters) forget(now time.Time) {
	for who, t := range m.all {
		t.forgive(now)
		full := t.held == 0 && (len(t.slow) == 0 || now.Sub(t.slow[len(t.slow)-1]) > SlowSpan)
		for c := range t.buckets {
			full = full && (t.buckets[c].rate == 0 || t.buckets[c].Full(now))
		}
		if full {
			delete(m.all, who)
		}
	}
}
