package delegation

import (
	"gridnode/testnet"
	"gridnode/testnet/measure"
)

// goodputs is the goodput on processors of other sites, by how far they are away,
// in processor-microseconds.
type goodputs struct{ intraSite, intraGrid, interGrid measure.Sum }

// add accounts for a finished execution.
func (g *goodputs) add(d *delegated, x *testnet.Execution) {
	home, _ := d.n.Index(x.Job.Home)
	at := x.Site
	if at == home {
		return
	}
	area := &g.intraGrid
	switch {
	case gridOf(at) != gridOf(home):
		area = &g.interGrid
	case at >= clustersDAS && parentOf(at) == parentOf(home):
		area = &g.intraSite
	}
	area.Add(x.Job.Processors, int64(x.End-x.Start))
}

// lender tells the collector whose processors a job ran on.
func (d *delegated) lender(x *testnet.Execution, yield func(lender int, processors int64)) {
	if home, _ := d.n.Index(x.Job.Home); d.dmm() && x.Site != home {
		yield(x.Site, x.Job.Processors)
	}
}
