package wasm

import (
	"encoding/json"
	"fmt"
	"strconv"

	"gridnode/grid"
)

// Verbs of this program that [Main] and [Compile] are behind.
const (
	Verb        = "wasm-run"
	CompileVerb = "wasm-compile"
)

// Bounds.
const (
	// ModuleMax is how many bytes a module has at most.
	ModuleMax = grid.ModuleMax

	// Overhead is the memory that running a module takes besides its own: the runtime, and
	// what it was compiled to.
	Overhead = 256 << 20
)

// MemoryMax is the linear memory that a module can name.
const MemoryMax = 4 << 30

// Guests says which modules of other sites a site runs.
type Guests uint8

// Guests of a site.
const (
	GuestsSandbox Guests = iota // those that run inside a sandbox, as its other guests
	GuestsAny                   // without a sandbox, too
	GuestsNone                  // none
)

// Exit codes of [Main] besides the module's own.
const (
	ExitNoStart = 126 // it cannot be run: no module, or one that wants more than WASI
	ExitTrap    = 134 // it did what no module may: the code of an abort
	ExitMemory  = 137 // it wanted more memory than it has: the code of an OOM kill
)

// Config is what a module may use. Zero is the least, but for Memory.
type Config struct {
	Module string // path of the file
	Digest string // of its content, 64 hexadecimal digits
	Code   string // directory of what it was compiled to; empty or nothing there: it is compiled

	Folder string // directory that is its "/"
	Memory int64  // bytes of linear memory; 0: MemoryMax
	Disk   int64  // bytes in Folder; 0: no bound
	Files  int64  // open at a time; 0: no bound
	Coarse bool   // clocks of a millisecond
	Log    int64  // bytes kept of each stream; 0: kept.Default
}

// Command returns the command line of the process that runs a module with arguments (the first
// is the name of the program) and variables. These are arguments, too: what
// a job sets must not be the environment of the process that is to hold it.
func (c *Config) Command(program string, args, env []string) []string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("wasm: config %+v: %v", c, err)) // of plain fields only
	}
	line := append([]string{program, Verb, string(text), strconv.Itoa(len(args))}, args...)
	return append(line, env...)
}

// parse is the inverse of Command, without the program and the verb.
func parse(line []string) (c *Config, args, env []string, err error) {
	if len(line) < 2 {
		return nil, nil, nil, fmt.Errorf("%s is for the daemon's own use", Verb)
	}
	c = new(Config)
	if err := json.Unmarshal([]byte(line[0]), c); err != nil {
		return nil, nil, nil, err
	}
	n, err := strconv.ParseUint(line[1], 10, 31)
	if err != nil || int(n) > len(line)-2 {
		return nil, nil, nil, fmt.Errorf("%q arguments of %d words", line[1], len(line)-2)
	}
	return c, line[2 : 2+n], line[2+n:], nil
}
