package testnet

import (
	"testing"

	"gridnode/grid"
	"gridnode/lease"
)

// lenderToy is a toySite that lends.
type lenderToy struct{ toySite }

func (*lenderToy) PilotOf(grid.SiteID, uint64) (lease.Lease, bool)  { return lease.Lease{}, true }
func (*lenderToy) Permits(grid.Time, grid.SiteID, *grid.Job) string { return "" }

// TestPilotsEndIsToldAgain: a lender learns that a pilot is gone though its daemon dies as it takes
// that in, be the pilot gone with the machine or ended as its site wants.
func TestPilotsEndIsToldAgain(t *testing.T) {
	for _, how := range []string{"with its machine", "as its site wants"} {
		t.Run(how, func(t *testing.T) {
			told, dead := 0, 0
			n, err := New(Config{Durable: true, Tear: func(_ grid.Time, _ int, out *grid.Outbox, _ bool) (tear Tear) {
				if len(out.Records) == 0 {
					return tear
				}
				if told++; dead < 2 {
					dead++
					tear = Tear{For: grid.Second, Unsaved: true}
				}
				return tear
			}})
			if err == nil {
				_, err = n.Add(Member{ID: "a", New: func(int) (Site, error) { return &lenderToy{toySite{timer: grid.Never}}, nil }})
			}
			if err != nil {
				t.Fatal(err)
			}
			keeper := grid.Task{ID: lease.TaskOf(7), Limit: grid.Hour, Pilot: grid.Pilot{Site: "b", Key: 7}}
			n.Inject(0, 0, &toyRun{keeper})
			if how == "with its machine" {
				err = n.Schedule(Fault{Kind: FaultMachine, At: grid.Minute, For: grid.Minute, Sites: []int{0}})
			} else {
				n.Call(grid.Minute, 0, func() { n.members[0].away.release(&keeper) })
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := n.Run(t.Context(), 10*grid.Minute, nil); err != nil {
				t.Fatal(err)
			}
			if told != 3 || n.Core(0) == nil || len(n.members[0].away.ended) > 0 {
				t.Errorf("told %d times, up %v, left %v: want it told until the third time, when the daemon lives", told, n.Core(0) != nil, n.members[0].away.ended)
			}
		})
	}
}
