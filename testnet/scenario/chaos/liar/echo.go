package liar

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/market/keepalive"
)

// Heard is something Repeatable that was said to a site.
type Heard struct {
	From    grid.SiteID
	Message grid.Message
}

// Echo says to a site once more what it was told lately, twice: the second time nothing follows that
// lasts (J-2, C-3). Then the same is said of another epoch, guarantee or lease, and by another site:
// nothing follows from that either (J-4, R-1). stored is what the site has saved.
func (t *Twin) Echo(heard []Heard, stored func(key string) []byte) error {
	t.saved = make(map[string][]byte)
	for _, h := range heard {
		if !slices.Contains(t.Then, h.From) {
			continue
		}
		t.lasting(h.From, h.Message, stored)
		if what := t.lasting(h.From, h.Message, stored); what != "" {
			return fmt.Errorf("%s says twice %T %+v, and the second time it %s", h.From, h.Message, h.Message, what)
		}
		for _, other := range altered(h.Message) {
			if what := t.lasting(h.From, other, stored); what != "" {
				return fmt.Errorf("%s has said %T %+v, says %+v, and it %s", h.From, h.Message, h.Message, other, what)
			}
		}
		if !personal(h.Message) {
			continue
		}
		for _, id := range t.Then {
			if id == h.From {
				continue
			}
			if what := t.lasting(id, h.Message, stored); what != "" {
				return fmt.Errorf("%s has said %T %+v, %s says so, and it %s", h.From, h.Message, h.Message, id, what)
			}
		}
	}
	return nil
}

// Ahead says to a site, before it is told something, the same of another epoch, guarantee or lease, and has
// another site say it: nothing follows that lasts (J-4, R-1). stored is what the site has saved.
func (t *Twin) Ahead(h Heard, stored func(key string) []byte) error {
	t.saved = make(map[string][]byte)
	for _, other := range altered(h.Message) {
		if what := t.lasting(h.From, other, stored); what != "" {
			return fmt.Errorf("%s says %T %+v before %+v, and it %s", h.From, other, other, h.Message, what)
		}
	}
	other := slices.IndexFunc(t.Then, func(id grid.SiteID) bool { return id != h.From })
	if other < 0 || !personal(h.Message) {
		return nil
	}
	if what := t.lasting(t.Then[other], h.Message, stored); what != "" {
		return fmt.Errorf("%s says %T %+v before %s does, and it %s", t.Then[other], h.Message, h.Message, h.From, what)
	}
	return nil
}

// lasting has the site hear a message, and returns what follows from it that lasts; empty: nothing.
func (t *Twin) lasting(from grid.SiteID, m grid.Message, stored func(key string) []byte) (what string) {
	for ticks := 0; ticks == 0 || t.Site.NextTimer() <= t.Now && ticks < ticksMost; ticks++ { // what is due still is no effect of it
		maps.Copy(t.saved, changes(t.step(grid.Tick{})))
	}
	out := t.step(&grid.Delivery{From: from, Message: m})
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectStart:
			what = fmt.Sprintf("starts job %s", out.Tasks[e.Index].ID.Job)
		case grid.EffectKill:
			what = fmt.Sprintf("ends job %s", out.Tasks[e.Index].ID.Job)
		}
	}
	changed := changes(out)
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		was, known := t.saved[key]
		if !known {
			was = stored(key)
		}
		if is := changed[key]; !bytes.Equal(was, is) {
			what = fmt.Sprintf("changes %s (it is there: %t, was: %t)", key, is != nil, was != nil)
		}
		t.saved[key] = changed[key]
	}
	return what
}

// ticksMost bounds how often what is due has something else be due at once.
const ticksMost = 20

// changes returns what is saved in the end of what a step orders; nil: it is forgotten.
func changes(out *grid.Outbox) map[string][]byte {
	changed := make(map[string][]byte)
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSave:
			changed[out.Records[e.Index].RecordKey()] = out.Records[e.Index].AppendRecord(nil)
		case grid.EffectDelete:
			changed[out.Records[e.Index].RecordKey()] = nil
		}
	}
	return changed
}

