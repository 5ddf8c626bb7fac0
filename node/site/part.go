package site

import (
	"fmt"
	"math/rand/v2"
	"reflect"

	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/wire"
	"gridnode/market/bank"
)

// part is what a Site is made of: it owns some of the state, and all inputs of some
// types and messages of some kinds are for it alone. Parts that have to do with one
// another call each other's methods; they reach the other cores of the site through the
// part that owns them.
type part interface {
	// takes says what is for the part. It is called on a nil part: what it enters is the
	// same for all sites.
	takes(*board)
}

// ticker is a part to which time means something.
type ticker interface {
	// tick does what is due. When anything but what is private to one part has happened
	// all parts have their ticks, in the order that builder.arrange gives them.
	tick(now grid.Time, out *grid.Outbox)
	// nextTimer returns when the part next needs a tick, and grid.Never if it needs none.
	nextTimer() grid.Time
}

// starter is a part that starts tasks, once all parts have done what is due.
type starter interface {
	startTasks(now grid.Time, out *grid.Outbox)
}

// teller is a part that says how things stand once everything has started.
type teller interface {
	tell(now grid.Time, out *grid.Outbox)
	// stale returns until when what it said stays true if nothing happens. Nobody needs
	// a Tick for that; but if one comes then it is a whole one.
	stale() grid.Time
}

// recorder is a part that keeps records of its own.
type recorder interface {
	// keeps returns the prefixes of their keys.
	keeps() []string
	// recover takes up what was stored.
	recover(now grid.Time, records records, out *grid.Outbox) error
}

// board tells to which part an input goes, by its type, or by the kind of the message
// that it is about. There is one for all sites; what is for a part that a site does
// not have, absent answers.
type board struct {
	inputs map[reflect.Type]*handler
	kinds  [1 << 8]*handler
}

// handler gives an input to its part.
type handler struct {
	do func(s *Site, now grid.Time, in grid.Input, out *grid.Outbox) (there bool)

	// private: the input changes nothing that another part looks at in its tick, and at most
	// when these need one; 0: it may change anything. Most inputs of a site in a large
	// federation are private, and a Tick that looks at everything would cost more than they do.
	private calms
}

// calms is a set of the parts whose ticks change nothing that another part looks at in its
// own.
type calms uint8

const (
	calmSiblings calms = 1 << iota
	calmQuotes
	calmNames
	calmLatencies
	calmNobody // none of them, so that a handler may say so
	calmAll    = calmSiblings | calmQuotes | calmNames | calmLatencies
)

// calmPart is one of them.
type calmPart struct {
	ticker
	bit  calms
	next grid.Time // when it needs a Tick
}

// switchboard is the board of all sites.
var switchboard = newBoard(
	(*recovery)(nil), (*jobs)(nil), (*quotes)(nil), (*siblings)(nil), (*placing)(nil), (*loans)(nil), (*pilots)(nil), (*links)(nil), (*payment)(nil),
	(*borrowing)(nil), (*spreads)(nil), (*latencies)(nil), (*inputs)(nil), (*gangs)(nil), (*limbo)(nil), (*packing)(nil), (*names)(nil), (*membership)(nil), (*fees)(nil), (*room)(nil), (*guests)(nil), (*chronicle)(nil), (*leased)(nil),
)

func newBoard(parts ...part) *board {
	b := &board{inputs: make(map[reflect.Type]*handler)}
	for _, p := range parts {
		p.takes(b)
	}
	return b
}

// take enters a type of inputs: do of the part that of returns takes them. It panics if
// another part takes them already.
func take[P, I any](b *board, of func(*Site) *P, do func(*P, grid.Time, I, *grid.Outbox)) *handler {
	kind := reflect.TypeFor[I]()
	if b.inputs[kind] != nil {
		panic(fmt.Sprintf("site: two parts take %v", kind))
	}
	h := &handler{do: func(s *Site, now grid.Time, in grid.Input, out *grid.Outbox) bool {
		p := of(s)
		if p != nil {
			do(p, now, in.(I), out)
		}
		return p != nil
	}}
	b.inputs[kind] = h
	return h
}

// hear enters kinds of messages: do of the part that of returns takes their deliveries,
// and hears which were not delivered.
func hear[P any](b *board, of func(*Site) *P, do func(*P, grid.Time, grid.Input, *grid.Outbox), kinds ...grid.Kind) *handler {
	h := &handler{do: func(s *Site, now grid.Time, in grid.Input, out *grid.Outbox) bool {
		p := of(s)
		if p != nil {
			do(p, now, in, out)
		}
		return p != nil
	}}
	for _, kind := range kinds {
		if b.kinds[kind] != nil {
			panic(fmt.Sprintf("site: two parts hear %s", wire.KindName(kind)))
		}
		b.kinds[kind] = h
	}
	return h
}

