package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quiet passes records on, but of the same message only so many: whoever can cause
// a message by what it sends, or does not, must not fill the disk with it. What
// differs from one time to the next belongs in a record's attributes. Records below
// Info, which somebody has asked for, all pass. Safe for concurrent use.
type quiet struct {
	next slog.Handler
	seen *messagesSeen // shared with the handlers that were made of this one
}

// Each message has Burst records at first and one more every Refill.
const (
	Burst  = 20
	Refill = time.Minute
)

// messagesMax is how many messages are told apart. All others count as one.
const messagesMax = 256

type messagesSeen struct {
	mu  sync.Mutex
	all map[string]*messageSeen
}

type messageSeen struct {
	left    int       // records that may still pass
	since   time.Time // when left was last made larger
	omitted int       // records that did not pass since the last that did
}

// Quietly returns a logger that bounds what it logs to another.
func Quietly(log *slog.Logger) *slog.Logger {
	return slog.New(&quiet{log.Handler(), &messagesSeen{all: make(map[string]*messageSeen)}})
}

// Enabled implements slog.Handler.
func (q *quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.next.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (q *quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quiet{q.next.WithAttrs(attrs), q.seen}
}

// WithGroup implements slog.Handler.
func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{q.next.WithGroup(name), q.seen}
}

// Handle implements slog.Handler. The first record that passes after others that did
// not has their number as "omitted".
func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		omitted, pass := q.seen.take(r.Message, r.Time)
		if !pass {
			return nil
		}
		if omitted > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("omitted", omitted))
		}
	}
	return q.next.Handle(ctx, r)
}

// take takes a record of a message at a time, and reports whether it may pass.
func (s *messagesSeen) take(message string, at time.Time) (omitted int, pass bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.all[message]
	if m == nil && len(s.all) >= messagesMax {
		message = ""
		m = s.all[message]
	}
	if m == nil {
		m = &messageSeen{left: Burst, since: at}
		s.all[message] = m
	}
	if more := int(at.Sub(m.since) / Refill); more > 0 {
		m.left = min(m.left+more, Burst)
		m.since = m.since.Add(time.Duration(more) * Refill)
	}
	if m.left == 0 {
		m.omitted++
		return 0, false
	}
	m.left--
	omitted, m.omitted = m.omitted, 0
	return omitted, true
}
