// Package scale measures how the messages of a federation grow with its sites: in
// virtual time from ten sites to ten thousand and more, and on real nodes beside a
// virtual run of the same workload.
//
// Measure runs one federation per size (testnet/scenario/scale), some at a time (testnet/sweep),
// and returns a Report: the measurements, and whether each target is met. The report
// prints itself as a table, CSV or JSON, and as a page with plots (HTML, one file,
// written with package reproduce).
//
// Larger federations are measured for a shorter span, so that every size takes about
// as long: Options.SiteHours of sites times hours.
package scale
