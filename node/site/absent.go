package site

import (
	"fmt"

	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/market/bank"
)

// absent takes an input that is for a part which this site does not have. Users hear
// that; whatever else it is, nobody here has to do with it.
func (s *Site) absent(in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *Drain:
		s.draining = true
	case *FindQuotes:
		out.Answer(in.Token, &directory.Found{End: true})
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
	case *bank.Grant:
		s.noBank(in.Token, out)
	case *bank.Transfer:
		s.noBank(in.Token, out)
	case *bank.Question:
		s.noBank(in.Token, out)
	case *dataset.Hold:
		out.Answer(in.Token, &dataset.Held{Err: fmt.Errorf("%w: this site is alone", dataset.ErrRefused)})
	case *dataset.Find:
		out.Answer(in.Token, &dataset.Answer{})
	case *dataset.Drop:
		out.Answer(in.Token, &dataset.Held{Err: dataset.ErrUnknown})
	}
}

func (s *Site) noBank(token uint64, out *grid.Outbox) {
	out.Answer(token, &bank.Statement{Refusal: bank.NoBank, Account: s.cfg.ID})
}
