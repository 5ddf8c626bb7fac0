//go:build !client

package main

import (
	"fmt"

	"gridnode/node/wasm"
)

// wasmSettings are the keys about modules of WebAssembly.
var wasmSettings = []setting{
	{key: "wasm.guests", value: "sandbox", usage: "modules of other sites, with foreign: allow: sandbox (where other guests run), any (without a sandbox, too, if this machine has none), or none",
		set: oneOf(map[string]wasm.Guests{"sandbox": wasm.GuestsSandbox, "any": wasm.GuestsAny, "none": wasm.GuestsNone}, func(s *settings) *wasm.Guests { return &s.modules.Guests })},
	{key: "wasm.clock", value: "coarse", usage: "clocks of modules of other sites: coarse (to a millisecond, against measuring what else runs here) or real",
		set: oneOf(map[string]bool{"coarse": true, "real": false}, func(s *settings) *bool { return &s.modules.Coarse })},
	{key: "wasm.cache", value: "1G", usage: "modules kept here, and what they were compiled to, K, M, G or T; 128M to 1T",
		set: func(s *settings, v string) (err error) {
			s.modules.Cache, err = parseSize(v, 1)
			if err == nil && (s.modules.Cache < 128<<20 || s.modules.Cache > 1<<40) {
				err = fmt.Errorf("%q: want 128M to 1T", v)
			}
			return err
		}},
}
