//go:build !client

package main

import (
	"os"

	"gridnode/node/run/probe"
	"gridnode/node/shim"
	"gridnode/node/store"
	"gridnode/node/wasm"
)

// clientOnly says that this is the client alone, which has clientVerbs and leaves the
// others, and what errWhole is about, to the whole program.
const clientOnly = false

// checkVerb is for the daemon's own use, as shimVerb is.
const checkVerb = "check-store"

func main() {
	// What the daemon starts, and users never do, needs none of what follows: the
	// shim that watches over jobs, an attempt to leave the sandbox, a module of WebAssembly, and the look at a store that may end its process.
	if code, yes := carryOut(); yes {
		os.Exit(code)
	}
	if n := len(os.Args); n > 2 {
		switch os.Args[1] {
		case shimVerb: // shim --home HOME
			os.Exit(shim.Main(os.Args[n-1]))
		case probe.Verb: // sandbox-probe NAME
			os.Exit(probe.Main(os.Args[2]))
		case wasm.Verb: // wasm-run CONFIG COUNT [ARG...] [SETTING...]
			os.Exit(wasm.Main(os.Args[2:]))
		case wasm.CompileVerb: // wasm-compile MODULE
			os.Exit(wasm.Compile(os.Args[2]))
		case checkVerb: // check-store DIRECTORY
			os.Exit(store.Check(os.Args[n-1]))
		}
	}
	root := newRoot()
	root.SetArgs(commandLine())
	os.Exit(run(root))
}

// wholeVerbs are those that the client alone does not have.
func wholeVerbs(o *options) []verb {
	return []verb{
		{groupSite, newInit(o)}, {groupSite, newStart(o)}, {groupSite, newConfig(o)}, {groupSite, newReload(o)}, {groupSite, newDoctor(o)}, {groupSite, newBackup(o)}, {groupSite, newRestore(o)}, {groupSite, newDebug(o)}, {groupSite, newDiag(o)},
		{groupJob, newTop(o)}, {groupJob, newGet(o)},
		{groupFederation, newFederation(o)}, {groupFederation, newInvite(o)}, {groupFederation, newTestnet(o)},
		{"", newCompletion()},
	}
}
