// Package scenario has what experiments in virtual time share: the settings that all
// take (Common), errors that name a flag (ConfigError), a source of jobs made of a
// workload (Feed), the loop from the first job to the last (Run), and a bar that
// shows how far it is (Progress).
//
// Each folder below is one experiment. It only says which sites there are, what they
// are fed with and what is measured; rules of protocols are in the cores:
//
//	federation    the sites of table 1 of Grid-Federation trade, over two days
//	leasing       sites replay logs and lease processors from each other
//	delegation    the dual grid of Delegated MatchMaking, and the architectures it
//	              was compared with
//	coallocation  one co-allocator places jobs on the clusters of DAS-3 (KOALA)
//	packing       batches of jobs are shared out over clusters (MUSCLE, TITAN)
//	chaos         a federation under faults, watched for violations
//	scale         how messages grow with the number of sites
//
// A scenario of one's own does as these do:
//
//  1. testnet.New with Inputs, then Network.Add for each site, made with site.New;
//  2. Network.Feed with a Feed over a workload.Source;
//  3. Run.Do, which returns a measure.Result.
package scenario
