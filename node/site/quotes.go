package site

import (
	"gridnode/directory"
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
	hear(b, of, (*quotes).message, append(kindsOf(directory.NewProtocol(nil)), wire.GossipLoad)...).private = true
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
			Price: qs.price(), Cost: qs.cfg.Cost, Foreign: qs.cfg.Foreign,
			Free: state.Free, Widest: state.Widest, Wait: wait,
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

// drain withdraws the quote; running and queued jobs go on.
func (qs *quotes) drain(now grid.Time, _ *Drain, out *grid.Outbox) {
	if qs.listed && !qs.draining {
		qs.dir.Withdraw(now, out)
	}
	qs.draining = true
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
	return a.Site == b.Site && a.Price == b.Price && a.Free == b.Free && a.Widest == b.Widest && (a.Wait > 0) == (b.Wait > 0)
}

// loads tells the matchmaker what a site has gossiped that it would lend.
func (qs *quotes) loads(site grid.SiteID) (free int64, report uint64, ok bool) {
	l, ok := qs.dir.Load(site)
	return l.Spare, l.Sequence, ok
}