// further is how much later an epoch is that no job will have.
const further = 1 << 16

// off returns a task with such an epoch.
func off(id grid.TaskID) grid.TaskID { return grid.TaskID{Job: id.Job, Epoch: id.Epoch + further} }

// altered returns what a message might say by mistake: of another epoch, or of what nobody has.
func altered(message grid.Message) (list []grid.Message) {
	switch m := message.(type) {
	case *market.Acknowledge:
		a, b := *m, *m
		a.Task, a.Unknown = off(m.Task), true
		b.Hold, b.Unknown = m.Hold+1, true
		if m.Hold == 0 { // of a completion, whose copies all have none
			return []grid.Message{&a}
		}
		return []grid.Message{&a, &b}
	case *market.JobCompletion:
		a := *m
		a.Task, a.Losses, a.Abandoned = off(m.Task), 0, true
		return []grid.Message{&a}
	case *market.Cancel:
		a, b := *m, *m
		a.Task, b.Hold = off(m.Task), m.Hold+1
		return []grid.Message{&a, &b}
	case *market.JobSubmission:
		a, b := *m, *m
		a.Epoch, b.Hold = m.Epoch+further, m.Hold+1
		return []grid.Message{&a, &b}
	case *lease.Claim:
		a := *m
		a.Epoch++
		return []grid.Message{&a}
	case *lease.Renew:
		a := *m
		a.Epoch, a.Span = m.Epoch+1, grid.Day
		return []grid.Message{&a}
	case *lease.Release:
		return []grid.Message{&lease.Release{Number: m.Number, Epoch: m.Epoch + 1}}
	case *lease.Grant:
		a := *m
		a.Epoch++
		return []grid.Message{&a}
	case *lease.Renewed:
		a := *m
		a.Epoch++
		return []grid.Message{&a}
	case *lease.Released:
		a := *m
		a.Epoch++
		return []grid.Message{&a}
	case *lease.Revoke:
		return []grid.Message{&lease.Revoke{Number: m.Number, Epoch: m.Epoch + 1}}
	case *fee.Advance:
		a := *m
		a.Epoch++
		return []grid.Message{&a}
	case *fee.Advances:
		return []grid.Message{&fee.Advances{Number: m.Number, Epoch: m.Epoch + 1, Refusal: fee.Gone}}
	case *fee.Bill:
		a := *m
		a.Epoch++
		return []grid.Message{&a}
	case *fee.Agreed:
		a := *m
		a.Epoch++
		return []grid.Message{&a}
	case *bank.Drawn:
		return []grid.Message{&bank.Drawn{Task: off(m.Task), Refusal: bank.NoFunds}}
	case *bank.Settled:
		return []grid.Message{&bank.Settled{Task: off(m.Task), Paid: m.Paid}}
	case *bank.Redeemed:
		a := *m
		a.Task = off(m.Task)
		return []grid.Message{&a}
	}
	return nil
}

// Repeatable reports whether a message is one of those of which a copy changes nothing.
func Repeatable(message grid.Message) bool {
	switch message.(type) {
	case *market.Negotiate, *market.JobCompletion, *keepalive.Renew, *lease.Request, *bank.Draw, *bank.Redeem, *bank.TransferRequest, *bank.Inquire:
		return true
	}
	return personal(message)
}

// personal reports whether a message is nothing that another site might say for itself.
func personal(message grid.Message) bool {
	switch m := message.(type) {
	case *market.Acknowledge, *market.Reply, *market.Cancel, *market.JobSubmission, *keepalive.Renewed,
		*lease.Claim, *lease.Renew, *lease.Release, *lease.Grant, *lease.Refuse, *lease.Renewed, *lease.Released, *lease.Revoke,
		*fee.Advance, *fee.Advances, *fee.Bill, *fee.Agreed,
		*bank.Drawn, *bank.Settled, *bank.Redeemed, *bank.Return, *bank.TransferReply, *bank.Inform:
		return true
	case *market.JobCompletion:
		return m.Losses == 0 // of what is lost anybody is heard who once had the job
	}
	return false
}
