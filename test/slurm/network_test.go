package slurm

import (
	"strings"
	"testing"
)

// TestNodesApart: nodes with networks of their own run jobs, on several of them too, and have
// nothing of this machine's network.
func TestNodesApart(t *testing.T) {
	c := Start(t, Config{Name: "apart", Nodes: 2, Processors: 1, Apart: true})
	out := c.Run(t, "srun", "-N", "2", "cat", "/proc/net/fib_trie")
	for host, want := range map[string]bool{c.network.address(1): true, c.network.address(2): true, c.network.at(1): false, c.network.address(0): false} {
		if strings.Contains(out, "-- "+host+"\n") != want {
			t.Errorf("that a node has the address %s: %v, want %v; it says\n%s", host, !want, want, out)
		}
	}
}
