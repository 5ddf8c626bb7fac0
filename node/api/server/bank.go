package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"strconv"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/node/api"
	"gridnode/node/site"
)

// statementDefault is how many transactions a statement has unless asked otherwise,
// statementMost how many it may have.
const (
	statementDefault = 20
	statementMost    = 100
)

// money answers what is asked of banks.
type money struct{ *Server }

func (a money) bankBalance(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	question := &bank.Question{All: values.Get("all") == "true"}
	if all := values.Get("all"); all != "" && all != "true" && all != "false" {
		return errorf(api.CodeUsage, "all: %q, want true or false", all)
	}
	answer, err := a.askBank(r.Context(), question, values.Get("account"))
	if err != nil {
		return err
	}
	return a.writeBank(w, r, answer)
}

func (a money) bankStatement(w http.ResponseWriter, r *http.Request) error {
	question := &bank.Question{Limit: statementDefault}
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 || n > statementMost {
			return errorf(api.CodeUsage, "limit: %q, want a whole number from 1 to %d", text, statementMost)
		}
		question.Limit = int32(n)
	}
	answer, err := a.askBank(r.Context(), question, r.URL.Query().Get("account"))
	if err != nil {
		return err
	}
	names := a.siteNames(r.Context())
	reply := api.BankStatement{Account: accountOf(answer, answer.Account, answer.Balance, names), Entries: []api.BankEntry{}}
	for _, t := range answer.Transactions {
		reply.Entries = append(reply.Entries, entryOf(t, answer.Account, names))
	}
	return writeJSON(w, reply)
}

// entryOf returns a transaction as it stands in an account.
func entryOf(t *bank.Transaction, account grid.SiteID, names func(grid.SiteID) string) api.BankEntry {
	e := api.BankEntry{Sequence: t.Sequence, At: api.Instant(t.At), Kind: t.Kind.String()}
	settled, committed := t.Change(account)
	e.Settled, e.Committed = api.Amount(settled), api.Amount(committed)
	other := t.Payer
	if other == account {
		other = t.Payee
	}
	e.Other, e.Name = string(other), names(other)
	if number, yes := fee.IsFee(t.Task); yes {
		e.Lease = number
	} else if t.Task.Epoch > 0 {
		e.Job, e.Epoch = t.Task.Job.String(), t.Task.Epoch
	} else {
		e.ID = t.Task.Job.String()
	}
	return e
}

func (a money) bankTransfer(w http.ResponseWriter, r *http.Request) error {
	return a.move(w, r, func(token uint64, id grid.JobID, to grid.SiteID, amount grid.Credits) grid.Input {
		return &bank.Transfer{Token: token, ID: id, To: to, Amount: amount}
	})
}

func (a money) bankGrant(w http.ResponseWriter, r *http.Request) error {
	return a.move(w, r, func(token uint64, id grid.JobID, to grid.SiteID, amount grid.Credits) grid.Input {
		return &bank.Grant{Token: token, ID: id, To: to, Amount: amount}
	})
}

// move moves credits and answers with the account that this leaves.
func (a money) move(w http.ResponseWriter, r *http.Request, input func(uint64, grid.JobID, grid.SiteID, grid.Credits) grid.Input) error {
	var request api.BankMove
	if err := readJSON(r, &request); err != nil {
		return err
	}
	id, err := bankID(request.ID)
	if err != nil {
		return err
	}
	amount := grid.Credits(request.Amount)
	if amount <= 0 || amount > grid.CreditsMax {
		return errorf(api.CodeUsage, "amount: %v, want more than 0 and at most %v credits", amount, grid.CreditsMax)
	}
	to, err := a.accountNamed(r.Context(), request.To)
	switch {
	case err != nil:
		return err
	case to == "":
		return errorf(api.CodeUsage, "to: no site named")
	}
	answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return input(token, id, to, amount) })
	if err != nil {
		return err
	}
	moved := answer.(*bank.Statement)
	if err := a.failure(r.Context(), moved, id); err != nil {
		return err
	}
	if moved.Account == a.host.ID() { // what is in flight only the bank knows
		if now, err := a.askBank(r.Context(), &bank.Question{}, ""); err == nil {
			moved = now
		}
	}
	return a.writeBank(w, r, moved)
}

// bankID reads the identity of a transfer or grant, or draws one.
func bankID(text string) (grid.JobID, error) {
	if text == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		return grid.JobIDFromBytes(b[:])
	}
	id, err := grid.ParseJobID(text)
	if err != nil || id.IsZero() {
		return grid.JobID{}, errorf(api.CodeUsage, "id: %q, want 26 characters of %s", text, jobIDAlphabet)
	}
	return id, nil
}

