package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// result is what one way said of one bug.
type result struct {
	Mutant  string  `json:"mutant"`
	Patch   string  `json:"patch"` // its digest: another patch is another bug
	Way     string  `json:"way"`
	Seen    bool    `json:"seen"`
	By      string  `json:"by,omitempty"`     // test, or seed and violation
	Idle    bool    `json:"idle,omitempty"`   // no test of the package executes the code that has the bug
	Seeds   int     `json:"seeds,omitempty"`  // of chaos that were run, or until it was seen
	Flags   string  `json:"flags,omitempty"`  // of chaos
	Seconds float64 `json:"seconds"`          // with what was built
	Commit  string  `json:"commit,omitempty"` // of the tree it was planted in; of chaos, in which the last seed was run
}

func (r result) String() string {
	switch {
	case r.Seen:
		return fmt.Sprintf("seen in %.0f s: %s", r.Seconds, r.By)
	case r.Idle:
		return "not seen, as no test executes it"
	case r.Seeds > 0:
		return fmt.Sprintf("not seen in %.0f s, %d seeds", r.Seconds, r.Seeds)
	}
	return fmt.Sprintf("not seen in %.0f s", r.Seconds)
}

// enough says whether there is no need to look again. A bug that was seen is seen, however
// chaos was run.
func (r result) enough(seeds int, flags string) bool {
	return r.Seen || r.Way != "chaos" || r.Seeds >= seeds && r.Flags == flags
}

// results is the file of what was found, a line each. A later line stands for an earlier one of
// the same bug and way.
type results struct {
	path string
	file *os.File
	mu   sync.Mutex
	all  map[[3]string]result // by name, digest, way
}

func openResults(path string) (*results, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	s := &results{path: path, file: f, all: map[[3]string]result{}}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var r result
		if json.Unmarshal(line, &r) == nil { // the last line of a run that was killed may be torn
			s.all[[3]string{r.Mutant, r.Patch, r.Way}] = r
		}
	}
	if n := len(text); n > 0 && text[n-1] != '\n' {
		_, err = f.WriteString("\n")
	}
	return s, err
}

func (s *results) close() { _ = s.file.Close() }

func (s *results) of(m *mutant, way string) (result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.all[[3]string{m.Name, m.digest, way}]
	return r, ok
}

// favourites returns the seeds of chaos that have seen most bugs, those first.
func (s *results) favourites(flags string) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := make(map[int]int)
	for _, r := range s.all {
		if r.Way == "chaos" && r.Seen && r.Flags == flags {
			count[r.Seeds]++
		}
	}
	seeds := slices.SortedFunc(maps.Keys(count), func(a, b int) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	return seeds[:min(len(seeds), favouritesMost)]
}

// favouritesMost is how many seeds are tried before all others.
const favouritesMost = 12

func (s *results) add(r result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.all[[3]string{r.Mutant, r.Patch, r.Way}] = r
	_, err = s.file.Write(append(line, '\n'))
	return err
}

// forget removes what is known of some bugs, and writes the file again without it.
func (s *results) forget(some []*mutant) error {
	for _, m := range some {
		for key := range s.all {
			if key[0] == m.Name {
				delete(s.all, key)
			}
		}
	}
	kept := s.all
	s.all = map[[3]string]result{}
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	for _, r := range kept {
		if err := s.add(r); err != nil {
			return err
		}
	}
	return nil
}

// workers is how many bugs are looked for at a time.
func workers() int { return runtime.GOMAXPROCS(0) }
