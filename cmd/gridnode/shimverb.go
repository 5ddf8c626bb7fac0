package main

import (
	"os"

	"gridnode/node/shim"
)

// shimVerb is for the daemon's own use.
const shimVerb = "shim"

// carryOut does what the daemon starts, shim --home HOME, and what a cluster starts for it on a compute node,
// shim --order FILE and shim --pilot FILE, and returns the exit code. Each job of the cluster does so, twice.
func carryOut() (code int, yes bool) {
	n := len(os.Args)
	if n != 4 || os.Args[1] != shimVerb {
		return 0, false
	}
	switch last := os.Args[3]; os.Args[2] {
	case "--home":
		return shim.Main(last), true
	case "--order":
		return shim.Once(last), true
	case "--pilot", shim.NodeFlag:
		return shim.Pilot(last, []string{os.Args[0], shimVerb, shim.NodeFlag, last}, os.Args[2] == shim.NodeFlag), true
	}
	return 0, false
}
