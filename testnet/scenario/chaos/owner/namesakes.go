package owner

import (
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/node/member"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// Namesakes has two strangers of one name, whom members have certified, meet a site. It sees to it that
//
//   - who was certified later is not let in as long as the other one is a member under that name;
//   - it is once the other one has another name, or its certificate has ended, at that very instant, too.
type Namesakes struct {
	Sight
	certify Certify
	pairs   uint64
	shown   map[uint64]*showing // by token
	counts  NamesakeCounts
}

// NamesakeCounts is what a run has seen of namesakes.
type NamesakeCounts struct {
	In  int64 `json:"in"`  // who was let in
	Out int64 `json:"out"` // who was not, as another one had its name
}

// Certify returns what a member (by) makes of a stranger, as it is to a site whose clock shows now.
type Certify func(by int, g member.Grant, stranger grid.SiteID, now grid.Time) (*member.Member, error)

// showing is a certificate that a stranger shows.
type showing struct {
	*member.Member
	in       bool // it has to be let in; else it must not be
	answered bool
}

// clearly is how much later who has a worse claim to a name is certified: certificates count in seconds.
const clearly = 2 * grid.Second

// laterValid is for how long the later certificate is good.
const laterValid = 10 * grid.Minute

// NewNamesakes begins to watch.
func NewNamesakes(s Sight, certify Certify) *Namesakes {
	w := &Namesakes{Sight: s, certify: certify, shown: make(map[uint64]*showing)}
	s.N.Observe(testnet.Observer{Answer: w.answer})
	return w
}

// Counts returns what was seen.
func (w *Namesakes) Counts() NamesakeCounts { return w.counts }

// Do has two strangers of one name meet a site. The one is renamed later, or its certificate ends, as a
// number says, and the other one comes again.
func (w *Namesakes) Do(at int, which uint64) {
	if _, up := scenario.SiteAt(w.N, at); !up {
		return
	}
	number := w.pairs
	w.pairs++
	one, other := newStranger("namesake", w.N.Seed(), 2*number), newStranger("namesake", w.N.Seed(), 2*number+1)
	name, members := numbered("namesake", number), uint64(w.N.Len())
	by, otherBy := int(part(&which, members)), int(part(&which, members))
	span := [...]grid.Time{10 * grid.Second, 30 * grid.Second, 2 * grid.Minute}[part(&which, 3)]
	local := w.local(at)
	first := w.certified(by, one, name, local, span, local)
	if !w.show(at, first, true) {
		return
	}
	w.show(at, w.certified(otherBy, other, name, local+clearly, laterValid, local), false)
	if part(&which, 2) == 0 {
		w.N.Call(w.N.Now()+grid.Time(part(&which, uint64(span))), at, func() {
			local := w.local(at)
			if w.show(at, w.certified(otherBy, one, numbered("renamed", number), local, span, local), true) {
				w.show(at, w.certified(otherBy, other, name, local+clearly, laterValid, local), true)
			}
		})
		return
	}
	w.N.Call(w.N.Clock(at).True(first.Expires), at, func() {
		if local := w.local(at); local >= first.Expires { // else the clock was set
			w.show(at, w.certified(otherBy, other, name, local, laterValid, local), true)
		}
	})
}

// certified has a member certify a stranger under a name.
func (w *Namesakes) certified(by int, s stranger, name string, from, span, local grid.Time) *member.Member {
	m, err := w.certify(by, member.Grant{Key: s.key, Name: name, Rights: member.Usual, From: from, Expires: from + span}, s.id, local)
	if err != nil {
		w.Checks.Violated("%s may invite, and what it certifies does not count: %w", w.N.ID(by), err)
		return nil
	}
	return m
}

// show has a stranger show its certificate, and reports whether the site has said what it makes of it.
func (w *Namesakes) show(at int, m *member.Member, in bool) (answered bool) {
	if m == nil {
		return false
	}
	token, s := namesakeTokens+uint64(len(w.shown)), &showing{Member: m, in: in}
	w.shown[token] = s
	w.N.Step(at, &member.Introduce{Token: token, Member: m})
	return s.answered
}

// judge says what is wrong with what a site has said.
func (s *showing) judge(refusal error) error {
	switch {
	case s.in && refusal != nil:
		return fmt.Errorf("nobody else is called %s any more, and it is not let in: %w", s.Name, refusal)
	case !s.in && refusal == nil:
		return fmt.Errorf("it is let in as %s, which is the name of a member", s.Name)
	case !s.in && !errors.Is(refusal, member.ErrName):
		return fmt.Errorf("another member is called %s, and it is not let in for another reason: %w", s.Name, refusal)
	}
	return nil
}

// answer looks at whom a site lets in. One that is revoked itself lets nobody in.
func (w *Namesakes) answer(_ grid.Time, at int, a grid.Answer) {
	s, v := w.shown[a.Token], (*member.Introduced)(nil)
	if s != nil {
		v, _ = a.Value.(*member.Introduced)
	}
	if v == nil || w.excluded(at) {
		return
	}
	s.answered = true
	if err := s.judge(v.Err); err != nil {
		w.Checks.Violated("%s meets %s: %w", w.N.ID(at), s.Site, err)
	}
	if v.Err == nil {
		w.counts.In++
	} else {
		w.counts.Out++
	}
}
