// Package wasm runs modules: programs of WebAssembly with the system interface WASI,
// preview 1.
//
// A module is one file, which travels with its job under the digest of its content. [Store]
// keeps those that came here, and what they were compiled to. [Main] is the process that
// runs one: inside the same walls as other guests where there are some, and behind walls of
// its own in any case. A module computes in memory of its own, of bounded size, and can do
// nothing but call WASI: it reads and writes files below one directory ([folder]), of which
// size and number are bounded, writes to standard output and error, reads clocks and random
// bits, and ends. It has no network, no processes, and of the environment what the job says.
//
// wazero compiles and runs the code. What is here decides what it can reach: wazero's own
// directories follow symbolic links to anywhere, so the directory is not one of those.
package wasm
