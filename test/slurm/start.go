package slurm

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// mustEnv, set to "must", says that Slurm has to be here: its tests fail without it.
const mustEnv = "GRIDNODE_SLURM"

// apartEnv, set to "must", says that network namespaces can be made here.
const apartEnv = "GRIDNODE_NAT"

// Start starts a cluster that ends with the test. The test is left out where Slurm is
// not installed, and with -short.
func Start(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	must := os.Getenv(mustEnv) == "must"
	if testing.Short() {
		t.Skip("not with -short: it starts a real Slurm")
	}
	if err := Missing(cfg.Accounting); err != nil {
		if must {
			t.Fatalf("%s=must, but %v", mustEnv, err)
		}
		t.Skipf("left out: %v", err)
	}
	if cfg.Folder == "" {
		cfg.Folder = t.TempDir()
	}
	if cfg.Apart {
		if err := apartMissing(); err != nil {
			if os.Getenv(apartEnv) == "must" {
				t.Fatalf("%s=must, but %v", apartEnv, err)
			}
			t.Skipf("left out: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := Up(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Down)
	return c
}

// Run runs one of Slurm's programs against the cluster and returns what it printed.
func (c *Cluster) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := c.Command(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}
