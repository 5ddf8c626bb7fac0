package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/grid"
	"gridnode/node/p2p"
	"gridnode/node/site"
)

// findSite has a host look for a site by its name or ID.
func findSite(t *testing.T, h *Host, text string) *record.Found {
	t.Helper()
	answer, err := h.Ask(t.Context(), func(token uint64) grid.Input { return &record.Find{Token: token, Text: text} })
	if err != nil {
		t.Fatal(err)
	}
	return answer.(*record.Found)
}

// listed returns the sites that the index names to a host.
func listed(t *testing.T, h *Host) (sites []grid.SiteID) {
	t.Helper()
	answer, err := h.Ask(t.Context(), func(token uint64) grid.Input {
		return &site.FindQuotes{Token: token, Query: directory.Query{Attribute: directory.Price, Limit: directory.LimitMax}}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range answer.(*directory.Found).Quotes {
		sites = append(sites, q.Site)
	}
	return sites
}

// TestNamesAreFound: in a federation of 16 nodes, of which half have no quote, a node
// finds by name and by ID those that no page of the index names, and so does
// one that has spoken to nobody but whom it joins through.
func TestNamesAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("sixteen nodes do with more messages what two do elsewhere")
	}
	synctest.Test(t, func(t *testing.T) {
		memory := &p2p.Memory{}
		const n = 16
		var list []*Host
		for i := range n {
			cfg := hostConfig(byte(i), "", memory, &timers{})
			cfg.BucketSize = 11
			cfg.Member = nil // where names are what sites say
			cfg.Site.Siblings.Authority = fmt.Sprint("authority ", i/8)
			switch {
			case i == n-1:
				cfg.Site.Name = "site-3" // another claims it
			case i%2 == 1:
				cfg.Site.Parts = site.Leases | site.Names
			}
			for _, other := range list[:min(i, 3)] {
				cfg.Join = append(cfg.Join, other.Addrs()...)
			}
			list = append(list, startHost(t, cfg))
		}
		defer func() {
			for _, h := range list {
				closeHost(t, h)
			}
		}()
		time.Sleep(5 * time.Minute) // who came early has looked again where its name belongs
		cfg := hostConfig(n, "", memory, &timers{})
		cfg.Member, cfg.BucketSize, cfg.Join = nil, 11, list[0].Addrs()
		list = append(list, startHost(t, cfg))
		if slices.ContainsFunc(list[n].Peers(t.Context()), func(p p2p.Peer) bool { return p.Site == list[13].ID() }) {
			t.Fatal("a node that has just been started is connected to whom it does not join through")
		}
		if f := findSite(t, list[n], "site-13"); len(f.Records) != 1 || f.Records[0].Site != list[13].ID() {
			t.Errorf("a node that has spoken to nobody but whom it joins through: %+v", f)
		}
		for _, i := range []int{n, 0, 8} {
			seeker := list[i]
			index := listed(t, seeker)
			for j := 5; j < n-1; j += 2 {
				whom := list[j]
				if slices.Contains(index, whom.ID()) {
					t.Fatalf("the index names node %d", j)
				}
				for _, text := range []string{fmt.Sprint("site-", j), string(whom.ID())} {
					f := findSite(t, seeker, text)
					if len(f.Records) != 1 || f.Records[0].Site != whom.ID() {
						t.Errorf("node %d looked for %s: %+v", i, text, f)
						continue
					}
					r := f.Records[0]
					if again, err := record.Open(r.Sealed); err != nil || again.Site != whom.ID() {
						t.Errorf("the record of %s is not signed by it: %v", text, err)
					}
					if r.Authority != fmt.Sprint("authority ", j/8) || len(r.Addresses) == 0 || !strings.HasSuffix(r.Addresses[0], string(whom.ID())) {
						t.Errorf("%s says %+v of itself", text, r.Offer)
					}
				}
			}
		}
		f := findSite(t, list[10], "site-3")
		if len(f.Records) != 2 {
			t.Errorf("two sites claim a name, %d are shown", len(f.Records))
		}
		if f := findSite(t, list[10], "nobody"); len(f.Records) != 0 || f.Err != nil {
			t.Errorf("nobody is called so: %+v", f)
		}

		// A node that is started again, on another address and with another name, is found
		// by that at once, and is there under the former one for whoever has not seen it.
		closeHost(t, list[7])
		cfg = hostConfig(7, "", memory, &timers{})
		cfg.Member, cfg.BucketSize, cfg.Site.Name, cfg.Join = nil, 11, "renamed", list[0].Addrs()
		list[7] = startHost(t, cfg)
		time.Sleep(time.Minute)
		if f := findSite(t, list[12], "renamed"); len(f.Records) != 1 || f.Records[0].Site != list[7].ID() {
			t.Errorf("the new name: %+v", f)
		}
		if f := findSite(t, list[12], "site-7"); len(f.Records) != 0 {
			t.Errorf("the former name, although the newer record was seen: %+v", f.Records[0])
		}
	})
}
