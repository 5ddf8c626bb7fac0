package scenario_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/chaos"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/scenario/leasing"
)

// TestConfigErrorsNameTheFlag: whatever is wrong with a configuration, the error
// says which flag to change.
func TestConfigErrorsNameTheFlag(t *testing.T) {
	ctx := context.Background()
	ofLeasing := func(f func(*leasing.Config)) func() error {
		return func() error {
			cfg := leasing.Default()
			f(&cfg)
			_, err := leasing.Run(ctx, cfg)
			return err
		}
	}
	ofFederation := func(f func(*federation.Config)) func() error {
		return func() error {
			cfg := federation.Default()
			f(&cfg)
			_, err := federation.Run(ctx, cfg)
			return err
		}
	}
	ofChaos := func(f func(*chaos.Config)) func() error {
		return func() error {
			cfg := chaos.Default()
			f(&cfg)
			_, err := chaos.Run(ctx, cfg)
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
		{"policy", ofLeasing(func(c *leasing.Config) { c.Policy = "greedy" })},
		{"queue", ofLeasing(func(c *leasing.Config) { c.Queue = "lifo" })},
		{"no-estimate", ofLeasing(func(c *leasing.Config) { c.NoEstimate = "guess" })},
		{"until", ofLeasing(func(c *leasing.Config) { c.Until = -1 })},
		{"until", ofLeasing(func(c *leasing.Config) { c.Until = 1 << 60 })},
		{"processors", ofLeasing(func(c *leasing.Config) { c.Processors = []int64{0} })},
		{"processors", ofLeasing(func(c *leasing.Config) { c.Processors = []int64{1, 2}; c.Traces = []string{"a", "b", "c"} })},
		{"processors", ofLeasing(func(c *leasing.Config) { c.Traces = []string{headerless} })},
		{"mode", ofFederation(func(c *federation.Config) { c.Mode = "anarchy" })},
		{"placement", ofFederation(func(c *federation.Config) { c.Placement = "random" })},
		{"oft", ofFederation(func(c *federation.Config) { c.OFT = 101 })},
		{"sites", ofFederation(func(c *federation.Config) { c.Sites = 0 })},
		{"dht", ofFederation(func(c *federation.Config) { c.DHT = "chord" })},
		{"latency", ofFederation(func(c *federation.Config) { c.LatencyMax = 1 })},
		{"trace", ofFederation(func(c *federation.Config) { c.Traces = []string{headerless} })},
		{"trace", ofFederation(func(c *federation.Config) { c.Traces = []string{"/nonexistent"} })},
		{"trace", ofFederation(func(c *federation.Config) { c.Traces = []string{t.TempDir()} })},
		{"sites", ofChaos(func(c *chaos.Config) { c.Sites = 1001 })},
		{"hours", ofChaos(func(c *chaos.Config) { c.Hours = 0 })},
		{"faults", ofChaos(func(c *chaos.Config) { c.Faults = "loss,flood" })},
		{"faults", ofChaos(func(c *chaos.Config) { c.Faults = "loss=2" })},
		{"faults", ofChaos(func(c *chaos.Config) { c.Faults = "loss=much" })},
		{"faults", ofChaos(func(c *chaos.Config) { c.Faults = "" })},
	} {
		err := tt.run()
		if !errors.Is(err, scenario.ErrConfig) || !strings.Contains(err.Error(), "--"+tt.flag+":") {
			t.Errorf("error %v, want one about --%s", err, tt.flag)
		}
	}
}

// TestCancelledRun: Ctrl-C ends a run at once.
func TestCancelledRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := leasing.Run(ctx, leasing.Default()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
