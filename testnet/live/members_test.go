package live

import (
	"testing"
	"testing/synctest"
	"time"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/member"
	"gridnode/node/site"
)

// silenceMax is within what a site that was revoked must be out everywhere.
const silenceMax = time.Minute

// TestRevocationToSilence: of real nodes one is revoked at another. Within a minute no
// node knows it as a member, nor finds its quote, and all find those of the others.
func TestRevocationToSilence(t *testing.T) {
	nodes := 50
	if testing.Short() {
		nodes = 8
	}
	synctest.Test(t, func(t *testing.T) {
		watch(t, 10*time.Minute)
		l := up(t, func(cfg *Config) { cfg.Nodes, cfg.Count = nodes, 1 })
		defer time.Sleep(10 * time.Second) // streams that wait for a greeting give up
		defer closeLive(t, l)
		time.Sleep(time.Minute) // so that whatever is to meet has met
		gone := nodes / 2
		card := l.hosts[gone].Membership()
		m, err := l.home.Federation.Verify(card.Proof, l.ids[gone], l.hosts[0].Now())
		if err != nil {
			t.Fatal(err)
		}
		list, err := l.home.Revoke(nil, l.hosts[0].Now(), m.Serial)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := l.hosts[0].Ask(t.Context(), func(token uint64) grid.Input { return &member.Learn{Token: token, List: list} })
		if err != nil || answer.(*member.Learned).Err != nil {
			t.Fatalf("revoke: %+v, %v", answer, err)
		}
		began := time.Now()
		var known, silent time.Duration // until all have heard of it; until nobody finds its quote
		for known == 0 || silent == 0 {
			time.Sleep(100 * time.Millisecond)
			if time.Since(began) > silenceMax {
				t.Fatalf("after %v: all know it within %v, nobody lists it within %v", silenceMax, known, silent)
			}
			ignorant, listing := 0, 0
			for i, h := range l.hosts {
				if i == gone {
					continue
				}
				if !knowsOf(t, h, m) {
					ignorant++
				}
				if known > 0 && lists(t, h, l.ids[gone], nodes-1) {
					listing++
				}
			}
			switch {
			case ignorant == 0 && known == 0:
				known = time.Since(began)
			case known > 0 && listing == 0:
				silent = time.Since(began)
			}
		}
		t.Logf("%d nodes: all know it after %v, nobody lists it after %v", nodes, known, silent)
	})
}

// knowsOf reports whether a node knows that a membership was revoked.
func knowsOf(t *testing.T, h *node.Host, m *member.Member) (knows bool) {
	t.Helper()
	if err := h.Do(t.Context(), func(s *site.Site) {
		knows = s.Roll().Revoked().Has(m) && s.Roll().Known(m.Site, h.Now()) == nil
	}); err != nil {
		t.Fatal(err)
	}
	return knows
}

// lists reports whether a node finds the quote of a site, or does not find those of so
// many others.
func lists(t *testing.T, h *node.Host, gone grid.SiteID, others int) bool {
	t.Helper()
	query := directory.Query{Attribute: directory.Price, Limit: others + 1}
	answer, err := h.Ask(t.Context(), func(token uint64) grid.Input { return &site.FindQuotes{Token: token, Query: query} })
	if err != nil {
		t.Fatal(err)
	}
	found := answer.(*directory.Found)
	for _, q := range found.Quotes {
		if q.Site == gone {
			return true
		}
	}
	return len(found.Quotes) < others
}
