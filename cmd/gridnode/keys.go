package main

import (
	"fmt"
	"strings"
)

// detachDefault are the keys that leave a terminal without ending anything.
const detachDefault = "ctrl-],d"

// parseKeys reads keys separated by commas: single characters, or ctrl- and one of a-z @ [ \ ] ^ _.
func parseKeys(text string) (keys []byte, err error) {
	for key := range strings.SplitSeq(text, ",") {
		rest, control := strings.CutPrefix(strings.ToLower(key), "ctrl-")
		switch {
		case control && len(rest) == 1 && strings.Contains("abcdefghijklmnopqrstuvwxyz", rest):
			keys = append(keys, rest[0]-'a'+1)
		case control && len(rest) == 1 && strings.Contains("@[\\]^_", rest):
			keys = append(keys, rest[0]-'@')
		case !control && len(key) == 1:
			keys = append(keys, key[0])
		default:
			return nil, fmt.Errorf("%q in %q: want keys like ctrl-],d", key, text)
		}
	}
	return keys, nil
}

// watcher looks for keys in what is typed.
type watcher struct {
	keys []byte
	held int // how many of them were typed last
}

// pass returns what of b is to be passed on, and whether the keys were typed: what follows
// them is nobody's.
func (w *watcher) pass(b []byte) (out []byte, found bool) {
	for _, c := range b {
		if len(w.keys) > 0 && c == w.keys[w.held] {
			if w.held++; w.held == len(w.keys) {
				return out, true
			}
			continue
		}
		if w.held > 0 { // they were meant for the job
			out = append(out, w.keys[:w.held]...)
			w.held = 0
			if c == w.keys[0] && len(w.keys) > 1 {
				w.held = 1
				continue
			}
		}
		out = append(out, c)
	}
	return out, false
}
