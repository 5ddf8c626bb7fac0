package fee

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// RecordPrefix begins the keys of all records of a Tab.
const RecordPrefix = "fee/"

func newFee(t Terms, s state) *fee {
	f := &fee{Terms: t, state: s}
	side := "owes"
	if f.lends() {
		side = "owed"
	}
	f.record = fmt.Sprintf("%s%s/%s/%d", RecordPrefix, side, t.Peer, t.Number)
	return f
}

// RecordKey implements grid.Record.
func (f *fee) RecordKey() string { return f.record }

// AppendRecord implements grid.Record.
func (f *fee) AppendRecord(dst []byte) []byte {
	p := &wirepb.FeeRecord{
		Peer: string(f.Peer), Number: f.Number, Epoch: f.Epoch, State: uint32(f.state), Bank: string(f.Bank),
		Processors: f.Processors, Price: int64(f.Price), Longest: int64(f.Longest), Asked: int64(f.asked), Amount: int64(f.amount),
	}
	if f.over != grid.Never {
		p.Over = int64(f.over)
	}
	b, err := proto.MarshalOptions{}.MarshalAppend(dst, p)
	if err != nil {
		panic(fmt.Sprintf("fee: record %s: %v", f.record, err)) // all strings were checked when they came in
	}
	return b
}

// Load takes one stored record, in any order, before any Step and after the desk is
// loaded. Its error says what is wrong with the record.
func (t *Tab) Load(now grid.Time, value []byte, out *grid.Outbox) error {
	var p wirepb.FeeRecord
	if err := proto.Unmarshal(value, &p); err != nil {
		return err
	}
	var c check
	c.lease(p.Number, p.Epoch)
	c.Within("peer's length", int64(len(p.Peer)), 1, 128)
	c.Within("state", int64(p.State), int64(drawing), int64(billed))
	c.Within("processors", p.Processors, 1, 1<<24)
	c.Within("price", p.Price, 1, int64(grid.CreditsMax))
	c.Within("amount", p.Amount, 0, int64(grid.CreditsMax))
	for _, v := range []int64{p.Longest, p.Asked, p.Over} {
		c.Within("instant", v, 0, int64(grid.Never/2))
	}
	if c.Err != nil {
		return c.Err
	}
	f := newFee(Terms{
		Ref: Ref{grid.SiteID(p.Peer), p.Number, p.Epoch}, Bank: grid.SiteID(p.Bank),
		Processors: p.Processors, Price: grid.Price(p.Price), Longest: grid.Time(p.Longest),
	}, state(p.State))
	f.asked, f.over, f.amount = grid.Time(p.Asked), grid.Time(p.Over), grid.Credits(p.Amount)
	if f.over == 0 {
		f.over = grid.Never
	}
	t.enter(f, nil)
	switch f.state {
	case drawing: // the desk gives such a cheque back: whoever waited for it is gone
		t.drop(f, out)
	case late:
		t.alarms.Set(&f.alarm, now+lateKeep)
	case advanced:
		t.alarms.Set(&f.alarm, now+checkIn)
	default:
		t.again(now, f)
	}
	return nil
}
