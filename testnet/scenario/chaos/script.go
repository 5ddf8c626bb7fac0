package chaos

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"gridnode/grid"
	"gridnode/testnet/scenario"
)

// formatScript is the version of the form of replay files.
const formatScript = 1

// Script is everything that determines a run, so that it can be seen again: what a replay
// file holds, as JSON. One that is not Listed draws its faults and wishes from the seed; a
// listed one has those of its lists only, and single ones can be taken out by hand.
type Script struct {
	Format    int    `json:"format"`
	Violation string `json:"violation,omitempty"` // what it shows; a comment
	Seed      uint64 `json:"seed"`
	Config

	Listed  bool     `json:"listed"`
	Strikes []Strike `json:"strikes,omitempty"`
	Wishes  []Wish   `json:"wishes,omitempty"`
	Jobs    []string `json:"jobs"` // of those that the seed gives, by ID; null: all of them
}

// scriptOf returns what is drawn as cfg says.
func scriptOf(cfg Config) *Script { return &Script{Format: formatScript, Seed: cfg.Seed, Config: cfg} }

// ReadScript reads a replay file.
func ReadScript(path string) (*Script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	s := new(Script)
	if err := decoder.Decode(s); err != nil {
		return nil, fmt.Errorf("%s is no replay file: %w", path, err)
	}
	if s.Format != formatScript {
		return nil, fmt.Errorf("%s has form %d of replay files, want %d", path, s.Format, formatScript)
	}
	s.Config.Seed = s.Seed
	return s, nil
}

// write writes it as a replay file.
func (s *Script) write(path string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// validate returns what is wrong with the settings.
func (s *Script) validate() error {
	if s.Sites < 1 || s.Sites > 1000 {
		return scenario.ConfigError("sites", "%d: want 1 to 1000", s.Sites)
	}
	if !(s.Hours > 0 && s.Hours <= 10_000) {
		return scenario.ConfigError("hours", "%v: want more than 0 and at most 10000", s.Hours)
	}
	if _, err := parseList("faults", s.Faults, intensities); err != nil {
		return err
	}
	_, err := s.features()
	return err
}

// features returns what is used of what sites can do.
func (s *Script) features() (features, error) {
	return parseList("features", cmp.Or(s.Features, "none"), featureBounds)
}

// span is for how long jobs are submitted and faults happen.
func (s *Script) span() grid.Time { return grid.Time(s.Hours * float64(grid.Hour)) }

// size says how much there is of everything.
func (s *Script) size() string {
	return fmt.Sprintf("%d sites, %.4g hours, %d faults, %d wishes, %d jobs", s.Sites, s.Hours, len(s.Strikes), len(s.Wishes), len(s.Jobs))
}

// copy returns one whose lists are its own.
func (s *Script) copy() *Script {
	c := *s
	c.Strikes, c.Wishes, c.Jobs = slices.Clone(s.Strikes), slices.Clone(s.Wishes), slices.Clone(s.Jobs)
	return &c
}
