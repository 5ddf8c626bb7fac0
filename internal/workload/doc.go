// Package workload provides the jobs that a federation is tested with: logs of
// real machines, and a model where there is no log.
package workload
