package coallocation

import (
	"gridnode/coalloc"
	"gridnode/grid"
)

// das3Cluster is a cluster of DAS-3 (co-allocation, tables I and II).
type das3Cluster struct {
	name      string
	nodes     int64
	megahertz int64
}

var das3Clusters = []das3Cluster{{"vrije", 85, 2400}, {"amsterdam", 41, 2200}, {"delft", 68, 2400}, {"multimedian", 46, 2400}, {"leiden", 32, 2600}}

// das3Latency and das3Bandwidth are table II, in microseconds and MB/s; 0: between
// Delft and Leiden nothing could be measured.
var (
	das3Latency = [5][5]grid.Time{
		{30, 400, 1150, 400, 1000},
		{400, 30, 1100, 30, 600},
		{1150, 1100, 50, 1450, 0},
		{400, 30, 1450, 30, 600},
		{1000, 600, 0, 600, 30},
	}
	das3Bandwidth = [5][5]int64{
		{561, 185, 45, 185, 77},
		{185, 526, 53, 512, 115},
		{45, 53, 115, 10, 0},
		{185, 512, 10, 560, 115},
		{77, 115, 0, 115, 530},
	}
)

// das3 returns the clusters of DAS-3 without the one of that name, and what lies
// between them.
func das3(without string) ([]das3Cluster, *coalloc.Matrix, error) {
	var clusters []das3Cluster
	var at []int
	for i, c := range das3Clusters {
		if c.name != without {
			clusters = append(clusters, c)
			at = append(at, i)
		}
	}
	m := coalloc.NewMatrix(len(clusters))
	for i, a := range at {
		for j, b := range at[:i+1] {
			if das3Latency[a][b] == 0 {
				continue
			}
			if err := m.Set(i, j, das3Latency[a][b], das3Bandwidth[a][b]*1_000_000); err != nil {
				return nil, nil, err
			}
		}
	}
	return clusters, m, nil
}

// das3Penalty is how communication was seen to suffer: in one cluster the Wave
// application (CCR 4) takes 200 s, on the four of DAS-3 without Delft 750 s (figure 4), so
// its communication, 4/5 of the time, takes 4.4375 times as long there. The slowest way
// between those four is 970 µs slower than within a cluster (table II). Wave then takes
// 355 s on two, 534 s on three and 750 s on four clusters, averaged over their
// combinations: it "increases markedly" and evenly, as in figures 3 and 4.
var das3Penalty = coalloc.Penalty{Extra: 3_437_500, Latency: 970, Sites: 4}
