//go:build !client

package main

import (
	"os"

	"gridnode/node/run/probe"
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
	line := commandLine()
	root := newRootFor(line)
	root.SetArgs(line)
	os.Exit(run(root))
}

// wholeVerbs are those that the client alone does not have.
var wholeVerbs = []verb{
	{groupSite, "init", newInit}, {groupSite, "start", newStart}, {groupSite, "config", newConfig}, {groupSite, "reload", newReload}, {groupSite, "doctor", newDoctor}, {groupSite, "backup", newBackup}, {groupSite, "restore", newRestore}, {groupSite, "debug", newDebug}, {groupSite, "diag", newDiag},
	{groupJob, "top", newTop}, {groupJob, "get", newGet},
	{groupFederation, "federation", newFederation}, {groupFederation, "invite", newInvite}, {groupFederation, "testnet", newTestnet},
	{"", "completion", newCompletion},
}
