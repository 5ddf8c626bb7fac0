package record

import (
	"cmp"
	"errors"
	"slices"

	"gridnode/grid"
)

// Bounds of searches.
const (
	searchesMax = 64   // under way
	askersMax   = 64   // users who wait for the same search
	firstWave   = 8    // sites asked at first; if they know nobody, all others that are near
	seenMax     = 1024 // sites whose newest record is remembered
)

// ErrBusy says that too many searches are under way; ask again later.
var ErrBusy = errors.New("too many searches for sites are under way")

// ErrRouter says that the DHT did not answer; ask again later.
var ErrRouter = errors.New("the DHT did not answer")

// Find looks for the sites that a text names. The answer is a *Found.
type Find struct {
	Token uint64
	Text  string // an ID or a name
}

// Found is what Find has found. An ID names one site. A name that several claim names
// none of them: who asked has to say which by its ID.
type Found struct {
	Records  []*Record // that count now, by ID; nobody may change them
	Asked    int       // sites that may have known
	Answered int       // of them
	Err      error     // the search could not begin or end: there may be more
}

// seeker looks for records on behalf of users.
type seeker struct {
	cfg       *Config
	counts    *Counts
	holder    *holder
	publisher *publisher

	searches []*search // in the order in which they began
	token    uint64
	seen     map[grid.SiteID]*Record // the newest record of each site
	order    []grid.SiteID           // of seen, from first on, around
	first    int
	bound    map[string]binding // names that were used
}

// asker is a user who waits for a search, and for what.
type asker struct {
	token uint64
	meant bool // a *Meaning, else a *Found
}

// answer answers an asker.
func (s *seeker) answer(now grid.Time, text string, a asker, f *Found, out *grid.Outbox) {
	if !a.meant {
		out.Answer(a.token, f)
		return
	}
	var sites []grid.SiteID
	for _, r := range f.Records {
		sites = append(sites, r.Site)
	}
	m := s.meaning(now, text, sites)
	m.Err = f.Err
	out.Answer(a.token, m)
}

// search is one text that is being looked for.
type search struct {
	text     string
	key      grid.Key
	askers   []asker
	looking  bool // the router has not answered
	rest     []grid.SiteID
	waves    int
	token    uint64 // of the questions under way
	waiting  []grid.SiteID
	deadline grid.Time
	answer   Found
}

// next returns when something is due.
func (s *seeker) next() grid.Time {
	t := grid.Never
	for _, l := range s.searches {
		t = min(t, l.deadline)
	}
	return t
}

// tick gives up what takes too long.
func (s *seeker) tick(now grid.Time, out *grid.Outbox) {
	for _, l := range slices.Clone(s.searches) {
		if l.deadline > now {
			continue
		}
		if l.looking {
			l.answer.Err = ErrRouter
			s.finish(now, l, out)
		} else {
			s.goOn(now, l, out)
		}
	}
}

// search begins a search.
func (s *seeker) search(now grid.Time, text string, who asker, out *grid.Outbox) {
	if len(text) == 0 || len(text) > textMax {
		s.answer(now, text, who, &Found{}, out)
		return
	}
	i := slices.IndexFunc(s.searches, func(l *search) bool { return l.text == text })
	switch {
	case i >= 0 && len(s.searches[i].askers) < askersMax:
		s.searches[i].askers = append(s.searches[i].askers, who)
	case i >= 0 || len(s.searches) >= searchesMax:
		s.answer(now, text, who, &Found{Err: ErrBusy}, out)
	default:
		l := &search{text: text, key: key(s.cfg.Federation, text), askers: []asker{who}, looking: true, deadline: now + lookMax}
		s.searches = append(s.searches, l)
		if own := s.publisher.own; own != nil && own.about(l.text) {
			s.take(now, l, own)
		}
		for _, r := range s.holder.about(now, l.text) {
			s.take(now, l, r)
		}
		out.Closest(l.key)
	}
}

