package site

import (
	"slices"

	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/wire"
)

// quotes is the part that tells others what this site offers and how busy it is, and
// knows it of them: it owns the directory.
type quotes struct {
	*base
	dir      *directory.Directory
	agent    core                        // asks the directory by itself
	askers   map[directory.QueryID]asker // who else has asked
	asked    [queryMessagesMax + 1]int64 // queries, by the messages they took
	spare    func(now grid.Time) int64   // lease.Matchmaker.Spare
	siblings *siblings                   // nil: whoever listens to the topic hears this site
	listed   bool                        // it has a quote; else it only gossips
	quoted   directory.Quote             // as last given to the directory
	until    grid.Time                   // when its Wait is over
}

// asker is whoever waits for the directory's answer.
type asker interface {
	found(now grid.Time, in *directory.Found, out *grid.Outbox)
}

// question is the token of a user who has asked the directory.
type question uint64

func (q question) found(_ grid.Time, in *directory.Found, out *grid.Outbox) {
	out.Answer(uint64(q), in)
}

// queryMessagesMax is from how many messages on queries are counted together.
const queryMessagesMax = 63

func (*quotes) takes(b *board) {
	of := func(s *Site) *quotes { return s.quotes }
	hear(b, of, (*quotes).message, append(kindsOf(directory.NewProtocol(nil)), wire.GossipLoad)...).private = calmSiblings | calmQuotes
	take(b, of, (*quotes).ask)
	take(b, of, (*quotes).answered)
	take(b, of, (*quotes).drain)
}

func (qs *quotes) message(now grid.Time, in grid.Input, out *grid.Outbox) {
	if qs.siblings != nil {
		qs.siblings.gossiped(now, in, out)
	}
	qs.dir.Step(now, in, out)
}

func (qs *quotes) closest(now grid.Time, in *grid.Closest, out *grid.Outbox) {
	qs.dir.Step(now, in, out)
}

func (qs *quotes) tick(now grid.Time, out *grid.Outbox) { qs.dir.Step(now, grid.Tick{}, out) }

func (qs *quotes) nextTimer() grid.Time { return qs.dir.NextTimer() }

// ask asks the directory on behalf of a user.
func (qs *quotes) ask(now grid.Time, in *FindQuotes, out *grid.Outbox) {
	qs.find(now, in.Query, question(in.Token), out)
}

// find asks the directory; who hears the answer.
func (qs *quotes) find(now grid.Time, q directory.Query, who asker, out *grid.Outbox) directory.QueryID {
	id := qs.dir.Find(now, q, out)
	qs.askers[id] = who
	return id
}

// answered passes the directory's answer to whoever asked.
func (qs *quotes) answered(now grid.Time, in *directory.Found, out *grid.Outbox) {
	qs.asked[min(max(in.Messages, 0), queryMessagesMax)]++
	if who := qs.askers[in.ID]; who != nil {
		delete(qs.askers, in.ID)
		who.found(now, in, out)
		return
	}
	qs.agent.Step(now, in, out)
}

// tell tells the directory and the siblings what this site offers now.
func (qs *quotes) tell(now grid.Time, out *grid.Outbox) {
	if qs.draining {
		return
	}
	state := qs.cluster.State(now)
	wait := min(state.Wait, grid.SpanMax)
	if qs.listed {
		q := directory.Quote{
			Site: qs.cfg.ID, Name: qs.cfg.Name, Resources: qs.cfg.Resources, Rating: qs.cfg.Rating,
			Price: qs.price(), Cost: qs.cfg.Cost, Foreign: qs.cfg.Foreign, Modules: qs.cfg.Modules,
			Free: state.Free, Widest: state.Widest, Wait: wait, GPUs: qs.cluster.Stock(now),
			GPUWeight: qs.cfg.GPUWeight,
		}
		if !sameOffer(&q, &qs.quoted) || q.Wait > 0 && now+q.Wait != qs.until {
			qs.quoted, qs.until = q, now+q.Wait
			qs.dir.SetQuote(now, q, out)
		}
	}
	qs.dir.SetLoad(now, directory.Load{
		Free: state.Free, Widest: state.Widest, Spare: qs.spare(now), Wait: wait,
		Queued: int64(state.Queued), QueuedWork: int64(state.QueuedWork) / int64(grid.Second), Headed: qs.headed(),
	}, out)
}

// drain withdraws the quote, or publishes it again; running and queued jobs go on.
func (qs *quotes) drain(now grid.Time, in *Drain, out *grid.Outbox) {
	if qs.listed && !qs.draining && !in.Back {
		qs.dir.Withdraw(now, out)
		qs.quoted = directory.Quote{} // it has to be said anew
	}
	qs.draining = !in.Back
	in.answer(out)
}

