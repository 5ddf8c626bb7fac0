// Package api is what the local API of a node says, and a client of it.
//
// Every request and reply of docs/api.md is a type here, and [Client] has a method for
// each. Instants are microseconds since 1970 in the program and decimal seconds on the
// wire, amounts are micro-credits and decimal credits. The daemon answers on a Unix
// socket in its home ([SocketPath]); the server is package gridnode/node/api/server.
//
// A client of one's own needs this package and grid, nothing of the network:
//
//	reply, err := api.NewClient(home).Submit(ctx, []api.JobSpec{{Name: "hello", Command: []string{"echo", "hello"}}})
package api
