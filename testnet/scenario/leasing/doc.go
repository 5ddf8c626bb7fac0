// Package leasing is the scenario of The gain of resource delegation (2009): sites that
// replay a log each and, by policy, lease processors from each other.
package leasing