// kindsOf returns the kinds of the messages of a protocol, without some.
func kindsOf(p *wire.Protocol, but ...grid.Kind) (kinds []grid.Kind) {
next:
	for kind := range p.Decoders {
		for _, b := range but {
			if kind == b {
				continue next
			}
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// find returns who takes an input, nil if nobody does. Only messages are unknown to
// all: an input of an unknown type is a mistake of the driver, or of a core.
func (b *board) find(in grid.Input) *handler {
	switch in := in.(type) {
	case *grid.Delivery:
		return b.kinds[in.Message.MessageKind()]
	case *grid.Undelivered:
		return b.kinds[in.Message.MessageKind()]
	}
	h := b.inputs[reflect.TypeOf(in)]
	if h == nil {
		panic(fmt.Sprintf("site: unknown input %T", in))
	}
	return h
}

// base is what all parts of a site know.
type base struct {
	cfg      Config
	cluster  *lrms.Cluster
	price    func() grid.Price // what the site charges at the moment
	draining bool              // it takes no new work
	notices  []Notice          // for the log; see Site.Notices
}

// requestOf returns what a job asks of this site's processors.
func (b *base) requestOf(e *entry) lrms.Request {
	return lrms.Request{ID: e.task(), Processors: e.job.Processors, Estimate: e.job.SeenFrom(b.cfg.ID).EstimateAt(b.cfg.Rating), GPUs: e.job.GPUs}
}

// limitOf returns how long an execution of a job may take here.
func (b *base) limitOf(j *grid.Job) grid.Time {
	return max(j.Estimate, j.SeenFrom(b.cfg.ID).EstimateAt(b.cfg.Rating))
}

// marketed reports whether the market places the job: it has a deadline, a budget or a
// goal, or its owner named a site. Where TITAN orders the queue, a deadline alone does
// not take a job there that is to run here: TITAN weighs it, unless it needs GPUs.
func (b *base) marketed(j *grid.Job) bool {
	home := b.cfg.ID
	if b.cfg.Discipline == lrms.TITAN && j.GPUs.Count == 0 && j.Goal == grid.GoalLocal && j.Budget < 0 && (j.Site == "" || j.Site == home) {
		return false
	}
	return j.Goal != grid.GoalLocal || j.Deadline != grid.Never || j.Budget >= 0 || j.Site != "" && j.Site != home
}

// stream is one of the independent sequences of random numbers that a site draws from.
// Their numbers never change: with them the same seed gives the same run.
type stream uint64

const (
	streamDirectory stream = 1
	streamMarket    stream = 2
	streamDelegate  stream = 3 // of the matchmaker
	streamLatency   stream = 4
	streamDivide    stream = 5 // of the coordinator
	streamData      stream = 6
	streamSiblings  stream = 7
	streamNames     stream = 8
	streamMembers   stream = 9
	streamPacking   stream = 16
)

// of returns the sequence that belongs to a site's seed.
func (s stream) of(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(s))) }

// absent takes an input that is for a part which this site does not have. Users hear
// that; whatever else it is, nobody here has to do with it.
func (s *Site) absent(in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *Drain:
		s.draining = !in.Back
		in.answer(out)
	case *FindQuotes:
		out.Answer(in.Token, &directory.Found{End: true})
	case *record.Find:
		out.Answer(in.Token, &record.Found{})
	case *record.Meant:
		out.Answer(in.Token, record.Plainly(in))
	case *SetPrice:
		set := &PriceSet{Before: s.cfg.Price, Price: s.cfg.Price, Err: checkPrice(in.Price)}
		if set.Err == nil {
			s.cfg.Price, set.Price = in.Price, in.Price
		}
		out.Answer(in.Token, set)
	case *RequestLease:
		out.Answer(in.Token, &LeaseAnswer{Err: fmt.Errorf("this site is alone: %w", ErrLease)})
	case *ChangeLease:
		out.Answer(in.Token, &LeaseAnswer{Err: noLease(in)})
	case *ChangeLink:
		out.Answer(in.Token, &LinkAnswer{Err: fmt.Errorf("this site is alone: %w", ErrLink)})
	case *ConfigureGuests:
		out.Answer(in.Token, &GuestsChanged{})
	case *BanGuests:
		out.Answer(in.Token, &GuestsChanged{Err: errNoGuests})
	case *ChangeGuests:
		out.Answer(in.Token, &GuestsChanged{Err: errNoGuests})
	case *bank.Grant:
		s.noBank(in.Token, out)
	case *bank.Transfer:
		s.noBank(in.Token, out)
	case *bank.Question:
		s.noBank(in.Token, out)
	case *dataset.Hold:
		out.Answer(in.Token, &dataset.Held{Err: fmt.Errorf("%w: this site is alone", dataset.ErrRefused)})
	case *dataset.Find:
		out.Answer(in.Token, &dataset.Found{})
	case *dataset.Drop:
		out.Answer(in.Token, &dataset.Held{Err: dataset.ErrUnknown})
	}
}

func (s *Site) noBank(token uint64, out *grid.Outbox) {
	out.Answer(token, &bank.Statement{Refusal: bank.NoBank, Account: s.cfg.ID})
}
