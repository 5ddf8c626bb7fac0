// Package testnet runs many sites on one machine in virtual time: their links,
// clocks, users, machines and faults, in one order of events.
//
// The virtual network (Network) is a driver as package grid describes it. Whoever
// runs one does this:
//
//  1. make a network with New. Config.Inputs makes the two inputs whose types the
//     network does not know: a user submits, an execution is still alive after a
//     restart. For sites of package node/site, scenario.Inputs makes them;
//  2. Add the sites, each with what makes its logic: anything with Step and
//     NextTimer, usually site.New. Member.Router gives it a node of a DHT (package
//     kademlia); without, an oracle answers look-ups;
//  3. Subscribe sites to the topics they gossip on, Schedule faults, Inject inputs;
//  4. Feed it with jobs. scenario.Feed makes a Source of a workload of
//     testnet/workload and of what the users want;
//  5. Observe it: measure.Collect turns what happens into figures, Check looks for
//     violations of what must always hold;
//  6. Run it until an instant, until nothing is left to happen, or until a condition
//     of one's own holds.
//
// # What happens when
//
// Every instant has three parts:
//
//  1. its events in order of insertion, but ends of executions first: processors
//     are free before anybody asks for them;
//  2. the jobs submitted at that instant, in the order of their source;
//  3. one grid.Tick for each site that had an input. What a site decides once per
//     instant, a scheduling pass above all, it decides there.
//
// If that causes more events of the same instant, they follow in the same way.
//
// # Determinism
//
// One seed determines a run. Each site draws from generators of its own, one for
// each purpose (package draw), seeded from the run's seed and its name: one more
// site, or one more draw for one purpose, shifts no other. Over everything that
// happens runs a hash (TraceHash); equal runs have equal hashes, on every machine.
//
// With several workers (Config.Workers) sites are dealt out over lanes. Where no message can
// reach another site sooner than a stride is over, lanes go through it side by side and log
// what they do; the logs are merged into the order that one worker has.
//
// # Invariants
//
//   - A site that is down gets no input, and nothing of a daemon's life before a
//     crash reaches the one after it but what it had saved and its executions.
//   - A message between two sites arrives as late as its link says, once unless the
//     link duplicates, and not at all across a partition. Nobody waits for a message
//     to itself.
//   - Everything a site saves in a step is durable before anything else of the step
//     happens.
//   - Only the network knows a job's true run time.
//
// In virtual time nothing is encoded: messages travel as the pointers the cores
// made, records are encoded only in networks that crash sites.
//
// The package holds no rule of any protocol: those are in the cores. Its figures
// come from testnet/measure, its jobs from testnet/workload, and the experiments
// of the command line are the folders of testnet/scenario.
package testnet
