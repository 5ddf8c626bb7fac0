package pilot

import (
	"testing"

	"gridnode/grid"
)

// TestGangWithoutWhatItReads: a gang whose inputs cannot be brought to its home starts nothing; with
// Again it is placed anew.
func TestGangWithoutWhatItReads(t *testing.T) {
	for _, again := range []bool{false, true} {
		x, out := NewGangs(Config{Self: "a"}), &Outbox{}
		job := taskOf(1, 2).Job
		id := grid.TaskID{Job: job.ID, Epoch: 1}
		x.Step(0, &Start{Task: grid.Task{ID: id, Job: job, Gang: &grid.Gang{Task: id, Each: 1, Parts: []grid.GangPart{{Site: "a", Processors: 2}}}}}, out)
		out.Reset()
		x.Step(0, &Gathered{Gang: id, Why: "nobody has it", Again: again}, out)
		if q := x.all[id].squads[0]; q.ready {
			t.Errorf("again %t: it counts as ready", again)
		}
		for _, e := range out.Effects {
			if _, starts := e.(StartOwn); starts {
				t.Errorf("again %t: it starts", again)
			}
		}
		x.Step(0, &Collected{Gang: id}, out)
		ended := effects[Ended](out)
		if len(ended) != 1 || ended[0].Ended.Lost != again || !again && ended[0].Ended.Result.ExitCode != ExitNoStart {
			t.Errorf("again %t: %+v", again, ended)
		}
	}
}
