package slurm

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"gridnode/grid"
	"gridnode/node/run"
)

// TestPilotGoesWhileAJobIsNoted: the job goes to Slurm, and no later daemon takes it for one that was
// in the pilot, too.
func TestPilotGoesWhileAJobIsNoted(t *testing.T) {
	setup := run.Setup{
		Files: run.Files{Home: t.TempDir(), Site: "here"}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Ended: func(e *run.Ended) { t.Errorf("ended: %+v", e) },
	}
	e, err := start(Config{Work: t.TempDir(), Shim: []string{"true", OrderWord}}, 4, setup)
	if err != nil {
		t.Fatal(err)
	}
	e.cancel() // nothing is submitted
	defer e.wg.Wait()
	id := grid.JobID{Hi: 7, Lo: 1}
	task := grid.Task{ID: grid.TaskID{Job: id, Epoch: 1}, Limit: grid.Minute, Job: &grid.Job{
		ID: id, Home: "here", Tasks: 1, Resources: grid.Resources{Processors: 1}, Command: &grid.Command{Args: []string{"true"}},
	}}
	for _, gone := range []bool{true, false} { // else it is the note that failed
		x := ownPilot(1)
		p := &job{process: x, name: x.Name() + ".1", note: note{Pilot: &keeps{Processors: 2}, Processor: 2}}
		e.own.enter(p)
		if err := e.orders.writeText(p.name, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		g := p.glide
		g.size, g.used = []int64{2}, []int64{0}
		y := run.Process{Task: task.ID}
		j := &job{process: y, task: task, name: y.Name() + ".2", fresh: true, inside: true, via: g, note: note{Home: "here", Tasks: 1, Each: 1, Processor: 1}}
		j.chair = g.take(1, false)
		e.add(j)
		g.open[j.name] = j
		g.log.launch(j)
		if err := g.log.sync(); err != nil {
			t.Fatal(err)
		}
		logs := map[*glidein]error{g: nil}
		if !gone {
			logs[g] = os.ErrInvalid
		}
		g.gone = gone
		e.own.start([]*job{j}, logs)
		if j.inside || len(g.open) != 0 {
			t.Errorf("gone %v: the job is still in the pilot", gone)
		}
		_, open, err := openLaunches(g.log.path)
		if err != nil || len(open) != 0 {
			t.Errorf("gone %v: the next daemon finds %d jobs in the pilot (%v)", gone, len(open), err)
		}
		left, _ := filepath.Glob(e.orders.path(p.name, "*"))
		if gone && (len(left) > 0 || len(e.glideins) > 0) {
			t.Errorf("of a pilot that is gone %v is left, and %d are known", left, len(e.glideins))
		}
		e.mu.Lock()
		e.glideins = nil
		e.mu.Unlock()
		e.wg.Wait()
	}
}
