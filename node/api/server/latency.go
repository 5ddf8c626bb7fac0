package server

import (
	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/site"
)

// matrixMax bounds the sites between which a listing tells all latencies: more are
// too many to read, and their pairs too many to send.
const matrixMax = 32

// latencies fills in what this site knows of the ways from here to sites, and, unless
// there are too many, between all of them. It is called on the host's loop.
func (a *Server) latencies(s *site.Site, sites []api.SiteInfo) {
	ids := make([]grid.SiteID, len(sites))
	self := -1
	for i := range sites {
		if ids[i] = grid.SiteID(sites[i].ID); sites[i].Self {
			self = i
		}
	}
	network := s.Network(a.host.Now(), ids)
	known := func(from, to int) *api.Latency {
		latency, source := network.Between(from, to)
		if source == coalloc.LatencyUnknown {
			return nil
		}
		return &api.Latency{To: sites[to].ID, Latency: api.Seconds(latency), Source: source.String()}
	}
	for i := range sites {
		if x, y, known := network.Place(i); known {
			sites[i].Place = []api.Seconds{api.Seconds(x), api.Seconds(y)}
		}
		if self >= 0 {
			if l := known(self, i); l != nil {
				sites[i].Latency, sites[i].LatencySource = l.Latency, l.Source
			}
		}
		if len(sites) > matrixMax {
			continue
		}
		for j := range sites {
			if l := known(i, j); l != nil {
				sites[i].Latencies = append(sites[i].Latencies, *l)
			}
		}
	}
}
