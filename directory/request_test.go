package directory

import "testing"

func TestRequestsAreBounded(t *testing.T) {
	var r requests
	for i := range requestsMax {
		if r.add(request{purpose: forScan, site: "a"}) == 0 {
			t.Fatalf("request %d was not taken", i)
		}
	}
	if r.add(request{purpose: forScan, site: "a"}) != 0 {
		t.Error("a full table took one more")
	}
	if _, ok := r.take(1, "b"); ok {
		t.Error("another site answered")
	}
	if _, ok := r.take(1, "a"); !ok || r.add(request{purpose: forScan, site: "a"}) == 0 {
		t.Error("no room after an answer")
	}
}
