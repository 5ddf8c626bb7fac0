// Package testnet runs many sites on one machine: in virtual time, over one heap
// of events, or live. It replays workloads, counts every message, injects faults
// and checks invariants.
//
// The virtual network (Network) is a driver as package grid describes it. Every
// instant has three parts:
//
//  1. its events in order of insertion, but ends of executions first: processors
//     are free before anybody asks for them;
//  2. the jobs submitted at that instant, in the order of their source;
//  3. one grid.Tick for each site that had an input. What a site decides once per
//     instant, a scheduling pass above all, it decides there.
//
// If that causes more events of the same instant, they follow in the same way.
//
// One seed determines a run. Each site draws from generators of its own, one for
// each purpose, seeded from the run's seed and its name. Over everything that
// happens runs a hash; equal runs have equal hashes, on every machine.
//
// In virtual time nothing is encoded: messages travel as the pointers the cores
// made, records are encoded only in networks that crash sites.
//
// Scenarios (RunLeasing, RunFederation, RunChaos) set networks up, let them run and
// return a Result, whose JSON keys are stable.
//
// The package holds no rule of any protocol: those are in the cores.
package testnet
