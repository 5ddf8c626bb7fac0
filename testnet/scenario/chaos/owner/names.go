package owner

import (
	"fmt"
	"slices"

	"gridnode/directory/record"
	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
)

// Names has users look for sites by name and ID. It sees to it that what they are told
//
//   - is of sites that say to be called so, each once, and has not run out;
//   - is no older than what they were told before;
//   - is of whoever has been there for long, if all sites have.
type Names struct {
	Sight
	names  []string // of the sites
	asked  map[uint64]string
	newest map[sought]uint64
	counts NameCounts
}

// NameCounts is what a run has seen of names.
type NameCounts struct {
	Found int64 `json:"found"` // answers that have found a site
	None  int64 `json:"none"`  // … that have not
	Sure  int64 `json:"sure"`  // … that had to
}

// sought is the site of a record, and who was told of it.
type sought struct {
	by   int
	site grid.SiteID
}

// recordLeast is for how long sites are there until everybody can find them: records are
// issued anew three times a lifetime.
const recordLeast = record.LifetimeDefault/3 + 10*grid.Minute

// NewNames begins to watch; names are what sites are called.
func NewNames(s Sight, names []string) *Names {
	w := &Names{Sight: s, names: names, asked: make(map[uint64]string), newest: make(map[sought]uint64)}
	s.N.Observe(testnet.Observer{Answer: w.answer, Fault: w.fault})
	return w
}

// Counts returns what was seen.
func (w *Names) Counts() NameCounts { return w.counts }

// Do has a user of a site look for what a number says, or others reach the site at another address.
func (w *Names) Do(at int, which uint64) {
	token := nameTokens + uint64(len(w.asked))
	text := "nobody"
	if of := int(part(&which, uint64(w.N.Len()+1))); of < w.N.Len() {
		text = w.names[of]
		if part(&which, 2) == 0 {
			text = string(w.N.ID(of))
		}
	}
	if part(&which, 8) == 0 {
		w.N.Step(at, &site.Here{Addresses: []string{fmt.Sprintf("/ip4/192.0.2.%d/tcp/4001", part(&which, 250)+1)}})
		return
	}
	w.asked[token] = text
	if part(&which, 4) == 0 {
		w.N.Step(at, &record.Meant{Token: token, Text: text})
		return
	}
	w.N.Step(at, &record.Find{Token: token, Text: text})
}

// fault has who comes up know nothing of before.
func (w *Names) fault(_ grid.Time, f *testnet.Fault) {
	if !f.Kind.Kills() || f.Healing() {
		return
	}
	for key := range w.newest {
		if key.by == f.Sites[0] {
			delete(w.newest, key)
		}
	}
}

// called reports whether a site is known by a text.
func (w *Names) called(id grid.SiteID, text string) bool {
	at, known := w.N.Index(id)
	return known && (string(id) == text || w.names[at] == text)
}

func (w *Names) answer(now grid.Time, at int, a grid.Answer) {
	text, asked := w.asked[a.Token]
	if !asked {
		return
	}
	switch v := a.Value.(type) {
	case *record.Meaning:
		for _, id := range append(slices.Clone(v.Sites), v.Site, v.Was) {
			if id != "" && !w.called(id, text) {
				w.Checks.Violated("%s is told that %q means %s, which is not called so", w.N.ID(at), text, id)
			}
		}
	case *record.Found:
		w.found(now, at, text, v)
	}
}

// found looks at records that a user was told of.
func (w *Names) found(now grid.Time, at int, text string, f *record.Found) {
	local, there := w.N.Clock(at).Local(now), make(map[grid.SiteID]bool)
	for _, r := range f.Records {
		key := sought{at, r.Site}
		switch {
		case there[r.Site]:
			w.Checks.Violated("%s is told two records of %s", w.N.ID(at), r.Site)
		case !w.called(r.Site, text) || string(r.Site) != text && r.Name != text:
			w.Checks.Violated("%s looks for %q, and is told of %s, called %q", w.N.ID(at), text, r.Site, r.Name)
		case r.Issued+r.Lifetime <= local:
			w.Checks.Violated("%s is told record %d of %s, which has run out at %v", w.N.ID(at), r.Sequence, r.Site, r.Issued+r.Lifetime)
		case r.Sequence < w.newest[key] && r.Site != w.N.ID(at): // its own begins with what its clock shows, which may have stood still
			w.Checks.Violated("%s is told record %d of %s, and was told %d before", w.N.ID(at), r.Sequence, r.Site, w.newest[key])
		}
		there[r.Site], w.newest[key] = true, r.Sequence
	}
	if len(there) > 0 {
		w.counts.Found++
	} else {
		w.counts.None++
	}
	if !w.Certain || f.Err != nil || !w.all(now, recordLeast) {
		return
	}
	w.counts.Sure++
	for other := range w.N.Len() {
		if id := w.N.ID(other); w.called(id, text) && !there[id] {
			w.Checks.Violated("%s looks for %q, and is not told of %s, which has been there for long (%d of %d sites answered)", w.N.ID(at), text, id, f.Answered, f.Asked)
		}
	}
}
