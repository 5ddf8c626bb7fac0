package member

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"testing"

	"gridnode/grid"
)

// cellar is a site that has met others, and keys of cells.
type cellar struct {
	*office
	rng *mathrand.Rand
}

func newCellar(t *testing.T) *cellar {
	c := &cellar{newOffice(t, newTown(t).fed, "here", nil), mathrand.New(mathrand.NewPCG(3, 4))}
	c.roll.Renewed(c.member("here", "", Usual))
	return c
}

func (c *cellar) member(site grid.SiteID, org string, rights Rights) *Member {
	m := &Member{Site: site, Name: "n-" + string(site), Org: org, Rights: rights, Expires: grid.Never}
	binary.BigEndian.PutUint64(m.Serial[:], c.rng.Uint64())
	binary.BigEndian.PutUint64(m.Serial[8:], c.rng.Uint64())
	return m
}

// meet has the site meet so many members of organisations, and returns who they are.
func (c *cellar) meet(count int, org func(i int) string) (sites []grid.SiteID) {
	for i := range count {
		site := grid.SiteID(fmt.Sprint("site-", i))
		c.step(start, &Introduce{Member: c.member(site, org(i), Usual)})
		sites = append(sites, site)
	}
	return sites
}

// near draws a cell, and in which order the sites are near it.
func (c *cellar) near(sites []grid.SiteID) (key grid.Key) {
	binary.BigEndian.PutUint64(key[:], c.rng.Uint64())
	c.rng.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	return key
}

const seatCells, seatCopies = 500, 4

// TestOrganisationsTakeTurns: whatever keys the sites of one organisation have chosen, it has
// one copy of a cell while there are others near it.
func TestOrganisationsTakeTurns(t *testing.T) {
	c := newCellar(t)
	org := func(site grid.SiteID) string { return c.roll.Member(site).Org }
	sites := c.meet(20, func(i int) string {
		if i%5 == 0 {
			return fmt.Sprint("institute ", i)
		}
		return "evil" // sixteen of the twenty nearest
	})
	for range seatCells {
		key := c.near(sites)
		got := c.roll.Seat(start, key, sites)
		evil := 0
		for _, site := range got[:seatCopies] {
			if org(site) == "evil" {
				evil++
			}
		}
		if evil > 1 {
			t.Fatalf("one organisation has %d of %d seats", evil, seatCopies)
		}
		if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, slices.Sorted(slices.Values(sites))) {
			t.Fatalf("%v were seated as %v", sites, got)
		}
	}
	// Who may not hold is left out, and who is not known comes last.
	c.step(start, &Introduce{Member: c.member("unable", "other", MaySubmit)})
	got := c.roll.Seat(start, grid.Key{1}, append([]grid.SiteID{"unable", "nobody knows it", "here"}, sites...))
	if len(got) != 22 || slices.Contains(got, "unable") || got[21] != "nobody knows it" || !slices.Contains(got, "here") {
		t.Errorf("seats %v", got)
	}
	// Where there is one organisation only, it has all seats.
	alone := newCellar(t)
	sites = alone.meet(20, func(int) string { return "alone" })
	if got := alone.roll.Seat(start, alone.near(sites), sites); len(got) != 20 {
		t.Errorf("seats of one organisation: %v", got)
	}
}

// TestChosenKeys: a site that has chosen a key next to a cell's has a seat no more often than any
// other of those near it. Its certificate decides whether it has, once and for all.
func TestChosenKeys(t *testing.T) {
	c := newCellar(t)
	sites := c.meet(20, func(int) string { return "" })
	seated := 0
	for range seatCells {
		key := c.near(sites)
		if slices.Contains(c.roll.Seat(start, key, sites)[:seatCopies], sites[0]) {
			seated++
		}
	}
	t.Logf("the nearest of %d sites has a seat in %d of %d cells", len(sites), seated, seatCells)
	if fair := seatCells * seatCopies / 16; seated > fair*5/4 || seated < fair*3/4 {
		t.Errorf("the nearest site has a seat in %d of %d cells, want about %d", seated, seatCells, fair)
	}
}

// TestSeatsAtTheEdge: sites whose routers name others at the edge seat the same ones.
func TestSeatsAtTheEdge(t *testing.T) {
	c := newCellar(t)
	all := c.meet(22, func(i int) string { return fmt.Sprint("org ", i%9) })
	differ := 0
	for range seatCells {
		key := c.near(all)
		one, other := all[:20], append(slices.Clone(all[:17]), all[19:]...) // it has missed two
		if !slices.Equal(c.roll.Seat(start, key, one)[:seatCopies], c.roll.Seat(start, key, other)[:seatCopies]) {
			differ++
		}
	}
	if differ*100 > seatCells {
		t.Errorf("in %d of %d cells two sites seat others", differ, seatCells)
	}
}

// TestRenewalKeepsTheLot: who has its certificate renewed has the same turns as before.
func TestRenewalKeepsTheLot(t *testing.T) {
	w := newTown(t)
	o := newOffice(t, w.fed, idOf(t, newKey(10)), w.delegate)
	o.roll.cfg.Name = "alpha"
	key := newKey(30)
	public, site := key.Public().(ed25519.PublicKey), idOf(t, key)
	secret := Secret{1}
	o.step(start, &Invite{Invitation: Invitation{ID: InvitationID{1}, Hash: sha256.Sum256(secret[:]), Rights: Usual, Expires: start + grid.Hour, Valid: grid.Day}})
	verified := func(a any) *Member {
		t.Helper()
		applied := a.(*Applied)
		if applied.Err != nil {
			t.Fatal(applied.Err)
		}
		m, err := w.fed.Verify(append(Proof(applied.Certificate), w.proof...), site, start)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := verified(o.step(start, &Apply{Application: Application{ID: InvitationID{1}, Secret: secret, Name: "beta", Site: site, Key: public}}))
	o.step(start, &Introduce{Member: first})
	second := verified(o.step(start, &Renew{Site: site, Key: public}))
	if first.Serial == second.Serial || first.Lot() != second.Lot() || first.Lot() == (Lot{}) {
		t.Errorf("serial numbers %x, then %x: want another one with the same latter half", first.Serial, second.Serial)
	}
}
