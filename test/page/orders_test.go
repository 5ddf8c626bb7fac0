package page

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridnode/node/api"
	"gridnode/node/web"
)

// fickle is a daemon whose jobs change, get forgotten and are told twice, and whose streams
// break off anywhere.
type fickle struct {
	mu      sync.Mutex
	jobs    []api.Job // oldest first
	made    int
	refuses int                  // the next requests for a stream
	lines   map[chan string]bool // of open streams
	opened  int                  // streams so far
	resumed int                  // of them, those that went on where another was
	run     int                  // changes of other runs are not known
	changes []string             // IDs of the jobs that changed in this run, in order
}

func event(kind, id string, data any) string {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return fmt.Sprintf("event: %s\n%sdata: %s\n\n", kind, id, text)
}

func line(j api.Job) string { return event(api.EventJob, "", j) }

// now says that all was told.
func (f *fickle) now() string {
	return event(api.EventNow, fmt.Sprintf("%d-%d", f.run, len(f.changes)), struct{}{})
}

// begin returns what a stream begins with: what has changed since last, or all jobs.
func (f *fickle) begin(last string) string {
	var all strings.Builder
	var run, seen int
	n, _ := fmt.Sscanf(last, "%d-%d", &run, &seen)
	known := n == 2 && run == f.run
	switch {
	case known:
		f.resumed++
	case last != "":
		all.WriteString(event(api.EventGap, "", api.Gap{Reason: api.GapOther}))
	}
	for _, j := range f.jobs {
		if !known || slices.Contains(f.changes[seen:], j.ID) {
			all.WriteString(line(j))
		}
	}
	return all.String() + f.now()
}

