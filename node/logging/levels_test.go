package logging

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestLevels: each subsystem has its level, which changes for loggers that are there already.
func TestLevels(t *testing.T) {
	var b bytes.Buffer
	l := NewLevels(slog.LevelInfo, map[string]slog.Level{"p2p": slog.LevelDebug})
	base := Quietly(slog.New(l.Handler(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	loggers := map[string]*slog.Logger{"node": base, "p2p": base.With("peer", "x").With(PartKey, "p2p").WithGroup("g"), "store": base.With(PartKey, "store")}
	check := func(want string) {
		t.Helper()
		var got []string
		for _, part := range []string{"node", "p2p", "store"} {
			b.Reset()
			loggers[part].Debug("d")
			loggers[part].Info("i")
			loggers[part].Warn("w")
			got = append(got, fmt.Sprint(part, "=", strings.Count(b.String(), "\n")))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("lines of three: %s, want %s", text, want)
		}
	}
	check("node=2 p2p=3 store=2")
	if err := l.Set("store", slog.LevelError); err != nil {
		t.Fatal(err)
	}
	check("node=2 p2p=3 store=0")
	if err := l.Set("", slog.LevelWarn); err != nil {
		t.Fatal(err)
	}
	check("node=1 p2p=1 store=1")
	if err := l.Set("stroe", slog.LevelWarn); err == nil {
		t.Error("an unknown subsystem has a level")
	}
	for _, text := range []string{"p2p", "p2p=loud", "p3p=info", "=info"} {
		if _, err := ParseLevels([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestTail: the last lines are kept, whole, within bounds.
func TestTail(t *testing.T) {
	var tail Tail
	line := strings.Repeat("x", 999) + "\n"
	for range 2000 {
		fmt.Fprint(&tail, line)
	}
	fmt.Fprint(&tail, "last\n")
	lines := string(tail.Lines())
	if len(lines) > tailMax || len(lines) < tailMax-2000 || !strings.HasSuffix(lines, "\nlast\n") || !strings.HasPrefix(lines, line) {
		t.Errorf("%d bytes: %.20q…%.20q", len(lines), lines, lines[len(lines)-20:])
	}
	fmt.Fprint(&tail, strings.Repeat("y", 10*tailMax))
	if n := len(tail.text); n > 2*tailMax {
		t.Errorf("%d bytes are kept", n)
	}
}
