package node

import (
	"path/filepath"
	"testing"

	"gridnode/grid"
	"gridnode/node/run"
	"gridnode/node/site"
)

// TestSilentJobs: what writes nothing has no files of its own, there is nothing to fetch of it,
// and its output is empty rather than gone, after a restart, too.
func TestSilentJobs(t *testing.T) {
	t.Parallel()
	_, dear, _, dearConfig := pair(t)
	here := shellJob(dear, 1, "exit 0")
	here.Goal = grid.GoalLocal
	writes := shellJob(dear, 2, "exit 0") // at the other site
	leaves := shellJob(dear, 3, "echo text >left")
	for _, job := range []*grid.Job{here, writes, leaves} {
		if _, err := submitTo(dear, job); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		for _, job := range []*grid.Job{here, writes, leaves} {
			v := awaitState(t, dear, job.ID, site.Done)
			if silent := job != leaves; v.Result.Silent != silent {
				t.Errorf("%s: silent is %v, want %v", job.ID, v.Result.Silent, silent)
			}
			for _, stream := range []run.Stream{run.Stdout, run.Stderr} {
				if out := output(t, dear, job.ID, stream); out != "" {
					t.Errorf("%s: %q", job.ID, out)
				}
			}
			if cut := OutputCut(dear, &v); cut != nil {
				t.Errorf("%s: cut is %v", job.ID, cut)
			}
		}
		if b, _, err := dear.JobFiles(t.Context(), writes.ID, true); err != nil || b.State != FilesNone {
			t.Errorf("files of a job that left none: %+v, %v", b, err)
		}
	}
	check()
	until(t, "what a job left is at home", func() bool {
		b, tree, err := dear.JobFiles(t.Context(), leaves.ID, true)
		return err == nil && b.Count == 1 && tree != nil
	})
	if dear.files.HasFetched(writes.ID) {
		t.Error("nothing was fetched")
	}
	ran, _ := filepath.Glob(filepath.Join(dear.cfg.Home, "tasks", here.ID.String()+"*"))
	if len(ran) > 0 {
		t.Errorf("%q are kept of a job that wrote nothing", ran)
	}
	closeHost(t, dear)
	dear = realHost(t, dearConfig)
	check()
}
