package bank

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// Issuer is the account that grants come from: the only one that may be negative,
// by as much as was issued. No site has this ID.
const Issuer grid.SiteID = "(issuer)"

// account is what a ledger keeps of one site.
type account struct {
	site grid.SiteID
	Balance
	last      uint64   // sequence of the newest transaction in it
	history   []uint64 // sequences of its transactions that are kept, oldest first
	holds     int      // cheques it has written that are remembered
	record    string   // key
	refused   refusals // of transfers from it
	forgotten refusals // those of which only this is known: of before the bank started
}

// accountPrefix is where accounts are stored.
const accountPrefix = "bank/account/"

// newAccount returns the account of a site, empty.
func newAccount(site grid.SiteID) *account {
	return &account{site: site, record: accountPrefix + string(site)}
}

// openAccount returns the account of a site that had none. Whoever asked it to move credits before
// was told so, and has nothing moved by a late copy.
func openAccount(now grid.Time, site grid.SiteID) *account {
	a := newAccount(site)
	a.refused = refusals{asked: now, at: now, why: NoAccount}
	return a
}

// apply adds one side of transaction t, or returns why that cannot be: the sum
// overflows, or would be below the account's limit.
func (a *account) apply(t *Transaction, p *posting) error {
	settled, ok1 := add(a.Settled, p.settled)
	committed, ok2 := add(a.Committed, p.committed)
	if !ok1 || !ok2 || committed < 0 || settled < 0 && a.site != Issuer {
		return fmt.Errorf("transaction %d (%v) would leave %v settled and %v committed in account %s", t.Sequence, t.Kind, settled, committed, a.site)
	}
	a.Settled, a.Committed, a.last = settled, committed, t.Sequence
	return nil
}

// add returns a+b and whether the sum fits.
func add(a, b grid.Credits) (sum grid.Credits, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// accountRecord is an account as one transaction left it. It is a copy: a step may
// have several transactions, and of its records perhaps only the first are stored.
type accountRecord struct {
	of                 *account
	settled, committed grid.Credits
	last               uint64
	refused            refusals
}

func (r *accountRecord) set(a *account) *accountRecord {
	*r = accountRecord{a, a.Settled, a.Committed, a.last, a.refused}
	return r
}

// RecordKey implements grid.Record.
func (r *accountRecord) RecordKey() string { return r.of.record }

// AppendRecord implements grid.Record.
func (r *accountRecord) AppendRecord(dst []byte) []byte {
	return appendProto(dst, &wirepb.BankAccountRecord{
		Site: string(r.of.site), Settled: int64(r.settled), Committed: int64(r.committed), Last: r.last, Refused: r.refused.proto(),
	})
}

// hold is a cheque as its bank keeps it: open while its ceiling is committed.
type hold struct {
	Cheque
	state  holdState
	paid   grid.Credits
	due    grid.Alarm[*hold] // expiry, then the end of being remembered
	record string            // key
}

// holdState numbers are stored: append only.
type holdState uint8

const (
	holdOpen holdState = iota + 1
	holdRedeemed
	holdExpired
	holdWithdrawn // never written, and never will be
)

// holdPrefix is where holds are stored.
const holdPrefix = "bank/hold/"

func newHold(c Cheque) *hold {
	h := &hold{Cheque: c, record: holdPrefix + chequeKey(&c)}
	h.Sealed = nil // made anew when it is wanted
	return h
}

// chequeKey returns the part of a record's key that names a cheque.
func chequeKey(c *Cheque) string {
	return fmt.Sprintf("%s/%d/%s", c.Task.Job, c.Task.Epoch, c.Payer)
}

// RecordKey implements grid.Record.
func (h *hold) RecordKey() string { return h.record }

// AppendRecord implements grid.Record.
func (h *hold) AppendRecord(dst []byte) []byte {
	p := &wirepb.BankHoldRecord{Cheque: h.proto(), State: uint32(h.state), Paid: int64(h.paid)}
	if h.state != holdOpen {
		p.Closed = int64(h.due.At() - closedKeep)
	}
	return appendProto(dst, p)
}
