package site

import (
	"fmt"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
)

// TestScansAreBounded: where the federation was looked at a while ago, a scan for a job that may
// run anywhere ends with the sites that have the most idle processors, once those suffice.
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
		free       int64 // of the last site of the first page
		goesOn     bool
		all        bool // … to the end
	}{
		{"enough at once", grid.Minute, "", 16, idle, false, false},
		{"not enough", grid.Minute, "", 200, idle, true, false},
		{"not enough, and nothing idle is left", grid.Minute, "", 200, 0, false, false},
		{"names a site", grid.Minute, "8@site-100,8", 16, idle, true, true},
		{"long after", scanWhole, "", 16, idle, true, true},
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
		page[len(page)-1].Free = tt.free
		asked := sc.query
		sc.found(b.now, &directory.Found{ID: asked, Certain: true, Quotes: page}, &b.out)
		if goesOn := sc.query != 0 && sc.query != asked; goesOn != tt.goesOn {
			t.Errorf("%s: another page is asked for: %t, want %t", tt.name, goesOn, tt.goesOn)
		}
		view := b.site.gangs.coord.View()
		if at := view.Index("site-199"); !tt.goesOn && (at < 0 || view.Sites[at].Free > tt.free) {
			t.Errorf("%s: a site that was not come to is at %d of the view, with more than %d processors idle, or not at all", tt.name, at, tt.free)
		}
	}
}
