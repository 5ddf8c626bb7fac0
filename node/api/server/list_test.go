package server

import (
	"errors"
	"net/url"
	"runtime"
	"slices"
	"testing"

	"gridnode/grid"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/site"
)

// heap returns how many bytes are held.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAPIListsMany: a long listing has every job once and in order, and neither side holds it:
// while it is on its way both together hold less than its jobs would take.
func TestAPIListsMany(t *testing.T) {
	const many = 10_000 // as many as one request may submit
	b := newAPIBenchFor(t, t.TempDir(), Config{}, site.Limits{Jobs: many, PerUser: many, Finished: 10, Retention: grid.Hour})
	index := make([]int64, many)
	for i := range index {
		index[i] = int64(i)
	}
	b.submit(false, api.JobSpec{Name: "long", Args: []string{"hold"}, Array: index, Hold: true})
	for _, name := range []string{"", "submitted", "-id", "name", "-cost"} {
		order, _ := api.ParseJobOrder(name) // the zero value for none
		query := url.Values{}
		if name != "" {
			query.Set("sort", name)
		}
		seen := make(map[string]bool, many)
		before, most := heap(), int64(0)
		var last *api.Job
		_, err := api.ListJobs(t.Context(), b.client, query, func(j *api.Job) error {
			if last != nil && order.Compare(order.Key(last), order.Key(j)) > 0 {
				return errors.New(last.ID + " comes before " + j.ID)
			}
			if seen[j.ID], last = true, j; len(seen)%(many/4) == 1 {
				most = max(most, heap()-before)
			}
			return nil
		})
		if err != nil || len(seen) != many {
			t.Errorf("order %q: %d jobs of %d: %v", name, len(seen), many, err)
		}
		if bound := int64(many) * 500; most > bound { // a job takes about a thousand
			t.Errorf("order %q: %d bytes are held while %d jobs are listed, want at most %d", name, most, many, bound)
		}
	}
	before, most, count := heap(), int64(0), 0
	timedOut, err := api.ActOnJobs(t.Context(), b.client, "wait", api.IDsRequest{Names: []string{"long"}, Timeout: api.Seconds(grid.Millisecond)}, func(*api.Job) error {
		if count++; count%(many/4) == 1 {
			most = max(most, heap()-before)
		}
		return nil
	})
	if err != nil || !timedOut || count != many {
		t.Errorf("waited for %d jobs of %d, timed out %v: %v", count, many, timedOut, err)
	}
	if bound := int64(many) * 500; most > bound {
		t.Errorf("%d bytes are held while %d jobs that were waited for are told, want at most %d", most, many, bound)
	}
	stop := errors.New("enough")
	if _, err := api.ListJobs(t.Context(), b.client, nil, func(*api.Job) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("who has seen enough: %v", err)
	}
	_, err = b.client.Jobs(t.Context(), url.Values{"sort": {"weight"}})
	b.fails("an order that nobody knows", err, api.CodeUsage, "weight is no order")
}

// TestAPIListsWhatStillMatches: a job that is not chosen any more when its part of a long
// listing is read is left out of it.
func TestAPIListsWhatStillMatches(t *testing.T) {
	b := newAPIBenchFor(t, t.TempDir(), Config{}, site.Limits{Jobs: 2 * batchJobs, PerUser: 2 * batchJobs, Finished: 10, Retention: grid.Hour})
	jobs := b.submit(false, api.JobSpec{Args: []string{"hold"}, Array: slices.Collect(func(yield func(int64) bool) {
		for i := int64(0); i < batchJobs+10 && yield(i); i++ {
		}
	}), Hold: true})
	l := lister{b.api}
	ctx := withAsker(t.Context(), asker{Caller: access.Caller{Role: access.Admin}})
	q := &jobQuery{states: []site.State{site.Waiting}}
	places, err := l.choose(ctx, q)
	if err != nil || len(places) != len(jobs) {
		t.Fatalf("%d of %d jobs chosen: %v", len(places), len(jobs), err)
	}
	gone := jobs[3].ID
	if _, err := b.client.Cancel(t.Context(), api.IDsRequest{IDs: []string{gone}}); err != nil {
		t.Fatal(err)
	}
	n := 0
	err = l.each(ctx, q, places, func(j *api.Job) error {
		if n++; j.ID == gone {
			t.Errorf("%s is listed, which is %s", gone, j.State)
		}
		return nil
	})
	if err != nil || n != len(jobs)-1 {
		t.Errorf("%d jobs listed, want %d: %v", n, len(jobs)-1, err)
	}
}
