package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMain is the process that floods, if it is started as that.
func TestMain(m *testing.M) {
	if os.Getenv(floodersEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// tries is how often a flood is tried that does not get all its peers banned. The allowances of
// these floods are so small that a busy machine reads more than them, too, but not always: one that
// reads a flood no faster than is allowed bans nobody, and need not.
const tries = 3

// TestFloodsHurtNobodyElse has real daemons flooded for seconds, by three at a time. The flooders
// get as much of a busy machine as anybody: of what it has to spare they would get nothing. How
// long anything takes is for 'make flood' to say, on a machine that does nothing else.
func TestFloodsHurtNobodyElse(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gridnode")
	if out, err := exec.Command("go", "build", "-o", program, "gridnode/cmd/gridnode").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	w, err := newWorld(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	const peers = 3
	for _, k := range kinds {
		if k.name != "gossip" && k.name != "provider" || testing.Short() && k.name != "gossip" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			var r *row
			for range tries {
				if r, err = w.measure(t.Context(), k, peers, 20*time.Second); err != nil {
					t.Fatal(err)
				}
				t.Logf("%+v", *r)
				if r.Banned == peers || r.Lost > 0 || r.JobsLost > 0 || r.HonestBan {
					break
				}
			}
			if r.Lost > 0 || r.JobsLost > 0 || r.Honest == 0 || r.Jobs == 0 {
				t.Errorf("of the honest peers' %d negotiations %d were lost, of %d jobs %d", r.Honest, r.Lost, r.Jobs, r.JobsLost)
			}
			if r.Banned != peers || r.HonestBan {
				t.Errorf("%s", r.Fate)
			}
			if counters, err := w.at.client.Counters(t.Context()); err != nil || counters.Network.Bans < peers || counters.Network.Held == 0 {
				t.Errorf("counters %+v, %v", counters, err)
			}
		})
	}
	// The bans are listed, ordered by end, and can be lifted: the last has longest to go.
	reply, err := w.at.client.Bans(t.Context())
	if err != nil || len(reply.Bans) == 0 {
		t.Fatalf("no bans: %v", err)
	}
	b := reply.Bans[len(reply.Bans)-1]
	for _, code := range []int{0, 4} {
		cmd := w.at.run(t.Context(), program, "peers", "unban", b.Peer)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code {
			t.Errorf("peers unban: exit code %d, want %d: %s", cmd.ProcessState.ExitCode(), code, out)
		}
	}
}
