// Package matchmaking repeats the evaluation of Delegated MatchMaking (SC 2007): the dual
// grid under six architectures, the figures about dmm alone, and the long run of table 3.
package matchmaking
