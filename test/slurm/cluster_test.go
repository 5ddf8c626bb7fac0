package slurm

import (
	"strings"
	"testing"
	"time"
)

func TestAccountingSaysWhatBecameOfAJob(t *testing.T) {
	c := Start(t, Config{Name: "acc", Nodes: 2, Processors: 2, Accounting: true})
	id := c.Run(t, "sbatch", "--parsable", "-A", "work", "-o", "/dev/null", "--wrap", "exit 3")
	for range 100 {
		if out := c.Run(t, "sacct", "-X", "-n", "-P", "-j", id, "-o", "State,ExitCode"); strings.Contains(out, "FAILED|3:0") {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Fatalf("accounting does not know how job %s ended: %s", id, c.Run(t, "sacct", "-P"))
}
