// Package delegation is the scenario of Delegated MatchMaking (2007): the dual grid of
// the DAS and Grid'5000 under one of six architectures, for a day of generated jobs or
// for the long workload of batches. Only dmm is ours; the others are what it was
// compared with, and live here alone.
package delegation
