package delegation

import (
	"fmt"
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/testnet/draw"
	"gridnode/testnet/workload"
)

// The dual grid of Delegated MatchMaking, figure 1: clusters 0 to 4 are the DAS, 5 to
// 19 Grid'5000; 20 and 21 are the roots of the two, 22 to 30 the sites of Grid'5000.
const (
	clustersDAS  = 5
	clusters     = 20
	rootDAS      = 20
	rootG5K      = 21
	siteFirst    = 22
	delegation31 = 31 // sites, administrative ones included
)

// clusterSizes are processors. The paper prints totals and ranges only: DAS "400
// processors … cluster sizes range from 64 to 144", Grid'5000 "15 clusters and over
// 2750 processors", "20 sites and over 3300 processors". These fit: the DAS is as
// the DAS-2 was, Grid'5000 is near what its clusters were in 2006.
var clusterSizes = [clusters]int64{
	144, 64, 64, 64, 64, // DAS: 400
	128, 128, 198, 64, // site 22
	96,       // 23
	112, 140, // 24
	148, 224, // 25
	94, 480, // 26
	114, // 27
	118, // 28
	198, // 29
	684, // 30
}

// clusterSite is the administrative site above each cluster of Grid'5000: the
// published sibling groups are 5–8, 11–12, 13–14 and 15–16.
var clusterSite = [clusters]int{
	rootDAS, rootDAS, rootDAS, rootDAS, rootDAS,
	22, 22, 22, 22, 23, 23, 24, 24, 25, 25, 26, 26, 27, 28, 29,
}

// parentOf returns the site above another, -1 for the roots.
func parentOf(site int) int {
	switch {
	case site < clusters:
		return clusterSite[site]
	case site >= siteFirst:
		return rootG5K
	}
	return -1
}

// gridOf returns 0 for the DAS and 1 for Grid'5000.
func gridOf(site int) int {
	if site < clustersDAS || site == rootDAS {
		return 0
	}
	return 1
}

// delegationName names a site of the dual grid.
func delegationName(site int) string { return fmt.Sprintf("%02d", site) }

func delegationID(site int) grid.SiteID { return grid.SiteID(delegationName(site)) }

// delegationLinks returns the neighbours of a site: "sites 0–4, 5–8, 11–12, 13–14,
// 15–16, 22–30 and 20–21 are also inter-connected with sibling links" (§4.1).
func delegationLinks(site int) (links []lease.Link) {
	parent := parentOf(site)
	for other := range delegation31 {
		switch {
		case other == site:
		case other == parent:
			links = append(links, lease.Link{Site: delegationID(other), Relation: lease.Parent})
		case parentOf(other) == site:
			links = append(links, lease.Link{Site: delegationID(other), Relation: lease.Child})
		case parentOf(other) == parent:
			links = append(links, lease.Link{Site: delegationID(other), Relation: lease.Sibling})
		}
	}
	return links
}

// serialShare is the probability of a job on one processor: "p=0.95" (§5.3).
const serialShare = 0.95

// Generate returns the jobs of all clusters, as cfg says. The stream of a cluster depends
// on set and cluster alone, so loads differ in gaps only.
func Generate(cfg *Config) ([]workload.Job, error) {
	span := grid.Time(cfg.Days * float64(grid.Day))
	var sources []workload.Source
	for c, processors := range clusterSizes {
		load := cfg.LoadG5K / 100
		if gridOf(c) == 0 {
			load = cfg.LoadDAS / 100
		}
		g, err := workload.NewGenerator(model(processors, load, cfg.Sizes), rand.New(draw.PCG(cfg.Set, delegationID(c), draw.ForJobs)))
		if err != nil {
			return nil, fmt.Errorf("cluster %d: %w", c, err)
		}
		sources = append(sources, &workload.Window{Source: g, Span: span})
	}
	return merged(sources)
}
