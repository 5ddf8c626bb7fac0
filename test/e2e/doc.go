// Package e2e checks the program as its users have it: the binary, built once,
// with daemons as processes of their own that talk over loopback.
//
// Nothing sleeps and nothing is timed, unless a flag asks for a measurement. Tests
// wait for conditions with the program's own verbs (submit --wait, wait --timeout,
// logs --follow) or at named pipes, at whose other end a job stands.
package e2e
