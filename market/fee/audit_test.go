package fee

import (
	"testing"

	"gridnode/grid"
	"gridnode/market/bank"
)

// TestAudit: a lease that nobody will ask about again in time, or that costs more than its cheque is
// over, is told.
func TestAudit(t *testing.T) {
	const now = grid.Hour
	terms := Terms{Ref: Ref{Peer: "peer", Number: 1, Epoch: 1}, Bank: "bank", Processors: 1, Price: grid.Credit, Longest: grid.Hour}
	for _, tt := range []struct {
		name   string
		state  state
		amount grid.Credits
		due    grid.Time   // 0: no timer
		gone   grid.SiteID // an outcast
		wrong  bool
	}{
		{"the bank is asked", drawing, 0, 0, "", false},
		{"the cheque is handed over again", advancing, 0, now + askMax, "", false},
		{"it is handed over once", advancing, 0, 0, "", true},
		{"it is handed over again too late", advancing, 0, now + checkIn, "", true},
		{"it is there", advanced, 0, now + checkIn, "", false},
		{"an outcast is given the cheque", advancing, 0, now + askMax, "peer", true},
		{"an outcast has it, and is paid as its lease ends", advanced, 0, now + grid.Minute, "peer", false},
		{"an outcast has it, and is looked at late", advanced, 0, now + checkIn, "peer", true},
		{"an outcast is billed", billed, grid.Credit, now + askMax, "peer", true},
		{"an outcast is the bank", billed, grid.Credit, now + askMax, "bank", true},
		{"the cheque is waited for", late, grid.Credit, now + lateKeep, "", false},
		{"the cheque is waited for for ever", late, grid.Credit, 0, "", true},
		{"the bill is repeated", billed, grid.Credit, now + askMax, "", false},
		{"it is not", billed, grid.Credit, 0, "", true},
		{"the bill is over nothing", billed, 0, now, "", true},
		{"the bill is over more than the cheque", billed, grid.Credit + 1, now, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			desk := bank.NewDesk(bank.Config{Self: "self"}, 1)
			desk.Outcasts().Add(now, tt.gone, new(grid.Outbox))
			tab := New("self", desk, nil)
			f := newFee(terms, tt.state)
			f.amount, f.over = tt.amount, now+grid.Minute
			tab.enter(f, nil)
			if tt.due > 0 {
				tab.alarms.Set(&f.alarm, tt.due)
			}
			if err := Audit(now, tab); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}
