package hostile

import (
	"errors"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/testnet/scenario"
)

// TestHostileMembers: a fifth of all members lie and forge; honest ones find what there is,
// believe nothing that was forged, and lose nothing. Each lie and each forgery was tried.
func TestHostileMembers(t *testing.T) {
	cfg := Default()
	cfg.Hours = 0.1
	result, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := result.Config.(*Report)
	t.Logf("%d of %d live quotes found, %d messages forged, %d refused by decoders", r.Found, r.Live, r.Sent, r.Refused)
	for _, lie := range lies {
		if r.Lies[lie] == 0 {
			t.Errorf("nobody tried to %s", lie)
		}
	}
	if len(r.Forged) < 22 || r.Refused == 0 || r.Refused == r.Sent || r.Live < 500 || r.Jobs < 25 {
		t.Errorf("too little was tried: %+v", r)
	}
	if r.Gone == 0 || r.Gone > int64(grid.Minute) {
		t.Errorf("quotes of revoked members were gone after %d µs", r.Gone)
	}
	var b strings.Builder
	if err := result.Write(&b, "table"); err != nil || !strings.Contains(b.String(), "bank.redeem: forged cheque") {
		t.Errorf("the table, %v:\n%s", err, b.String())
	}
}

// TestSameSeedSameRun: keys, certificates and signatures follow from the seed, too.
func TestSameSeedSameRun(t *testing.T) {
	hashes := map[string]bool{}
	for range 2 {
		cfg := Default()
		cfg.Sites, cfg.Hours = 12, 0.02
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		hashes[r.TraceHash] = true
	}
	if len(hashes) != 1 {
		t.Errorf("the same seed has trace hashes %v", hashes)
	}
}

// TestSettings: settings out of bounds are named.
func TestSettings(t *testing.T) {
	for flag, change := range map[string]func(*Config){
		"--sites":  func(c *Config) { c.Sites = 9 },
		"--hours":  func(c *Config) { c.Hours = 0 },
		"--share":  func(c *Config) { c.Share = 0.6 },
		"--revoke": func(c *Config) { c.Revoke = 9 },
	} {
		cfg := Default()
		change(&cfg)
		if _, err := Run(t.Context(), cfg); !errors.Is(err, scenario.ErrConfig) || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
