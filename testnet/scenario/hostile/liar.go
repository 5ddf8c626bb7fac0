package hostile

import (
	"gridnode/directory"
	"gridnode/directory/trie"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
)

// What hostile members do as holders of the directory.
const (
	lieDrop    = "drop what others offer"                // and say that this is all
	lieHoles   = "leave holes in answers"                // every second quote of others
	lieSilent  = "do not answer"                         //
	lieStale   = "give stale quotes"                     // the oldest that they have
	lieForge   = "change prices"                         // and cannot sign that
	lieReplay  = "replay earlier answers"                // to other questions
	lieInvent  = "make up members"                       // who are none
	lieMislead = "send others to where there is nothing" // to each other, as holders of cells that there are not
)

var lies = []string{lieDrop, lieHoles, lieSilent, lieStale, lieForge, lieReplay, lieInvent, lieMislead}

// liar is a member whose answers as a holder are not what it knows.
type liar struct {
	*reader
	does  string
	first map[grid.SiteID]*directory.Quote // the oldest that it has had of each site
	last  *directory.Page                  // that it has sent
	count uint64
	sent  []grid.Send // the latest of its messages, for forgers
}

// utter has a hostile member send something.
type utter struct {
	to      grid.SiteID
	message grid.Message
}

// Step implements testnet.Site.
func (l *liar) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *utter:
		out.Send(in.to, in.message)
		return
	case *grid.Delivery:
		if l.t.is(in.From) {
			l.t.seen.hear(in.From, l.at, in.Message)
		}
	}
	before := len(out.Effects)
	l.reader.Step(now, in, out)
	orders := append([]grid.Effect(nil), out.Effects[before:]...)
	out.Effects = out.Effects[:before]
	for _, e := range orders {
		if e.Kind == grid.EffectSend {
			if to := out.Sends[e.Index].To; l.t.is(to) {
				message := l.say(to, out.Sends[e.Index].Message, out)
				if message == nil {
					continue
				}
				out.Sends[e.Index].Message = message
			}
			if l.sent = append(l.sent, out.Sends[e.Index]); len(l.sent) > 64 {
				l.sent = l.sent[1:]
			}
		}
		out.Effects = append(out.Effects, e)
	}
}

// say returns what is sent instead of a message; nil: nothing.
func (l *liar) say(to grid.SiteID, message grid.Message, out *grid.Outbox) grid.Message {
	switch m := message.(type) {
	case *directory.Page:
		return l.page(m)
	case *directory.Published:
		switch l.does {
		case lieSilent:
			return nil
		case lieMislead:
			return l.moved(m)
		}
	case *market.JobSubmission:
		l.t.forgers[l.at].beside(to, m, out)
	case *market.JobCompletion:
		if l.count++; l.count%2 == 0 {
			return l.t.forgers[l.at].overcharge(m)
		}
	}
	return message
}

// page returns nil for no answer.
func (l *liar) page(p *directory.Page) grid.Message {
	lie := *p
	lie.Quotes = nil
	if p.Held {
		lie.Mature = true // whoever believes it asks nobody else
	}
	l.count++
	switch l.does {
	case lieSilent:
		return nil
	case lieReplay:
		last := l.last
		l.last = p
		if last == nil || last.Cell != p.Cell {
			return p
		}
		lie = *last
		lie.Token, lie.Mature = p.Token, true
		return &lie
	case lieDrop:
		lie.More, lie.Barren = false, p.Fences
	case lieMislead:
		if x := nowhere(p.Cell.Prefix, p.Fences); x != (trie.Prefix{}) {
			lie.Fences, lie.HasFences, lie.Hints, lie.Summaries = []trie.Prefix{x}, true, []directory.Hint{{Cell: x, Holders: l.friends()}}, nil
			lie.Barren = nil
		}
		lie.Held, lie.Mature, lie.Sum = true, true, p.Sum+1 // it makes others doubt, too
	case lieInvent:
		lie.Quotes = append(lie.Quotes, l.t.forgers[l.at].stranger(p))
	}
	for i, q := range p.Quotes {
		honest := l.t.is(q.Site)
		switch {
		case l.does == lieDrop && honest, l.does == lieMislead && honest, l.does == lieHoles && honest && i%2 == 0:
			continue
		case l.does == lieStale:
			if l.first[q.Site] == nil {
				l.first[q.Site] = q
			}
			q = l.first[q.Site]
		case l.does == lieForge:
			cheap := *q
			cheap.Price, cheap.Sequence = 1, q.Sequence+1
			cheap.Sealed = l.t.forgers[l.at].reseal(&cheap) // by itself, who is another
			q = &cheap
		}
		lie.Quotes = append(lie.Quotes, q)
	}
	if l.does == lieForge || l.does == lieInvent {
		l.t.mark("directory.page: "+l.does, &lie)
	}
	return &lie
}

// moved says that a quote belongs into a cell that there is not, which friends hold.
func (l *liar) moved(m *directory.Published) grid.Message {
	lie := &directory.Published{Sequence: m.Sequence}
	for _, r := range m.Receipts {
		if x := nowhere(r.Cell.Prefix, nil); x != (trie.Prefix{}) && !r.Gone {
			r.Moved, r.Absent, r.To, r.Fences, r.Holders = true, true, x, []trie.Prefix{x}, l.friends()
		}
		lie.Receipts = append(lie.Receipts, r)
	}
	return lie
}

// nowhere returns a cell below another one that there is hardly; the zero value if there is
// no room for it.
func nowhere(x trie.Prefix, _ []trie.Prefix) trie.Prefix {
	if x.Length > 120 {
		return trie.Prefix{}
	}
	return trie.PrefixOf(x.Bits, x.Length+1)
}

// friends returns some hostile members.
func (l *liar) friends() (list []grid.SiteID) {
	for i := range l.t.cfg.Sites {
		if !l.t.honest(i) && len(list) < 4 {
			list = append(list, l.t.IDs[i])
		}
	}
	return list
}

// heard is a message that a hostile member has received.
type heard struct {
	from    grid.SiteID
	at      int
	message grid.Message
}

// overheard is what hostile members have received lately, by kind.
type overheard struct{ by [wire.KindMax][]heard }

// heardMax bounds what is remembered of each kind.
const heardMax = 128

func (o *overheard) hear(from grid.SiteID, at int, message grid.Message) {
	kind := message.MessageKind()
	if kind >= wire.KindMax {
		return
	}
	if o.by[kind] = append(o.by[kind], heard{from, at, message}); len(o.by[kind]) > heardMax {
		o.by[kind] = o.by[kind][1:]
	}
}

// mark notes that a message is forged, and how.
func (t *town) mark(what string, message grid.Message) {
	t.sealed[message] = what
	f := t.forged[what]
	f.Sent++
	t.forged[what] = f
}
