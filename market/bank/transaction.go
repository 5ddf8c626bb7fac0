package bank

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// TransactionKind says what a transaction does. Numbers travel and are stored:
// append only.
type TransactionKind uint8

const (
	KindGrant    TransactionKind = iota + 1 // the issuer's account to Payee: new credits
	KindTransfer                            // Payer to Payee
	KindDraw                                // Payer's settled to its committed: a cheque for Payee is written
	KindRedeem                              // Payer's committed to Payee, the rest back to Payer's settled
	KindExpire                              // Payer's committed back to its settled
)

var kindNames = [...]string{"", "grant", "transfer", "cheque", "redeem", "expire"}

// String returns the name used in statements and in JSON.
func (k TransactionKind) String() string {
	if int(k) >= len(kindNames) {
		return fmt.Sprintf("kind-%d", uint8(k))
	}
	return kindNames[k]
}

// Transaction moves credits between accounts. Its postings sum to zero.
type Transaction struct {
	Sequence     uint64    // from 1, without gaps
	At           grid.Time // on the bank's clock
	Kind         TransactionKind
	Payer, Payee grid.SiteID
	Task         grid.TaskID  // of the cheque; of a grant or transfer its ID, epoch 0
	Amount       grid.Credits // moved to Payee; of a cheque its ceiling; of an expiry what goes back
	Refund       grid.Credits // KindRedeem: goes back to Payer
	Expires      grid.Time    // KindDraw: of the cheque

	hash   [sha256.Size]byte // over the fields above and the hash of the transaction before
	record string            // key
}

// posting is one side of a transaction: what it adds to an account.
type posting struct {
	site               grid.SiteID
	settled, committed grid.Credits
}

// postings returns the sides of t, at most two.
func (t *Transaction) postings() (sides [2]posting) {
	switch t.Kind {
	case KindGrant, KindTransfer:
		return [2]posting{{t.Payer, -t.Amount, 0}, {t.Payee, t.Amount, 0}}
	case KindDraw:
		return [2]posting{{t.Payer, -t.Amount, t.Amount}}
	case KindRedeem:
		return [2]posting{{t.Payer, t.Refund, -t.Amount - t.Refund}, {t.Payee, t.Amount, 0}}
	case KindExpire:
		return [2]posting{{t.Payer, t.Amount, -t.Amount}}
	}
	panic(fmt.Sprintf("bank: transaction %d of kind %d", t.Sequence, t.Kind))
}

// Change returns what t adds to a site's account.
func (t *Transaction) Change(site grid.SiteID) (settled, committed grid.Credits) {
	sides := t.postings()
	for i := range sides {
		if sides[i].site == site {
			settled, committed = settled+sides[i].settled, committed+sides[i].committed
		}
	}
	return settled, committed
}

// chain computes the hash of t behind a transaction with hash before.
func (t *Transaction) chain(before *[sha256.Size]byte) [sha256.Size]byte {
	var buffer [512]byte
	b := append(buffer[:0], before[:]...)
	for _, v := range [...]uint64{
		t.Sequence, uint64(t.At), uint64(t.Kind), t.Task.Job.Hi, t.Task.Job.Lo, uint64(t.Task.Epoch),
		uint64(t.Amount), uint64(t.Refund), uint64(t.Expires), uint64(len(t.Payer)), uint64(len(t.Payee)),
	} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(append(b, t.Payer...), t.Payee...)
	return sha256.Sum256(b)
}

// JournalPrefix is where transactions are stored, by sequence.
const JournalPrefix = "bank/journal/"

// journalKey returns the key of a transaction; keys sort as sequences do.
func journalKey(sequence uint64) string {
	const digits = "0123456789abcdef"
	var b [len(JournalPrefix) + 16]byte
	copy(b[:], JournalPrefix)
	for i := len(b) - 1; i >= len(JournalPrefix); i-- {
		b[i] = digits[sequence&15]
		sequence >>= 4
	}
	return string(b[:])
}

// RecordKey implements grid.Record.
func (t *Transaction) RecordKey() string { return t.record }

// AppendRecord implements grid.Record.
func (t *Transaction) AppendRecord(dst []byte) []byte {
	p := t.proto()
	p.Hash = t.hash[:]
	return appendProto(dst, p)
}

// appendProto encodes a record. That ours cannot be encoded is a defect.
func appendProto(dst []byte, p proto.Message) []byte {
	out, err := proto.MarshalOptions{}.MarshalAppend(dst, p)
	if err != nil {
		panic(fmt.Sprintf("bank: encode record: %v", err))
	}
	return out
}

func (t *Transaction) proto() *wirepb.BankTransaction {
	return &wirepb.BankTransaction{
		Sequence: t.Sequence, At: int64(t.At), Kind: uint32(t.Kind), Payer: string(t.Payer), Payee: string(t.Payee),
		Job: wire.JobBytes(t.Task.Job), Epoch: t.Task.Epoch, Amount: int64(t.Amount), Refund: int64(t.Refund), Expires: int64(t.Expires),
	}
}

func (c *check) transaction(p *wirepb.BankTransaction) *Transaction {
	t := &Transaction{
		Sequence: p.GetSequence(), At: grid.Time(p.GetAt()), Kind: TransactionKind(p.GetKind()),
		Payer: c.site("payer", p.GetPayer()), Payee: c.site("payee", p.GetPayee()),
		Task:   grid.TaskID{Job: c.id(p.GetJob()), Epoch: p.GetEpoch()},
		Amount: c.amount("amount", p.GetAmount(), 0), Refund: c.amount("refund", p.GetRefund(), 0), Expires: grid.Time(p.GetExpires()),
	}
	c.Within("kind", int64(p.GetKind()), int64(KindGrant), int64(KindExpire))
	c.Within("instant", p.GetAt(), 0, int64(grid.SpanMax))
	c.Within("expiry", p.GetExpires(), 0, int64(grid.SpanMax))
	if t.Sequence == 0 {
		c.Fail("transaction without a sequence number")
	}
	return t
}
