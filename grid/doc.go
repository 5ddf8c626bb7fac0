// Package grid is the vocabulary that every core shares: time, identities,
// jobs, money, and the form in which a core talks to whoever drives it.
//
// A core is a value. Its driver does this, for ever:
//
//  1. wait for an input or for the earliest NextTimer;
//  2. read the clock once;
//  3. call Step(now, input, outbox), with now never decreasing;
//  4. make every Save and Delete of the outbox durable;
//  5. carry out the other effects in order;
//  6. reset the outbox and use it again.
//
// There are two drivers: node.Host (libp2p, Badger, child processes, a real
// clock) and the virtual network of package testnet (an event heap). A core
// cannot tell them apart.
//
// Invariants: a core reads no clock, starts no goroutine, takes no lock, does no
// I/O and draws randomness only from the generator its constructor was given.
// Messages and records handed to an outbox belong to the driver from then on:
// a core does not change them afterwards. Messages a driver delivers are shared
// (the network may deliver one twice): a core never writes to them.
//
// The package decides nothing about scheduling, protocols or storage.
package grid
