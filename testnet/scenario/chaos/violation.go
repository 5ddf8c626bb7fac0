package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// Violation is the error of a run that violated an invariant.
type Violation struct {
	Err     error
	Script  string // replay file that shows it again; empty: none was written
	Small   string // one with as little as still shows it; empty: none was found
	Shrunk  string // what was left out
	Diagram string // of the last messages, in Mermaid's form
	Command string // that shows it again
}

// Error says what was violated, and how to see it again.
func (v *Violation) Error() string {
	text := v.Err.Error() + "\nto see it again: " + v.Command
	if v.Shrunk != "" {
		text += "\n" + v.Shrunk
	}
	if v.Diagram != "" {
		text += "\nits last messages: " + v.Diagram
	}
	return text
}

// Unwrap returns what was violated.
func (v *Violation) Unwrap() error { return v.Err }

// classOf returns what is the same of a violation whenever the same invariant is violated:
// the first line of its text, without what has a digit.
func classOf(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if _, after, found := strings.Cut(text, "invariant violated: "); found {
		text = after
	}
	var words []string
	for _, word := range strings.Fields(text) {
		if strings.ContainsFunc(word, unicode.IsDigit) {
			word = "#"
		}
		if word != "#" || len(words) == 0 || words[len(words)-1] != "#" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// explain returns the violation that the trial has ended with. It writes a replay file with
// everything listed if that shows it again, else one that draws as the trial has; makes it
// small; and draws the last messages. The script is in a file already, unless path is empty.
func (t *trial) explain(ctx context.Context, err error, name, path string) error {
	s := t.script
	v := &Violation{Err: err, Script: path, Command: s.command()}
	if s.Failures == "" {
		return v
	}
	if err := os.MkdirAll(s.Failures, 0o755); err != nil {
		return errors.Join(v, err)
	}
	x := &shrinker{class: classOf(err), most: 2*t.n.Events() + 1000, small: t.listed()}
	x.small.Violation = x.class
	again := s.Listed || x.shows(ctx, x.small)
	if !again {
		x.small = s.copy()
		x.small.Violation = x.class
	}
	base := filepath.Join(s.Failures, name)
	if path == "" {
		v.Script = base + ".json"
		if err := x.small.write(v.Script); err != nil {
			return errors.Join(v, err)
		}
	}
	v.Command = replayCommand(v.Script)
	if again && s.Shrink > 0 {
		whole := x.small
		if x.shrink(ctx, s.Shrink, t.n.Now()); x.small != whole {
			base += ".small"
			v.Small = base + ".json"
			if err := x.small.write(v.Small); err != nil {
				return errors.Join(v, err)
			}
			v.Shrunk = fmt.Sprintf("shrunk in %d runs to %s\nfrom %s: %s", x.runs, x.small.size(), whole.size(), v.Script)
			v.Command = replayCommand(v.Small)
		}
	}
	last := &tape{}
	shown := last.record(ctx, x.small, x.most)
	if shown == nil || ctx.Err() != nil {
		return v
	}
	if err := os.WriteFile(base+".mmd", []byte(last.draw(shown)), 0o644); err != nil {
		return errors.Join(v, err)
	}
	v.Diagram = base + ".mmd"
	return v
}

// replayCommand returns the command line that shows again what is in a replay file.
func replayCommand(path string) string { return "gridnode testnet run chaos --replay " + path }

// command returns the command line that shows a script again which is not Listed.
func (s *Script) command() string {
	return fmt.Sprintf("gridnode testnet run chaos --seed %d --sites %d --hours %v --faults %s --features %s --lend=%v",
		s.Seed, s.Sites, s.Hours, s.Faults, cmp.Or(s.Features, "none"), s.Lend)
}
