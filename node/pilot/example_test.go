package pilot_test

import (
	"fmt"

	"gridnode/grid"
	"gridnode/node/pilot"
)

// A borrower has a task run on a lease that it has. Here what each core orders is carried
// to the other by hand; a driver does so over a connection.
func Example() {
	lender, borrower := pilot.New(pilot.Config{Self: "lender"}), pilot.New(pilot.Config{Self: "borrower"})
	var out pilot.Outbox
	step := func(c *pilot.Core, in grid.Input) []pilot.Effect {
		out.Reset()
		c.Step(grid.Second, in, &out)
		return append([]pilot.Effect(nil), out.Effects...)
	}
	step(lender, &pilot.Keep{Key: 7, Borrower: "borrower", Processors: 2, Until: grid.Never})
	step(lender, &pilot.Up{Key: 7})

	id := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 1}, Epoch: 1}
	job := &grid.Job{ID: id.Job, Home: "borrower", Resources: grid.Resources{Processors: 2}, Tasks: 2}
	task := grid.Task{ID: id, Job: job, Limit: grid.Hour, Pilot: grid.Pilot{Site: "lender", Key: 7}}
	connect := step(borrower, &pilot.Start{Task: task})[0].(pilot.Connect)
	send := step(borrower, &pilot.Connected{Site: connect.Site, Session: connect.Session})[0].(pilot.Send)
	for _, e := range step(lender, &pilot.Ordered{From: "borrower", Session: send.Session, Order: &send.Order}) {
		fmt.Printf("lender: %T\n", e)
	}
	for _, e := range step(lender, &pilot.Over{Key: 7, ID: id, End: pilot.End{Ran: grid.Minute}}) {
		told := e.(pilot.Tell)
		for _, e := range step(borrower, &pilot.Reported{Site: "lender", Session: told.Session, Report: &told.Report}) {
			fmt.Printf("borrower: %T\n", e)
		}
	}
	// Output:
	// lender: pilot.Launch
	// lender: pilot.Tell
	// lender: pilot.Follow
	// borrower: pilot.Ended
}
