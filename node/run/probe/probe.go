package probe

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"gridnode/node/sandbox"
)

// Verb is the first argument of the program when it is to be a probe.
const Verb = "sandbox-probe"

// baitsEnv tells the probe where the baits are.
const baitsEnv = "GRIDNODE_PROBE"

// secretEnv is a variable of the daemon's.
const secretEnv = "SECRET"

// baits are what a guest must not reach, and the limits it must not break.
type baits struct {
	Home   string // directory of the daemon
	Key    string // file in it
	Text   string // what the baits hold
	Temp   string // file beside the folders of others
	Shared string // file in /dev/shm
	Socket string // path of a Unix socket
	Name   string // of an abstract one, without the zero byte
	TCP    string // addresses
	UDP    string
	PID    int // process of the daemon's account
	SHM    int // segment of System V, 0 for none
	Limits sandbox.Limits
	Folder string // where the guest may write
}

// probe is one attempt.
type probe struct {
	name string
	does string
	try  func(*baits) error // inside: nil if the walls held, else what was reached

	// From outside, nil for nothing special:
	kind  string                         // escape if empty, or abuse
	span  time.Duration                  // its time limit; 0: a long one
	skip  func(*runner) string           // why it has nothing to try here
	after func(*runner, *outcome) string // what is wrong with how it ended; may say that it was stopped
}

// escaped is the error of a probe that reached something.
func escaped(format string, args ...any) error { return fmt.Errorf(format, args...) }

// words that a probe ends its output with.
const (
	wordHeld    = "held"
	wordEscaped = "escaped"
)

// Main is the process of a guest. It returns the exit code.
func Main(name string) int {
	if what, ok := strings.CutPrefix(name, childName+":"); ok {
		return child(what)
	}
	var b baits
	if err := json.Unmarshal([]byte(os.Getenv(baitsEnv)), &b); err != nil {
		fmt.Println("no baits:", err)
		return 3
	}
	for _, p := range probes() {
		if p.name == name {
			if err := p.try(&b); err != nil {
				fmt.Println(wordEscaped+":", err)
				return 1
			}
			fmt.Println(wordHeld)
			return 0
		}
	}
	fmt.Println("no such probe:", name)
	return 3
}

func probes() []probe {
	var list []probe
	for _, some := range [][]probe{fileProbes, processProbes, networkProbes, kernelProbes, abuseProbes} {
		list = append(list, some...)
	}
	return list
}
