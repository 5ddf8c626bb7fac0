// Package lease lends processors of a site to others and borrows theirs: resources
// travel to jobs, jobs and accounts stay at home.
//
// A Domain is the two-layer site of "The gain of resource delegation" (2009), which
// leases what one job lacks (S-STRD, X-STRD).
package lease
