package site

import (
	"fmt"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
)

// TestScansAreBounded: where the federation was looked at a while ago, a scan for a job that may
// run anywhere ends with the cheapest sites that have a part of it idle, once those suffice; if
// they never do, all are looked at.
func TestScansAreBounded(t *testing.T) {
	const idle = 4 // of every site
	pageOf := func(now grid.Time, first, n int, free int64) (page []directory.Quote) {
		for i := range n {
			name := fmt.Sprintf("site-%03d", first+i)
			page = append(page, directory.Quote{Site: grid.SiteID(name), Name: name, Resources: grid.Resources{Processors: idle},
				Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Free: free, Widest: free, Issued: now})
		}
		return page
	}
	for _, tt := range []struct {
		name       string
		later      grid.Time // than the scan of all
		components string
		tasks      int64
		end        bool // there are no more sites with so much idle
		goesOn     bool
		all        bool // … to the end
	}{
		{"enough at once", grid.Minute, "", 16, false, false, false},
		{"enough at the end", grid.Minute, "", 16, true, false, false},
		{"not enough", grid.Minute, "", 200, false, true, false},
		{"not enough, and nothing idle is left", grid.Minute, "", 200, true, true, false},
		{"names a site", grid.Minute, "8@site-100,8", 16, false, true, true},
		{"long after", scanWhole, "", 16, false, true, true},
	} {
		b := newBench(t, func(c *Config) {
			c.Parts = Everything
			c.Directory = directory.Config{Federation: "test"}
		})
		sc := b.site.gangs.scout
		sc.scan(b.now, &b.out)
		b.step(&directory.Found{ID: sc.query, End: true, Certain: true, Quotes: pageOf(b.now, 0, 200, idle)})
		b.now += tt.later
		j := b.job(1, tt.tasks)
		j.Tasks, j.Coallocate = tt.tasks, &grid.Coallocation{Components: tt.components, CCR: -1}
		if tt.components == "" {
			j.Coallocate.Count = "2.."
		}
		b.site.gangs.newcomers = []*entry{{job: j}}
		sc.scan(b.now, &b.out)
		if all := sc.wants == 0; all != tt.all {
			t.Errorf("%s: a scan of all sites: %t", tt.name, all)
		}
		page := pageOf(b.now, 0, scanSites, idle)
		asked := sc.query
		sc.found(b.now, &directory.Found{ID: asked, End: tt.end, Certain: true, Quotes: page}, &b.out)
		if goesOn := sc.query != 0 && sc.query != asked; goesOn != tt.goesOn {
			t.Errorf("%s: another page is asked for: %t, want %t", tt.name, goesOn, tt.goesOn)
		}
		if all := sc.wants == 0; all != (tt.all || tt.end && tt.goesOn) {
			t.Errorf("%s: the scan goes on to see all sites: %t", tt.name, all)
		}
		view := b.site.gangs.coord.View()
		if at := view.Index("site-199"); !tt.goesOn && (at < 0 || view.Sites[at].Free >= sc.least()) {
			t.Errorf("%s: a site that was not come to is at %d of the view, with %d processors idle, or not at all", tt.name, at, sc.least())
		}
	}
}
