package logging

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestQuietly: what comes again and again is logged a few times, then once a minute
// with the number of those left out; other messages and debugging are not concerned.
func TestQuietly(t *testing.T) {
	var b bytes.Buffer
	log := Quietly(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	say := func(level slog.Level, message string) (logged string) {
		b.Reset()
		r := slog.NewRecord(at, level, message, 0)
		if err := log.With("part", "test").Handler().Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	count := func(level slog.Level, message string, n int) (lines int) {
		for range n {
			lines += strings.Count(say(level, message), "\n")
		}
		return lines
	}
	if n := count(slog.LevelWarn, "a peer flaps", 1000); n != Burst {
		t.Errorf("%d lines at once, want %d", n, Burst)
	}
	if n := count(slog.LevelInfo, "something else", 3); n != 3 {
		t.Errorf("%d lines of another message, want 3", n)
	}
	if n := count(slog.LevelDebug, "a peer flaps", 1000); n != 1000 {
		t.Errorf("%d lines for who debugs, want 1000", n)
	}
	at = at.Add(90 * time.Second)
	if line := say(slog.LevelWarn, "a peer flaps"); !strings.Contains(line, "part=test") || !strings.Contains(line, fmt.Sprint("omitted=", 1000-Burst)) {
		t.Errorf("a minute later: %q, want the number of those left out", line)
	}
	if n := count(slog.LevelWarn, "a peer flaps", 10); n != 0 {
		t.Errorf("%d more lines in the same minute", n)
	}
	at = at.Add(24 * time.Hour)
	if n := count(slog.LevelWarn, "a peer flaps", 1000); n != Burst {
		t.Errorf("%d lines a day later, want %d", n, Burst)
	}

	lines := 0
	for i := range 10 * messagesMax {
		lines += count(slog.LevelWarn, fmt.Sprint("with a number in it: ", i), 1)
	}
	if most := messagesMax + Burst; lines > most {
		t.Errorf("%d lines of messages that all differ, want at most %d", lines, most)
	}
}