// asked reports whether a look-up of a key is under way.
func (s *seeker) asked(k grid.Key) bool {
	return slices.ContainsFunc(s.searches, func(l *search) bool { return l.looking && l.key == k })
}

// closest takes the sites nearest to a key.
func (s *seeker) closest(now grid.Time, in *grid.Closest, out *grid.Outbox) {
	for _, l := range slices.Clone(s.searches) {
		if !l.looking || l.key != in.Key {
			continue
		}
		l.looking = false
		if len(in.Peers) == 0 {
			l.answer.Err = ErrRouter
		}
		for _, site := range in.Peers {
			if site != s.cfg.Self {
				l.rest = append(l.rest, site)
			}
		}
		s.goOn(now, l, out)
	}
}

// goOn asks the next sites, unless somebody has been found or nobody is left.
func (s *seeker) goOn(now grid.Time, l *search, out *grid.Outbox) {
	if len(l.rest) == 0 || l.waves > 0 && len(l.answer.Records) > 0 {
		s.finish(now, l, out)
		return
	}
	n := len(l.rest)
	if l.waves == 0 {
		n = min(n, firstWave)
	}
	s.token++
	l.waves++
	l.token, l.deadline = s.token, now+s.cfg.Timeout
	l.waiting, l.rest = slices.Clone(l.rest[:n]), l.rest[n:]
	l.answer.Asked += n
	for _, site := range l.waiting {
		out.Send(site, &Inquire{l.token, l.text})
	}
}

// informed takes an answer; of one who could not be asked m is nil.
func (s *seeker) informed(now grid.Time, from grid.SiteID, token uint64, m *Inform, out *grid.Outbox) {
	i := slices.IndexFunc(s.searches, func(l *search) bool { return !l.looking && l.token == token })
	if i < 0 {
		return
	}
	l := s.searches[i]
	j := slices.Index(l.waiting, from)
	if j < 0 {
		return
	}
	l.waiting = slices.Delete(l.waiting, j, j+1)
	if m != nil {
		l.answer.Answered++
		for _, r := range m.Records {
			s.take(now, l, r)
		}
	}
	if len(l.waiting) == 0 {
		s.goOn(now, l, out)
	}
}

// take takes a record into an answer if it counts, and is what was looked for. Of a
// site the newest counts that came by, whoever had it: nobody can bring an older one back.
func (s *seeker) take(now grid.Time, l *search, r *Record) {
	if !r.valid(now) || !r.about(l.text) {
		s.counts.Rejected++
		return
	}
	if r = s.newest(now, r); !r.valid(now) || !r.about(l.text) {
		s.counts.Rejected++
		return
	}
	i, found := slices.BinarySearchFunc(l.answer.Records, r.Site, func(r *Record, site grid.SiteID) int { return cmp.Compare(r.Site, site) })
	if found {
		l.answer.Records[i] = r
	} else {
		l.answer.Records = slices.Insert(l.answer.Records, i, r)
	}
}

// newest remembers a record if it is the newest of its site, and returns the one that is.
func (s *seeker) newest(now grid.Time, r *Record) *Record {
	old := s.seen[r.Site]
	switch {
	case old != nil && old.valid(now) && old.Sequence >= r.Sequence:
		return old
	case old == nil && len(s.order) < seenMax:
		s.order = append(s.order, r.Site)
	case old == nil:
		delete(s.seen, s.order[s.first])
		s.order[s.first] = r.Site
		s.first = (s.first + 1) % seenMax
	}
	s.seen[r.Site] = r
	return r
}

// finish answers whoever waits for a search, with what has not expired since it came.
func (s *seeker) finish(now grid.Time, l *search, out *grid.Outbox) {
	s.searches = slices.DeleteFunc(s.searches, func(other *search) bool { return other == l })
	l.answer.Records = slices.DeleteFunc(l.answer.Records, func(r *Record) bool { return !r.valid(now) })
	for _, who := range l.askers {
		found := l.answer
		found.Records = slices.Clone(found.Records)
		s.answer(now, l.text, who, &found, out)
	}
}