// askBank asks what is in an account: this site's if account is empty.
func (a money) askBank(ctx context.Context, question *bank.Question, account string) (*bank.Statement, error) {
	site, err := a.accountNamed(ctx, account)
	if err != nil {
		return nil, err
	}
	question.Account = site
	answer, err := a.host.Ask(ctx, func(token uint64) grid.Input { question.Token = token; return question })
	if err != nil {
		return nil, err
	}
	return answer.(*bank.Statement), a.failure(ctx, answer.(*bank.Statement), grid.JobID{})
}

// failure returns what a bank's answer means to a user if it is no success.
func (a money) failure(ctx context.Context, answer *bank.Statement, id grid.JobID) error {
	name := string(answer.Bank)
	if answer.Silent || answer.Refusal != bank.Done {
		name = cmp.Or(a.siteNames(ctx)(answer.Bank), name)
	}
	switch {
	case answer.Silent && id.IsZero():
		return errorf(api.CodeInternal, "bank %s does not answer: try later", name)
	case answer.Silent:
		return errorf(api.CodeInternal, "bank %s does not answer: it is not known whether the credits were moved; repeat with the ID %s, which moves them once", name, id)
	}
	code := api.CodeRefused
	switch answer.Refusal {
	case bank.Done:
		return nil
	case bank.NoBank:
		if answer.Bank == "" {
			return errorf(code, "this site banks nowhere: set bank.site, or bank.offer to keep a bank here, and start the daemon again")
		}
		return errorf(code, "site %s keeps no bank: bank.offer makes a site keep one, bank.site says where a site banks", name)
	case bank.NoFunds:
		b := answer.Balance
		return errorf(code, "%v at bank %s: balance %v credits, of which %v are held", answer.Refusal, name, b.Settled+b.Committed, b.Committed)
	case bank.NoAccount, bank.NoPayee:
		code = api.CodeNotFound
	case bank.BadAmount:
		code = api.CodeUsage
	}
	return errorf(code, "bank %s: %v", name, answer.Refusal)
}

// accountNamed returns the site whose account text names: an ID, whoever knows it,
// the issuer, or a name.
func (a money) accountNamed(ctx context.Context, text string) (grid.SiteID, error) {
	if _, err := peer.Decode(text); err == nil || text == string(bank.Issuer) {
		return grid.SiteID(text), nil
	}
	return a.siteNamed(ctx, text)
}

// siteNames returns a function that tells what people call sites, as far as this one
// knows.
func (a *Server) siteNames(ctx context.Context) func(grid.SiteID) string {
	names := make(map[grid.SiteID]string)
	return func(id grid.SiteID) string {
		name, known := names[id]
		if !known {
			_ = a.host.Do(ctx, func(s *site.Site) { // who has no name has an ID
				if name = s.SiteName(id); name == string(id) {
					name = ""
				}
			})
			names[id] = name
		}
		return name
	}
}

func accountOf(answer *bank.Statement, site grid.SiteID, b bank.Balance, names func(grid.SiteID) string) api.BankAccount {
	return api.BankAccount{
		Bank: string(answer.Bank), BankName: names(answer.Bank), Account: string(site), Name: names(site),
		Settled: api.Amount(b.Settled), InFlight: api.Amount(b.Incoming), Committed: api.Amount(b.Committed),
	}
}

// writeBank answers with accounts and what passed over this site's desk.
func (a money) writeBank(w http.ResponseWriter, r *http.Request, answer *bank.Statement) error {
	names := a.siteNames(r.Context())
	reply := api.BankReply{Accounts: []api.BankAccount{}, Refused: map[string]int64{}}
	if answer.Accounts == nil {
		reply.Accounts = append(reply.Accounts, accountOf(answer, answer.Account, answer.Balance, names))
	}
	for _, holding := range answer.Accounts {
		reply.Accounts = append(reply.Accounts, accountOf(answer, holding.Site, holding.Balance, names))
	}
	err := a.host.Do(r.Context(), func(s *site.Site) {
		if s.Desk() == nil {
			return
		}
		stats := s.Desk().Stats()
		reply.Paid, reply.Earned, reply.Unpaid = api.Amount(stats.Paid), api.Amount(stats.Earned), api.Amount(stats.Unpaid)
		for reason, n := range stats.Refused {
			reply.Refused[reason] += n
		}
		if l := s.Desk().Ledger(); l != nil {
			for reason, n := range l.Refused() {
				reply.Refused[reason] += n
			}
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}
