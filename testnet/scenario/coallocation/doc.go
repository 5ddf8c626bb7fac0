// Package coallocation is the scenario of On the benefit of processor co-allocation
// (2008): one scheduler, KOALA, places the jobs of one application on the clusters of
// DAS-3.
package coallocation
