package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/measure"
)

// noisy is a rule that production does not have: from half an hour on no job of another
// site loses its execution with a machine, but for the first site's.
func noisy(n *testnet.Network, c *testnet.Checker) {
	n.Observe(testnet.Observer{End: func(now grid.Time, x *testnet.Execution) {
		if x.Lost && x.Site > 0 && x.Pilot.Key == 0 && x.Job.Home != n.ID(x.Site) && now > grid.Hour/2 {
			c.Violated("job %s was lost at %s with epoch %d", x.Job.ID, n.ID(x.Site), x.ID.Epoch)
		}
	}})
}

// TestFailureIsExplained: a violation leaves a replay file, a smaller one that shows the same, and a
// diagram.
func TestFailureIsExplained(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Watch = 5, 4, 4, noisy
	cfg.Faults = "loss=0.02,drift=200,daemon=1,torn=1,machine=5,partition=2,aim=0.5"
	cfg.Failures, cfg.Shrink = t.TempDir(), 10*time.Minute
	var err error
	for ; err == nil && cfg.Seed < 50; cfg.Seed++ {
		_, err = Run(t.Context(), cfg)
	}
	var v *Violation
	if !errors.As(err, &v) || v.Small == "" || v.Diagram == "" {
		t.Fatalf("error %v, want a violation with a small script and a diagram", err)
	}
	t.Log(v)
	if want := "gridnode testnet run chaos --replay " + v.Small; !strings.Contains(v.Error(), want) {
		t.Errorf("%q does not say %q", v, want)
	}
	whole, err := ReadScript(v.Script)
	if err != nil {
		t.Fatal(err)
	}
	small, err := ReadScript(v.Small)
	if err != nil {
		t.Fatal(err)
	}
	if !whole.Listed || len(whole.Strikes) < 10 || len(whole.Jobs) < 20 {
		t.Errorf("the whole script has %s", whole.size())
	}
	if len(small.Strikes) != 1 || len(small.Jobs) > 20 || small.Sites > whole.Sites || small.Hours > whole.Hours || small.Faults != "none" || len(small.Wishes) > 0 {
		t.Errorf("the small script has %s and faults %s", small.size(), small.Faults)
	}
	drawn, err := os.ReadFile(v.Diagram)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sequenceDiagram", "participant s", "fault: machine", "->>s", "market.job-submission", "was lost at site-"} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("the diagram does not say %q:\n%s", want, drawn)
		}
	}
	t.Logf("%s", drawn)
	for _, path := range []string{v.Script, v.Small} {
		if _, err := Replay(t.Context(), path, Config{Watch: noisy}); err == nil || classOf(err) != small.Violation {
			t.Errorf("%s gives %v, want %s", path, err, small.Violation)
		}
		if _, err := Replay(t.Context(), path, Config{}); err != nil {
			t.Errorf("%s without the rule: %v", path, err)
		}
	}
	small.Strikes = nil
	calm := filepath.Join(t.TempDir(), "calm.json")
	if err := small.write(calm); err != nil {
		t.Fatal(err)
	}
	if _, err := Replay(t.Context(), calm, Config{Watch: noisy}); err != nil {
		t.Errorf("without its only fault: %v", err)
	}
}

// TestDrawnAsListed: a listed script is the run that it was written down from, event by event.
func TestDrawnAsListed(t *testing.T) {
	for seed := uint64(3); seed < 8; seed++ {
		cfg := Default()
		cfg.Seed, cfg.Sites, cfg.Hours = seed, 6, 1
		cfg.Faults += ",within=0.05,coincide"
		drawn := &trial{script: scriptOf(cfg)}
		first, err := drawn.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		listed := &trial{script: drawn.listed()}
		second, err := listed.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if first.TraceHash != second.TraceHash {
			t.Errorf("seed %d: trace %s drawn, %s listed", seed, first.TraceHash, second.TraceHash)
		}
	}
}

// TestClasses: what differs from run to run is not part of an invariant's name.
func TestClasses(t *testing.T) {
	one := errors.New("chaos, seed 3: at 1h after 12 events: invariant violated: job 00a was lost at site-2 with epoch 4")
	two := errors.New("chaos, seed 4: at 2m after 99 events: invariant violated: job 77f was lost at site-11 with epoch 1")
	if classOf(one) != classOf(two) || classOf(one) != "job # was lost at # with epoch #" {
		t.Errorf("%q and %q", classOf(one), classOf(two))
	}
	_, broken := caught(func() (*measure.Result, error) { panic("lease 4: a job runs twice") })
	if classOf(broken) != "a defect: lease # a job runs twice" {
		t.Errorf("%q", classOf(broken))
	}
}
