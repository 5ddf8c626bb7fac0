package node

import (
	"log/slog"
	"testing"

	"gridnode/node/site"
)

// TestOpenFederationRunsNoModules: nor other jobs of sites that nobody vouches for.
func TestOpenFederationRunsNoModules(t *testing.T) {
	h := &Host{log: slog.New(slog.DiscardHandler), cfg: HostConfig{Site: site.Config{Modules: true}}}
	if h.keepToItself(); h.cfg.Site.Modules {
		t.Error("modules of strangers are run")
	}
	h = &Host{log: h.log, member: &membership{}, cfg: HostConfig{Site: site.Config{Modules: true}}}
	if h.keepToItself(); !h.cfg.Site.Modules {
		t.Error("modules of members are not run")
	}
}
