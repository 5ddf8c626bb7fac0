package site

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"gridnode/grid"
)

// records are what a part has stored.
type records []record

type record struct {
	key   string
	value []byte
}

// each yields records, as often as it is asked to.
func (r records) each(yield func(string, []byte) bool) {
	for i := range r {
		if !yield(r[i].key, r[i].value) {
			return
		}
	}
}

func recordError(key string, err error) error { return fmt.Errorf("record %s: %w", key, err) }

// Recover rebuilds the site from what was stored. It is called once, before any Step. It
// returns an error that names the first record that cannot be read: a site must not run
// on half of its jobs. Records of parts that the site does not have stay where they are.
func (s *Site) Recover(now grid.Time, stored iter.Seq2[string, []byte], out *grid.Outbox) error {
	told := len(out.Locals) // what the cores say meanwhile waits until the jobs are there
	entries, kept, err := s.sort(stored)
	if err != nil {
		return err
	}
	for i, k := range s.keepers {
		if err := k.recover(now, kept[i], out); err != nil {
			return err
		}
	}
	for _, e := range entries {
		s.recovery.restore(now, e, out)
	}
	s.feed(now, told, out)
	if s.gangs != nil {
		s.gangs.recovered(now, out)
	}
	if s.pilots != nil {
		s.pilots.recovered(now, out)
	}
	slices.SortFunc(s.jobs.finished, func(a, b finishedJob) int {
		return cmp.Or(cmp.Compare(a.at, b.at), a.id.Compare(b.id))
	})
	return nil
}

// sort reads the records of jobs, and gives each keeper its own.
func (s *Site) sort(stored iter.Seq2[string, []byte]) (entries []*entry, kept []records, err error) {
	kept = make([]records, len(s.keepers))
	for key, value := range stored {
		if strings.HasPrefix(key, recordPrefix) {
			e, err := decodeEntry(value)
			if err != nil {
				return nil, nil, recordError(key, err)
			}
			entries = append(entries, e)
			continue
		}
		for i, k := range s.keepers {
			if slices.ContainsFunc(k.keeps(), func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
				kept[i] = append(kept[i], record{key, value})
			}
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.job.Submit, b.job.Submit), a.job.ID.Compare(b.job.ID))
	})
	return entries, kept, nil
}
