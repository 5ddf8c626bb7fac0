// Package federation is the scenario of Grid-Federation (2004): the sites of its table 1
// over two days, by themselves, helping each other, or trading (experiments 1 to 5).
//
// Builder makes a network of sites that trade; chaos, scale and the comparison with
// live nodes configure the same sites in other ways. Table1 is the workload.
package federation
