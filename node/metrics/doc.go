// Package metrics tells monitoring how a daemon does: its numbers as Prometheus reads them,
// whether it works, and whether it takes work.
//
//  1. New makes the registry that libp2p is given (Registry, node.HostConfig.Metrics).
//  2. Watch gives it the host, once that runs.
//  3. Metrics, Alive and Ready are handlers of HTTP; whoever serves them says who may ask.
//
// Nothing is counted here: figures are read where the program counts anyway, when somebody
// asks. The values of a label are words of the program, never names of sites, users or jobs,
// so that nobody can make their number grow. Table lists them, and docs/metrics.md is
// checked against it.
package metrics