// watch answers GET /v1/watch: all jobs, then what changes, until the stream breaks.
func (f *fickle) watch(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	if f.refuses > 0 {
		f.refuses--
		f.mu.Unlock()
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"code":"unavailable","message":"the daemon is stopping"}`)
		return
	}
	told := make(chan string, 1000)
	f.lines[told] = true
	f.opened++
	begin := f.begin(r.Header.Get("Last-Event-ID"))
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.lines, told)
		f.mu.Unlock()
	}()
	fmt.Fprint(w, begin)
	for {
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case text, open := <-told:
			if !open {
				return
			}
			fmt.Fprint(w, text)
		case <-r.Context().Done():
			return
		}
	}
}

// tell sends text to whoever watches.
func (f *fickle) tell(text string) {
	for told := range f.lines {
		told <- text
	}
}

// changed tells that a job has changed, as text, and that this was all.
func (f *fickle) changed(j *api.Job, text ...string) {
	f.changes = append(f.changes, j.ID)
	for _, part := range append(text, f.now()) {
		f.tell(part)
	}
}

// snap breaks the streams that are open, amid an event.
func (f *fickle) snap() {
	for told := range f.lines {
		told <- "event: job\ndata: {\"id\":\"job"
		close(told)
		delete(f.lines, told)
	}
}

// states are those that jobs take here, in any order.
var states = []string{"waiting", "queued", "running", "awarded", "cancelling", "done", "failed"}

// step does one thing of those that happen to a daemon, and says what.
func (f *fickle) step(rng *rand.Rand) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	some := func() *api.Job { return &f.jobs[rng.IntN(len(f.jobs))] }
	switch n := rng.IntN(100); {
	case n < 30 || len(f.jobs) == 0:
		f.made++
		begun := time.Date(2030, 1, 1, 0, 0, f.made, 0, time.UTC)
		j := api.Job{ID: fmt.Sprintf("job%05d", f.made), Name: fmt.Sprint("name-", f.made), User: "ann", State: states[rng.IntN(len(states))], Processors: 1, Submitted: api.InstantOf(begun)}
		f.jobs = append(f.jobs, j)
		f.changed(&j, line(j))
		return "submitted " + j.Name
	case n < 75:
		j := some()
		j.State = states[rng.IntN(len(states))]
		f.changed(j, line(*j))
		return j.Name + " is " + j.State
	case n < 83: // as after a restart of what follows the core
		j := some()
		f.changed(j, line(*j), line(*j))
		return j.Name + " is told twice"
	case n < 89: // in two pieces, between which it is drawn
		j := some()
		j.State = states[rng.IntN(len(states))]
		text := line(*j)
		at := rng.IntN(len(text))
		f.changed(j, text[:at], text[at:])
		return j.Name + " is told in pieces"
	case n < 95: // the connection breaks, and a job changes meanwhile
		f.snap()
		f.refuses = rng.IntN(2)
		j := some()
		j.State = states[rng.IntN(len(states))]
		f.changed(j)
		return "the stream breaks, and " + j.Name + " is " + j.State
	default: // the daemon ends, has forgotten some, and may not be there at once
		f.snap()
		f.refuses = rng.IntN(2)
		f.run, f.changes = f.run+1, nil
		all := rng.IntN(3) == 0
		f.jobs = slices.DeleteFunc(f.jobs, func(api.Job) bool { return all || rng.IntN(3) == 0 })
		return fmt.Sprintf("the daemon is another one; %d jobs are left", len(f.jobs))
	}
}

// list returns what the page has to show: names and states, newest first.
func (f *fickle) list() (rows []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range slices.Backward(f.jobs) {
		rows = append(rows, j.Name+" "+j.State)
	}
	return rows
}

// TestPageInAnyOrder: whatever happens in whatever order while the page is open, and whichever
// view somebody looks at meanwhile, the page shows soon what the daemon has: two hundred times.
func TestPageInAnyOrder(t *testing.T) {
	tab := newTab(t)
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	daemon := &fickle{lines: make(map[chan string]bool)}
	mux := http.NewServeMux()
	answer := func(path string, value any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(value) })
	}
	answer("/v1/node", api.NodeInfo{Name: "alpha", Federation: "fickle", Caller: "ann", Role: "user"})
	answer("/v1/sites", api.SitesReply{Certain: true, Sites: []api.SiteInfo{{ID: "a", Name: "alpha", Self: true, Processors: 4, Free: 4}}})
	answer("/v1/leases", api.LeasesReply{Leases: []api.Lease{}})
	answer("/v1/counters", api.CountersReply{Messages: []api.MessageCount{}})
	mux.HandleFunc("GET /v1/jobs/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"notFound","message":"there is no such job"}`)
	})
	mux.HandleFunc("GET /v1/watch", daemon.watch)
	mux.Handle("/", web.Handler())
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	tab.run("open the page", chromedp.Navigate(server.URL+"/#key=none"))
	tab.await("main", "fickle")

	for round := range rounds {
		var done []string
		for range 1 + rng.IntN(5) {
			done = append(done, daemon.step(rng))
			if rng.IntN(4) == 0 {
				view := []string{"", "jobs", "submit", "prices", "reports", "jobs/job00001"}[rng.IntN(6)]
				tab.view(view)
				done = append(done, "looks at /"+view)
			}
		}
		tab.view("jobs")
		var shown []string
		for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
			tab.run("read the list", chromedp.Evaluate(`[...document.querySelectorAll('.table [data-row]')].map((r) => r.children[1].innerText + " " + r.children[2].innerText)`, &shown))
			want := daemon.list()
			want = want[:min(len(want), len(shown))] // of a long list those in sight are drawn
			var all string
			tab.run("count", chromedp.Evaluate(`document.querySelector(".filter button")?.innerText ?? ""`, &all))
			if slices.Equal(shown, want) && all == fmt.Sprintf("all %d", len(daemon.list())) && (len(shown) > 0 || len(daemon.list()) == 0) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("seed %d, round %d: after %q the page shows %s: %q, want %q", seed, round, done, all, shown, daemon.list())
			}
		}
	}
	if daemon.opened < rounds/20 {
		t.Errorf("only %d streams were opened", daemon.opened)
	}
	if daemon.resumed == 0 {
		t.Error("no stream went on where another was")
	}
	t.Logf("seed %d: %d streams, of which %d went on where another was", seed, daemon.opened, daemon.resumed)
}
