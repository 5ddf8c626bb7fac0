package p2p

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"

	"gridnode/grid"
)

// lastOf waits for one more input of a node and returns it.
func lastOf[In grid.Input](t *testing.T, n *node, order func()) In {
	t.Helper()
	before := len(n.inputs())
	order()
	in, ok := n.await(func(in []grid.Input) bool { return len(in) > before })[before].(In)
	if !ok {
		t.Fatalf("got %v", n.inputs()[before])
	}
	return in
}

// TestProviderRecords: what nodes provide every other node finds, also when one of them
// is gone, and nobody finds what nobody provides.
func TestProviderRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 20)
		defer closeAll(nodes)
		key := grid.Key{1}
		var want []grid.SiteID
		for _, n := range nodes[3:5] {
			if got := lastOf[*grid.Provided](t, n, func() { n.Provide(key) }); got.Key != key || !got.Stored {
				t.Fatalf("%+v", got)
			}
			want = append(want, n.Self())
		}
		slices.Sort(want)
		find := func(n *node) []grid.SiteID {
			sites := slices.Clone(lastOf[*grid.Providers](t, n, func() { n.FindProviders(key) }).Peers)
			slices.Sort(sites)
			return sites
		}
		for i, n := range nodes {
			left := slices.DeleteFunc(slices.Clone(want), func(s grid.SiteID) bool { return s == n.Self() })
			if got := find(n); !slices.Equal(got, left) {
				t.Errorf("node %d finds %v, want %v", i, got, left)
			}
		}
		if got := lastOf[*grid.Providers](t, nodes[18], func() { nodes[18].FindProviders(grid.Key{2}) }); len(got.Peers) != 0 {
			t.Errorf("nobody provides it, and found is %v", got.Peers)
		}
		nodes[3].Close()
		if got := find(nodes[0]); !slices.Equal(got, want) { // its record is with others: who finds it has to ask
			t.Errorf("found is %v, want %v", got, want)
		}
	})
}

// TestProviderRecordsExpire unless they are provided again.
func TestProviderRecordsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		for _, key := range []grid.Key{{1}, {2}} {
			lastOf[*grid.Provided](t, nodes[0], func() { nodes[0].Provide(key) })
		}
		time.Sleep(recordLife / 2)
		lastOf[*grid.Provided](t, nodes[0], func() { nodes[0].Provide(grid.Key{2}) })
		time.Sleep(recordLife/2 + time.Minute)
		for key, want := range map[grid.Key]int{{1}: 0, {2}: 1} {
			if got := lastOf[*grid.Providers](t, nodes[1], func() { nodes[1].FindProviders(key) }); len(got.Peers) != want {
				t.Errorf("found is %v, want %d", got.Peers, want)
			}
		}
	})
}

// TestNobodyTakesTheRecord of a node that is alone.
func TestNobodyTakesTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 1)
		defer closeAll(nodes)
		if got := lastOf[*grid.Provided](t, nodes[0], func() { nodes[0].Provide(grid.Key{1}) }); got.Stored {
			t.Errorf("%+v", got)
		}
		if got := lastOf[*grid.Providers](t, nodes[0], func() { nodes[0].FindProviders(grid.Key{1}) }); len(got.Peers) != 0 {
			t.Errorf("it finds itself: %v", got.Peers)
		}
		before := len(nodes[0].inputs())
		for i := range 2 * (recordOrdersMax + recordOrdersAlive) { // every order is answered, also beyond the bounds
			if i%2 == 0 {
				nodes[0].Provide(grid.Key{byte(i), byte(i >> 8)})
			} else {
				nodes[0].FindProviders(grid.Key{byte(i), byte(i >> 8)})
			}
		}
		nodes[0].await(func(in []grid.Input) bool { return len(in) == before+2*(recordOrdersMax+recordOrdersAlive) })
	})
}

// TestProviderRecordsAreBounded: per peer, per key and in all; what is deleted makes room.
func TestProviderRecordsAreBounded(t *testing.T) {
	put := func(r *providerRecords, key, peer string) {
		if err := r.Put(t.Context(), datastore.NewKey("/providers/"+key+"/"+peer), []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(r *providerRecords, prefix string) int {
		results, err := r.Query(t.Context(), query.Query{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		all, err := results.Rest()
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	r := newProviderRecords()
	for i := range recordsPeerMax + 1 {
		put(r, fmt.Sprint("K", i), "LIAR")
	}
	if n := count(r, "/providers/"); n != recordsPeerMax {
		t.Errorf("one peer has %d records, want %d", n, recordsPeerMax)
	}
	put(r, "K1", "LIAR") // again: not one more
	for i := range recordsKeyMax + 1 {
		put(r, "K0", fmt.Sprint("P", i))
	}
	if n := count(r, "/providers/K0"); n != recordsKeyMax {
		t.Errorf("one key has %d records, want %d", n, recordsKeyMax)
	}
	if n := count(r, "/providers/none"); n != 0 {
		t.Errorf("a key without records has %d", n)
	}
	if err := r.Delete(t.Context(), datastore.NewKey("/providers/K0/LIAR")); err != nil {
		t.Fatal(err)
	}
	put(r, "K0", "HONEST")
	if has, _ := r.Has(t.Context(), datastore.NewKey("/providers/K0/HONEST")); !has || r.peers["LIAR"] != recordsPeerMax-1 {
		t.Errorf("there is no room after one was deleted: %d of the liar", r.peers["LIAR"])
	}
	for i := 0; r.count < recordsMax; i++ {
		put(r, fmt.Sprint("X", i/8), fmt.Sprint("Q", i%8, "-", i/4000))
	}
	put(r, "Y", "LATE")
	if has, _ := r.Has(t.Context(), datastore.NewKey("/providers/Y/LATE")); has || count(r, "/providers/") != recordsMax {
		t.Errorf("%d records, want at most %d", count(r, "/providers/"), recordsMax)
	}
}