// stale returns until when the offer stays as it is.
func (qs *quotes) stale() grid.Time {
	if qs.draining {
		return grid.Never
	}
	return qs.cluster.Steady()
}

// sameOffer reports whether two quotes of this site say the same. A wait that gets
// shorter as time passes is the same offer.
func sameOffer(a, b *directory.Quote) bool {
	return a.Site == b.Site && a.Price == b.Price && a.Free == b.Free && a.Widest == b.Widest && (a.Wait > 0) == (b.Wait > 0) &&
		a.GPUs.SameLoad(b.GPUs)
}

// loads tells the matchmaker what a site has gossiped that it would lend.
func (qs *quotes) loads(site grid.SiteID) (free int64, report uint64, ok bool) {
	l, ok := qs.dir.Load(site)
	return l.Spare, l.Sequence, ok
}

// names is the part that has this site found by its name and ID, and finds others by
// theirs.
type names struct {
	*base
	registry *record.Registry
	siblings *siblings // nil: nobody has use for random sites
	lends    bool
	here     []string // addresses of the node
	said     bool     // the registry knows what this site says of itself
	rivals   int      // others that claim its name, as the log tells
}

func (*names) takes(b *board) {
	of := func(s *Site) *names { return s.names }
	hear(b, of, (*names).message, kindsOf(&record.Protocol)...).private = calmNames
	take(b, of, (*names).find).private = calmNames
	take(b, of, (*names).meant).private = calmNames
	take(b, of, (*names).moved).private = calmNames
}

func (n *names) message(now grid.Time, in grid.Input, out *grid.Outbox) {
	n.registry.Step(now, in, out)
	if rivals := n.registry.Rivals(); len(rivals) != n.rivals {
		if n.rivals = len(rivals); n.rivals > 0 && len(n.notices) < noticesMax {
			n.notices = append(n.notices, Notice{
				"other sites claim this site's name, so it names nobody: 'gridnode sites NAME' shows who; give another one as site.name",
				[]any{"name", n.cfg.Name, "sites", rivals},
			})
		}
	}
}

// closest takes the sites nearest to what stands for this site, or for one that is looked
// for. As they lie there by chance, the survey need not look for sites drawn at random.
func (n *names) closest(now grid.Time, in *grid.Closest, out *grid.Outbox) {
	n.sample(now, in.Peers, out)
	n.registry.Step(now, in, out)
}

// remember takes up who had the site's record before a restart: these lie by chance as well.
func (n *names) remember(now grid.Time, places []record.Place, out *grid.Outbox) {
	for i := range places {
		n.sample(now, places[i].Holders, out)
	}
	n.registry.Remember(now, places)
}

// sample tells the survey of the first of these sites.
func (n *names) sample(now grid.Time, sites []grid.SiteID, out *grid.Outbox) {
	if n.siblings == nil || len(sites) == 0 {
		return
	}
	others := slices.DeleteFunc(slices.Clone(sites), func(site grid.SiteID) bool { return site == n.cfg.ID })
	n.siblings.sampled(now, &sibling.Sampled{Sites: others[:min(len(others), samplesMax)]}, out)
}

// samplesMax is how many sites of a look-up the survey hears of.
const samplesMax = 4

func (n *names) find(now grid.Time, in *record.Find, out *grid.Outbox) { n.registry.Step(now, in, out) }

func (n *names) meant(now grid.Time, in *record.Meant, out *grid.Outbox) {
	n.registry.Step(now, in, out)
}

// moved takes other addresses than before.
func (n *names) moved(now grid.Time, in *Here, out *grid.Outbox) {
	n.here = record.Bounded(in.Addresses)
	if n.said {
		n.say(now, out)
	}
}

// say tells the registry what this site says of itself.
func (n *names) say(now grid.Time, out *grid.Outbox) {
	n.said = true
	offer := record.Offer{
		Name: n.cfg.Name, Authority: n.cfg.Siblings.Authority, Addresses: n.here, Resources: n.cfg.Resources, Rating: n.cfg.Rating,
	}
	for _, s := range []struct {
		service record.Services
		does    bool
	}{{record.Runs, n.cfg.Foreign || n.cfg.Modules}, {record.Lends, n.lends}, {record.Banks, n.cfg.Bank.Offer}, {record.Heads, len(n.cfg.Heads.Members) > 0}} {
		if s.does {
			offer.Services |= s.service
		}
	}
	n.registry.Set(now, offer, out)
}

func (n *names) tick(now grid.Time, out *grid.Outbox) {
	if !n.said {
		n.say(now, out)
	}
	if n.registry.NextTimer() <= now {
		n.registry.Step(now, grid.Tick{}, out)
	}
}

func (n *names) nextTimer() grid.Time { return n.registry.NextTimer() }
