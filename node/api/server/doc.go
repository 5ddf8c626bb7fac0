// Package server answers the local API of one host.
//
// It decides nothing: it turns requests into questions to the host's loop, and answers
// into the JSON of package api. Who asks is known from the Unix socket (SO_PEERCRED).
// Serve it until Close; requests that wait are told when the daemon stops.
package server
