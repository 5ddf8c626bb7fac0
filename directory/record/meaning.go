package record

import (
	"slices"

	"gridnode/grid"
)

// Meant asks which site a user means by a text. The answer is a *Meaning.
type Meant struct {
	Token uint64
	Text  string        // an ID or a name
	Known []grid.SiteID // whom the index lists by it; nobody: who has a record is looked for
}

// Meaning is the one site that a text stands for, or why it stands for none: nobody is
// known by it, several are, or it stood for another one lately.
type Meaning struct {
	Site  grid.SiteID   // empty: none
	Sites []grid.SiteID // who is known by it, by ID
	Was   grid.SiteID   // whom it stood for not long ago, if that is another than Sites has
	Err   error         // of Found
}

// Bounds of what is remembered of names.
const (
	boundMax  = 1024          // names that were used
	boundSpan = 2 * grid.Hour // for so long one stands for nobody else than it stood for
)

// binding says whom a name stood for when it was used.
type binding struct {
	site grid.SiteID
	used grid.Time
}

// meant begins to find out what a text stands for.
func (s *seeker) meant(now grid.Time, in *Meant, out *grid.Outbox) {
	if len(in.Known) > 0 {
		out.Answer(in.Token, s.meaning(now, in.Text, in.Known))
		return
	}
	s.search(now, in.Text, asker{in.Token, true}, out)
}

// Plainly is the answer of a site that has no registry.
func Plainly(in *Meant) *Meaning {
	m := &Meaning{Sites: slices.Sorted(slices.Values(in.Known))}
	switch {
	case slices.Contains(m.Sites, grid.SiteID(in.Text)):
		m.Site = grid.SiteID(in.Text) // an ID stands for its site, whoever claims it as a name
	case len(m.Sites) == 1:
		m.Site = m.Sites[0]
	}
	return m
}

// meaning returns what a text stands for if sites are known by it. A name that was used
// does not come to stand for another site without a word: its site may be down while
// somebody else claims it.
func (s *seeker) meaning(now grid.Time, text string, sites []grid.SiteID) *Meaning {
	m := Plainly(&Meant{Text: text, Known: sites})
	if m.Site == "" || string(m.Site) == text {
		return m
	}
	b, used := s.bound[text]
	if used && b.site != m.Site && now-b.used < boundSpan {
		m.Site, m.Was = "", b.site
		return m
	}
	if !used && len(s.bound) >= boundMax {
		s.unbind()
	}
	s.bound[text] = binding{m.Site, now}
	return m
}

// unbind forgets the name that has not been used for longest.
func (s *seeker) unbind() {
	var oldest string
	for text, b := range s.bound { // the least by use and name: the order means nothing
		if first, ok := s.bound[oldest]; !ok || b.used < first.used || b.used == first.used && text < oldest {
			oldest = text
		}
	}
	delete(s.bound, oldest)
}
