package logging

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// PartKey is the attribute that names the subsystem that a record is of.
const PartKey = "part"

// Parts are the subsystems, by name. What names none is of "node".
var Parts = []string{"api", "forward", "node", "p2p", "run", "slurm", "store", "trace", "witness"}

// ParseLevel reads a level: debug, info, warn or error.
func ParseLevel(text string) (slog.Level, error) {
	for level, name := range levelNames {
		if name == text {
			return level, nil
		}
	}
	return 0, fmt.Errorf("%.40q is no level: want debug, info, warn or error", text)
}

var levelNames = map[slog.Level]string{slog.LevelDebug: "debug", slog.LevelInfo: "info", slog.LevelWarn: "warn", slog.LevelError: "error"}

// NameOf returns what ParseLevel reads.
func NameOf(level slog.Level) string { return levelNames[level] }

// ParseLevels reads levels of subsystems, each as SUBSYSTEM=LEVEL.
func ParseLevels(texts []string) (map[string]slog.Level, error) {
	levels := make(map[string]slog.Level)
	for _, text := range texts {
		part, name, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("%.60q: want SUBSYSTEM=LEVEL", text)
		}
		if !slices.Contains(Parts, part) {
			return nil, fmt.Errorf("%.40q is no subsystem: want %s", part, strings.Join(Parts, ", "))
		}
		level, err := ParseLevel(name)
		if err != nil {
			return nil, err
		}
		levels[part] = level
	}
	return levels, nil
}

// Levels says how severe the records of each subsystem must be to be logged. It may be
// changed while it is used, by anybody.
type Levels struct {
	mu sync.Mutex // of those who change it
	at atomic.Pointer[levels]
}

type levels struct {
	rest slog.Level            // of all without one of their own
	own  map[string]slog.Level // never changed
}

func (l *levels) of(part string) slog.Level {
	if level, ok := l.own[part]; ok {
		return level
	}
	return l.rest
}

// NewLevels returns levels: of some subsystems, and of the rest.
func NewLevels(rest slog.Level, own map[string]slog.Level) *Levels {
	l := new(Levels)
	l.Configure(rest, own)
	return l
}

// Configure sets all levels.
func (l *Levels) Configure(rest slog.Level, own map[string]slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at.Store(&levels{rest, maps.Clone(own)})
}

// Set sets the level of one subsystem, or of all if part is empty.
func (l *Levels) Set(part string, level slog.Level) error {
	if part == "" {
		l.Configure(level, nil)
		return nil
	}
	if !slices.Contains(Parts, part) {
		return fmt.Errorf("%.40q is no subsystem: want %s", part, strings.Join(Parts, ", "))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.at.Load()
	own := maps.Clone(now.own)
	if own == nil {
		own = make(map[string]slog.Level)
	}
	own[part] = level
	l.at.Store(&levels{now.rest, own})
	return nil
}

// Of returns the level of a subsystem.
func (l *Levels) Of(part string) slog.Level { return l.at.Load().of(part) }

// Handler returns one that passes to another what is severe enough. next must take all.
func (l *Levels) Handler(next slog.Handler) slog.Handler { return &leveled{next, l, "node"} }

// leveled is the handler of one subsystem.
type leveled struct {
	next slog.Handler
	all  *Levels
	part string
}

// Enabled implements slog.Handler.
func (h *leveled) Enabled(_ context.Context, level slog.Level) bool { return level >= h.all.Of(h.part) }

// Handle implements slog.Handler.
func (h *leveled) Handle(ctx context.Context, r slog.Record) error { return h.next.Handle(ctx, r) }

// WithAttrs implements slog.Handler. An attribute PartKey says of which subsystem records are.
func (h *leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	of := *h
	of.next = h.next.WithAttrs(attrs)
	for _, a := range attrs {
		if a.Key == PartKey {
			of.part = a.Value.String()
		}
	}
	return &of
}

// WithGroup implements slog.Handler.
func (h *leveled) WithGroup(name string) slog.Handler {
	of := *h
	of.next = h.next.WithGroup(name)
	return &of
}
