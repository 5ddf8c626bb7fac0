package member

import (
	"errors"
	"slices"
	"testing"

	"gridnode/grid"
)

// outcasts returns who has become one since it was last asked.
func (o *office) outcasts() (list []grid.SiteID) {
	for _, c := range o.roll.Changes() {
		if c.Outcast {
			list = append(list, c.Site)
		}
	}
	return list
}

// TestOutcastsAreRemembered: whoever was met and is revoked is an outcast, at once and after a
// restart, whether the list comes before or after that.
func TestOutcastsAreRemembered(t *testing.T) {
	w := newTown(t, "beta", "gamma")
	self := idOf(t, newKey(99))
	o := newOffice(t, w.fed, self, nil)
	beta, gamma := w.members["beta"].Site, w.members["gamma"].Site
	o.step(start, &Introduce{Token: 1, Member: w.members["beta"]})
	o.step(start, &Introduce{Token: 1, Member: w.members["gamma"]})
	first := w.revoked(nil, "beta")
	o.step(start, &Learn{Token: 2, List: first})
	if got := o.outcasts(); !slices.Equal(got, []grid.SiteID{beta}) || !o.roll.Outcast(beta) || o.roll.Outcast(gamma) || o.roll.Outcast("who is never met") {
		t.Fatalf("outcasts: %v", got)
	}
	o.restart(self)
	if at := o.roll.NextTimer(); at > start {
		t.Errorf("looks at what it remembers at %v", at)
	}
	o.step(start, grid.Tick{})
	if got := o.outcasts(); !slices.Equal(got, []grid.SiteID{beta}) {
		t.Errorf("after a restart: %v", got)
	}
	o.step(start, &Learn{Token: 3, List: w.revoked(first, "gamma")}) // whom it has not met since it started
	if got := o.outcasts(); !slices.Equal(got, []grid.SiteID{gamma}) {
		t.Errorf("one that was met before the restart: %v", got)
	}
	again := w.add(20, "beta") // certified anew
	if a := o.step(start, &Introduce{Token: 4, Member: again}).(*Introduced); a.Err != nil || o.roll.Outcast(beta) {
		t.Errorf("beta is invited again: %v, outcast %t", a.Err, o.roll.Outcast(beta))
	}
}

// TestOutcastAfterADay: a certificate that ends makes no outcast of its site for a day, in
// which it may be renewed.
func TestOutcastAfterADay(t *testing.T) {
	for name, restarts := range map[string]bool{"no restart": false, "a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t, "beta", "gamma")
			self := idOf(t, newKey(99))
			o := newOffice(t, w.fed, self, nil)
			beta, gamma := w.members["beta"], w.members["gamma"]
			o.step(start, &Introduce{Token: 1, Member: beta})
			o.step(start, &Introduce{Token: 1, Member: gamma})
			o.step(beta.Expires, grid.Tick{})
			if restarts {
				o.restart(self)
				o.step(beta.Expires, grid.Tick{})
			}
			renewed := *gamma
			renewed.Expires += 10 * grid.Day
			o.step(beta.Expires+grid.Hour, &Introduce{Token: 1, Member: &renewed})
			o.step(beta.Expires+outcastAfter-1, grid.Tick{})
			if got := o.outcasts(); len(got) > 0 {
				t.Errorf("too early: %v", got)
			}
			if at := o.roll.NextTimer(); at > beta.Expires+outcastAfter {
				t.Errorf("looks again at %v, want %v", at, beta.Expires+outcastAfter)
			}
			o.step(beta.Expires+outcastAfter, grid.Tick{})
			if got := o.outcasts(); !slices.Equal(got, []grid.SiteID{beta.Site}) {
				t.Errorf("a day later: %v, want beta", got)
			}
			o.restart(self)
			o.step(gamma.Expires+2*outcastAfter, grid.Tick{})
			if got := o.outcasts(); !slices.Equal(got, []grid.SiteID{beta.Site}) {
				t.Errorf("after another restart: %v, want beta and not gamma, whose certificate was renewed", got)
			}
		})
	}
}

// TestRevokedSiteIsAlone: to a site that learns that it was revoked itself everybody is an
// outcast, and nobody is let in.
func TestRevokedSiteIsAlone(t *testing.T) {
	w := newTown(t, "beta", "gamma")
	o := newOffice(t, w.fed, w.members["gamma"].Site, nil)
	o.roll.Renewed(w.members["gamma"])
	o.step(start, &Introduce{Token: 1, Member: w.members["beta"]})
	o.step(start, &Learn{Token: 2, List: w.revoked(nil, "gamma")})
	beta := w.members["beta"].Site
	if got := o.outcasts(); !slices.Equal(got, []grid.SiteID{beta}) || len(o.gone) != 1 || o.roll.Is(beta) {
		t.Errorf("outcasts %v, expelled %v", got, o.gone)
	}
	if a := o.step(start, &Introduce{Token: 3, Member: w.members["beta"]}).(*Introduced); !errors.Is(a.Err, ErrRevoked) {
		t.Errorf("beta is let in: %v", a.Err)
	}
}

func TestMetIsStored(t *testing.T) {
	w := newTown(t, "beta")
	beta := w.members["beta"]
	want := &met{site: beta.Site, expires: beta.Expires, chain: beta.chain}
	got, err := decodeMet(want.AppendRecord(nil))
	if err != nil || got.site != want.site || got.expires != want.expires || !slices.Equal(got.chain, want.chain) || len(got.chain) != 2 {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	record := want.AppendRecord(nil)
	if _, err := decodeMet(record[:len(record)-3]); err == nil {
		t.Error("half a record is taken for one")
	}
}
