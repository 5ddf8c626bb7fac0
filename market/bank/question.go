package bank

import (
	"maps"
	"slices"

	"gridnode/grid"
)

// question is something that a user waits for a bank to answer.
type question struct {
	due     grid.Alarm[any]
	token   uint64 // ours, in the message
	asker   uint64
	message grid.Message
	bank    grid.SiteID
	until   grid.Time
	pause   grid.Time
}

// grant issues credits of the bank kept here.
func (d *Desk) grant(now grid.Time, in *Grant, out *grid.Outbox) {
	answer := &Statement{Bank: d.cfg.Self, Refusal: NoBank, Account: in.To}
	if d.ledger != nil {
		answer.Refusal = d.ledger.Grant(now, in, out)
		answer.Balance, _ = d.ledger.Balance(in.To)
	}
	d.reply(in.Token, answer, out)
}

// transfer asks the bank to move credits.
func (d *Desk) transfer(now grid.Time, in *Transfer, out *grid.Outbox) {
	d.put(now, in.Token, &TransferRequest{ID: in.ID, To: in.To, Amount: in.Amount, Asked: now}, out)
}

// ask answers what the books here know, and asks the bank otherwise.
func (d *Desk) ask(now grid.Time, in *Question, out *grid.Outbox) {
	account := in.Account
	if account == "" {
		account = d.cfg.Self
	}
	here := in.All || in.Account != "" && (in.Account != d.cfg.Self || d.cfg.Bank == "") || d.cfg.Bank == "" && d.ledger != nil
	if !here {
		d.put(now, in.Token, &Inquire{Limit: min(max(in.Limit, 0), statementMax)}, out)
		return
	}
	answer := &Statement{Bank: d.cfg.Self, Refusal: NoBank, Account: account}
	switch l := d.ledger; {
	case l == nil:
	case in.All:
		answer.Refusal = Done
		for _, site := range l.Sites() {
			b, _ := l.Balance(site)
			answer.Accounts = append(answer.Accounts, Holding{site, b})
		}
	default:
		answer.Refusal = NoAccount
		if b, ok := l.Balance(account); ok {
			answer.Refusal, answer.Balance = Done, b
			answer.Transactions = l.History(account, int(min(max(in.Limit, 0), statementMax)))
		}
	}
	d.reply(in.Token, answer, out)
}

// put sends a question to this site's bank.
func (d *Desk) put(now grid.Time, asker uint64, message grid.Message, out *grid.Outbox) {
	switch {
	case d.cfg.Bank == "":
		d.reply(asker, &Statement{Refusal: NoBank, Account: d.cfg.Self}, out)
		return
	case len(d.questions) >= questionsMax:
		d.reply(asker, &Statement{Bank: d.cfg.Bank, Refusal: Full, Account: d.cfg.Self}, out)
		return
	}
	d.token++
	q := &question{token: d.token, asker: asker, message: message, bank: d.cfg.Bank, until: now.Add(questionIn)}
	q.due.Owner = q
	if m, ok := message.(*Inquire); ok {
		m.Token = q.token
	}
	d.questions[q.token] = q
	d.pose(now, q, out)
}

func (d *Desk) pose(now grid.Time, q *question, out *grid.Outbox) {
	d.send(q.bank, q.message, out)
	d.alarms.Set(&q.due, min(d.later(now, &q.pause, drawPause, questionIn), q.until))
}

// questionDue repeats a question, or tells that the bank is silent.
func (d *Desk) questionDue(now grid.Time, q *question, out *grid.Outbox) {
	if now < q.until {
		d.pose(now, q, out)
		return
	}
	delete(d.questions, q.token)
	d.reply(q.asker, &Statement{Bank: q.bank, Silent: true, Account: d.cfg.Self}, out)
}

// transferred answers every question about the same transfer that was asked then, or earlier than that.
func (d *Desk) transferred(from grid.SiteID, m *TransferReply, out *grid.Outbox) {
	for _, token := range slices.Sorted(maps.Keys(d.questions)) {
		q := d.questions[token]
		if t, ok := q.message.(*TransferRequest); ok && t.ID == m.ID && q.bank == from && (m.Asked == 0 || m.Asked >= t.Asked) {
			d.close(q, &Statement{Refusal: m.Refusal, Balance: Balance{Settled: m.Settled, Committed: m.Committed}}, out)
		}
	}
}

func (d *Desk) informed(from grid.SiteID, m *Inform, out *grid.Outbox) {
	if q := d.questions[m.Token]; q != nil && q.bank == from {
		d.close(q, &Statement{Refusal: m.Refusal, Balance: m.Balance, Transactions: m.Transactions}, out)
	}
}

// close answers a question.
func (d *Desk) close(q *question, answer *Statement, out *grid.Outbox) {
	d.alarms.Stop(&q.due)
	delete(d.questions, q.token)
	answer.Bank, answer.Account = q.bank, d.cfg.Self
	d.refusedBy(answer.Refusal)
	d.reply(q.asker, answer, out)
}

func (d *Desk) reply(token uint64, answer *Statement, out *grid.Outbox) {
	if token != 0 {
		out.Answer(token, answer)
	}
}
