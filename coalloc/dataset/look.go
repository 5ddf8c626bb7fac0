package dataset

import (
	"cmp"
	"errors"
	"slices"

	"gridnode/grid"
)

// ErrBusy says that too many look-ups are under way; ask again later.
var ErrBusy = errors.New("too many look-ups of data sets are under way")

// ErrUnanswered says that the directory has not said in time whom to ask: somebody may hold the
// data set, and ask again later.
var ErrUnanswered = errors.New("the directory has not said in time who may hold it")

// phase is where a look-up stands.
type phase uint8

const (
	resting phase = iota // what is known counts until its deadline
	waiting              // in the backlog
	finding              // the DHT is looking for provider records
	asking               // whom they name is being asked
)

// look is what is known of one data set, and the look-up that is under way for it.
type look struct {
	name     string
	key      grid.Key
	phase    phase
	deadline grid.Time // of the phase
	asked    []grid.SiteID
	next     Found    // being collected
	answer   Found    // of the look-up before, if known
	known    bool     // a look-up has ended
	none     int      // look-ups one after the other that have found nobody
	askers   []uint64 // tokens of users who wait for the end
}

// Want begins a look-up of a data set unless what is known is fresh, and reports
// whether it is. Learnt comes when it has ended.
func (c *Catalog) Want(now grid.Time, name string, out *grid.Outbox) bool {
	l := c.looks[name]
	if l != nil && l.phase == resting && now < l.deadline {
		return true
	}
	if l == nil || l.phase == resting {
		c.begin(now, name, out)
	}
	return false
}

// Known returns who holds a data set, by the latest look-up that has ended and what
// this site holds; ok is false if none has.
func (c *Catalog) Known(name string) (a Found, ok bool) {
	l := c.looks[name]
	if l != nil {
		a, ok = l.answer, l.known
	}
	if o := c.sets[name]; o != nil {
		h := Holder{c.cfg.Self, o.Size, o.Shared, 0}
		at, _ := slices.BinarySearchFunc(a.Holders, h, func(a, b Holder) int { return cmp.Compare(a.Site, b.Site) })
		a.Holders = slices.Insert(slices.Clone(a.Holders), at, h)
	}
	return a, ok
}

// find looks a data set up on behalf of a user, whatever is known.
func (c *Catalog) find(now grid.Time, in *Find, out *grid.Outbox) {
	if err := grid.CheckDataName(in.Name); err != nil {
		out.Answer(in.Token, &Found{Err: err})
		return
	}
	l := c.looks[in.Name]
	if l == nil || l.phase == resting {
		l = c.begin(now, in.Name, out)
	}
	if l == nil || len(l.askers) >= askersMax {
		out.Answer(in.Token, &Found{Err: ErrBusy})
		return
	}
	l.askers = append(l.askers, in.Token)
}

// begin begins a look-up. It returns nil if there is no room for what it would find.
func (c *Catalog) begin(now grid.Time, name string, out *grid.Outbox) *look {
	l := c.looks[name]
	if l == nil {
		if len(c.looks) >= looksMax && !c.evict() {
			return nil
		}
		l = &look{name: name, key: c.Key(name)}
		c.looks[name], c.keys[l.key] = l, name
	}
	if len(c.alive) >= looksAlive {
		l.phase = waiting
		c.backlog = append(c.backlog, l)
		return l
	}
	c.start(now, l, out)
	return l
}

func (c *Catalog) start(now grid.Time, l *look, out *grid.Outbox) {
	l.phase, l.deadline, l.next = finding, now+findMax, Found{}
	c.alive = append(c.alive, l)
	c.due = min(c.due, l.deadline)
	out.FindProviders(l.key)
}

// evict forgets the data set that was looked up longest ago, and reports whether there
// is one that is not being looked up.
func (c *Catalog) evict() bool {
	var oldest *look
	for _, l := range c.looks {
		if l.phase == resting && (oldest == nil || cmp.Or(cmp.Compare(l.deadline, oldest.deadline), cmp.Compare(l.name, oldest.name)) < 0) {
			oldest = l
		}
	}
	if oldest == nil {
		return false
	}
	delete(c.looks, oldest.name)
	c.forgetKey(oldest.name)
	return true
}

// forgetKey drops the key of a name that nothing has any more.
func (c *Catalog) forgetKey(name string) {
	if c.sets[name] == nil && c.looks[name] == nil {
		delete(c.keys, c.Key(name))
	}
}

