package scenario

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigErrorsNameTheFlag: whatever is wrong with a configuration, the error
// says which flag to change.
func TestConfigErrorsNameTheFlag(t *testing.T) {
	ctx := context.Background()
	leasing := func(f func(*LeasingConfig)) func() error {
		return func() error {
			cfg := DefaultLeasing()
			f(&cfg)
			_, err := RunLeasing(ctx, cfg)
			return err
		}
	}
	federation := func(f func(*FederationConfig)) func() error {
		return func() error {
			cfg := DefaultFederation()
			f(&cfg)
			_, err := RunFederation(ctx, cfg)
			return err
		}
	}
	chaos := func(f func(*ChaosConfig)) func() error {
		return func() error {
			cfg := DefaultChaos()
			f(&cfg)
			_, err := RunChaos(ctx, cfg)
			return err
		}
	}
	headerless := filepath.Join(t.TempDir(), "log.swf")
	if err := os.WriteFile(headerless, []byte("1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		flag string
		run  func() error
	}{
		{"policy", leasing(func(c *LeasingConfig) { c.Policy = "greedy" })},
		{"queue", leasing(func(c *LeasingConfig) { c.Queue = "lifo" })},
		{"no-estimate", leasing(func(c *LeasingConfig) { c.NoEstimate = "guess" })},
		{"until", leasing(func(c *LeasingConfig) { c.Until = -1 })},
		{"until", leasing(func(c *LeasingConfig) { c.Until = 1 << 60 })},
		{"processors", leasing(func(c *LeasingConfig) { c.Processors = []int64{0} })},
		{"processors", leasing(func(c *LeasingConfig) { c.Processors = []int64{1, 2}; c.Traces = []string{"a", "b", "c"} })},
		{"processors", leasing(func(c *LeasingConfig) { c.Traces = []string{headerless} })},
		{"mode", federation(func(c *FederationConfig) { c.Mode = "anarchy" })},
		{"placement", federation(func(c *FederationConfig) { c.Placement = "random" })},
		{"oft", federation(func(c *FederationConfig) { c.OFT = 101 })},
		{"sites", federation(func(c *FederationConfig) { c.Sites = 0 })},
		{"dht", federation(func(c *FederationConfig) { c.DHT = "chord" })},
		{"latency", federation(func(c *FederationConfig) { c.LatencyMax = 1 })},
		{"trace", federation(func(c *FederationConfig) { c.Traces = []string{headerless} })},
		{"trace", federation(func(c *FederationConfig) { c.Traces = []string{"/nonexistent"} })},
		{"trace", federation(func(c *FederationConfig) { c.Traces = []string{t.TempDir()} })},
		{"sites", chaos(func(c *ChaosConfig) { c.Sites = 1001 })},
		{"hours", chaos(func(c *ChaosConfig) { c.Hours = 0 })},
		{"faults", chaos(func(c *ChaosConfig) { c.Faults = "loss,flood" })},
		{"faults", chaos(func(c *ChaosConfig) { c.Faults = "loss=2" })},
		{"faults", chaos(func(c *ChaosConfig) { c.Faults = "loss=much" })},
		{"faults", chaos(func(c *ChaosConfig) { c.Faults = "" })},
	} {
		err := tt.run()
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "--"+tt.flag+":") {
			t.Errorf("error %v, want one about --%s", err, tt.flag)
		}
	}
}

// TestCancelledRun: Ctrl-C ends a run at once.
func TestCancelledRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := RunLeasing(ctx, DefaultLeasing()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
