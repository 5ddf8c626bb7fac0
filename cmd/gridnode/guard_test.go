package main

import (
	"io"
	"log/slog"
	"testing"

	"gridnode/node"
	engine "gridnode/node/run" // run is what this program does
	"gridnode/node/sandbox"
	"gridnode/node/wasm"
)

// Without a sandbox nothing of another site runs as root, and as nobody that has something of
// root's.
func TestNoGuestIsRoot(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	nobody := &engine.Account{Account: sandbox.Account{User: 65534, Group: 65534}, Name: "nobody"}
	for _, tt := range []struct {
		name            string
		root            bool
		account         *engine.Account
		modules         wasm.Guests
		foreign, module bool
	}{
		{"a plain account", false, nil, wasm.GuestsSandbox, true, true},
		{"root", true, nil, wasm.GuestsSandbox, false, false},
		{"root, whatever is said of modules", true, nil, wasm.GuestsAny, false, false},
		{"root with an account for them", true, nobody, wasm.GuestsSandbox, true, false},
		{"and modules by the owner's word", true, nobody, wasm.GuestsAny, true, true},
	} {
		var cfg node.HostConfig
		cfg.Site.Foreign, cfg.Site.Lease.Lend, cfg.Site.Head, cfg.Modules.Guests = true, true, "head", tt.modules
		cfg.Sandbox.Walls, cfg.Accounts.Guests = sandbox.None, tt.account
		if refused := guardBare(&cfg, tt.root, log); (refused == "") != tt.foreign {
			t.Errorf("%s: who starts it is told %q", tt.name, refused)
		}
		if s := cfg.Site; s.Foreign != tt.foreign || s.Lease.Lend != tt.foreign || (s.Head != "") != tt.foreign || s.Modules != tt.module {
			t.Errorf("%s: foreign %v, lends %v, head %q, modules %v", tt.name, s.Foreign, s.Lease.Lend, s.Head, s.Modules)
		}
	}
	for _, name := range []string{"root", "0", "no-such-account"} {
		if a, err := guestAccount(name); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a, err := guestAccount(""); a != nil || err != nil {
		t.Errorf("%v, %v", a, err)
	}
}