// found asks everybody of whom there is a provider record, and who held it before.
func (c *Catalog) found(now grid.Time, in *grid.Providers, out *grid.Outbox) {
	l := c.looks[c.keys[in.Key]]
	if l == nil || l.phase != finding {
		return
	}
	l.phase, l.deadline, l.asked = asking, now+askMax, l.asked[:0]
	for _, h := range l.answer.Holders {
		l.ask(c, h.Site)
	}
	for _, site := range in.Peers {
		l.ask(c, site)
	}
	l.next.Named = len(l.asked)
	for _, site := range l.asked {
		out.Send(site, &Inquire{l.name})
	}
	if len(l.asked) == 0 {
		c.end(now, l, out)
	}
}

func (l *look) ask(c *Catalog, site grid.SiteID) {
	if site != c.cfg.Self && len(l.asked) < HoldersMax && !slices.Contains(l.asked, site) {
		l.asked = append(l.asked, site)
	}
}

// informed takes the answer of a site that was asked.
func (c *Catalog) informed(now grid.Time, from grid.SiteID, in *Inform, out *grid.Outbox) {
	l := c.looks[in.Name]
	if l == nil || l.phase != asking || !l.answered(from) {
		return
	}
	if in.Held {
		l.next.Holders = append(l.next.Holders, Holder{from, in.Size, in.Shared, now})
	}
	if len(l.asked) == 0 {
		c.end(now, l, out)
	}
}

// silent notes that a site cannot be asked.
func (c *Catalog) silent(now grid.Time, site grid.SiteID, name string, out *grid.Outbox) {
	l := c.looks[name]
	if l == nil || l.phase != asking || !l.answered(site) {
		return
	}
	l.miss(now, site)
	if len(l.asked) == 0 {
		c.end(now, l, out)
	}
}

// miss notes that a site that was asked has not answered.
func (l *look) miss(now grid.Time, site grid.SiteID) {
	l.next.Silent++
	for _, h := range l.answer.Holders {
		if h.Site == site {
			l.recall(now, h)
		}
	}
}

// unanswered notes that the directory has not said whom to ask: who held it lately counts still.
func (l *look) unanswered(now grid.Time) {
	l.next.Err = ErrUnanswered
	for _, h := range l.answer.Holders {
		l.recall(now, h)
	}
}

// recall counts a holder of before, if it was heard lately.
func (l *look) recall(now grid.Time, h Holder) {
	if now-h.heard < silentMax {
		l.next.Holders = append(l.next.Holders, h)
	}
}

// answered takes a site off those that were asked, and reports whether it was.
func (l *look) answered(site grid.SiteID) bool {
	i := slices.Index(l.asked, site)
	if i >= 0 {
		l.asked = slices.Delete(l.asked, i, i+1)
	}
	return i >= 0
}

// expire ends look-ups whose time is over.
func (c *Catalog) expire(now grid.Time, out *grid.Outbox) {
	for i := 0; i < len(c.alive); {
		if l := c.alive[i]; l.deadline > now {
			c.due = min(c.due, l.deadline)
			i++
		} else {
			if l.phase == finding {
				l.unanswered(now)
			}
			c.end(now, l, out)
		}
	}
}

// end is the end of a look-up, and the beginning of the one that has waited longest.
func (c *Catalog) end(now grid.Time, l *look, out *grid.Outbox) {
	for _, site := range l.asked {
		l.miss(now, site)
	}
	slices.SortFunc(l.next.Holders, func(a, b Holder) int { return cmp.Compare(a.Site, b.Site) })
	l.answer, l.known, l.next, l.asked = l.next, true, Found{}, nil
	l.phase, l.deadline = resting, now+min(freshNone<<min(l.none, 8), freshFound)
	l.none++
	if len(l.answer.Holders) > 0 {
		l.deadline, l.none = now+freshFound, 0
	}
	c.alive = slices.DeleteFunc(c.alive, func(o *look) bool { return o == l })
	out.Local(&Learnt{l.name})
	for _, token := range l.askers {
		a, _ := c.Known(l.name)
		out.Answer(token, &a)
	}
	l.askers = nil
	if len(c.backlog) > 0 {
		next := c.backlog[0]
		c.backlog = slices.Delete(c.backlog, 0, 1)
		c.start(now, next, out)
	}
}

// Looking reports whether a look-up of a data set is under way or waits for its turn.
func (c *Catalog) Looking(name string) bool {
	l := c.looks[name]
	return l != nil && l.phase != resting
}
