package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridnode/node/api"
	"gridnode/node/web"
)

// TestPageOfMany: of ten thousand jobs and a thousand sites those in sight are drawn, and
// the rest is there when it is scrolled to.
func TestPageOfMany(t *testing.T) {
	tab := newTab(t)
	const jobs, sites = 10_000, 1_000
	mux := http.NewServeMux()
	answer := func(path string, value any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(value) })
	}
	answer("/v1/node", api.NodeInfo{Name: "alpha", Federation: "large", Caller: "ann", Role: "user"})
	reply := api.SitesReply{Certain: true}
	for i := range sites {
		reply.Sites = append(reply.Sites, api.SiteInfo{
			ID: fmt.Sprint("id", i), Name: fmt.Sprintf("site-%04d", i), Self: i == 0, Processors: 64, Free: int64(i % 65), Price: api.Amount(1000 * i),
			Place: []api.Seconds{api.Seconds(i % 40 * 1000), api.Seconds(i / 40 * 1000)},
		})
	}
	answer("/v1/sites", reply)
	answer("/v1/leases", api.LeasesReply{Leases: []api.Lease{}})
	answer("/v1/counters", api.CountersReply{Messages: []api.MessageCount{}})
	mux.HandleFunc("GET /v1/watch", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", api.MediaEvents)
		begun := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range jobs {
			fmt.Fprintf(w, "event: %s\ndata: ", api.EventJob)
			_ = json.NewEncoder(w).Encode(api.Job{
				ID: fmt.Sprintf("job%05d", i), Name: fmt.Sprintf("name-%05d", i), User: "ann", State: "running", Processors: 1,
				Submitted: api.InstantOf(begun.Add(time.Duration(i) * time.Second)),
			})
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "event: %s\nid: 1\ndata: {}\n\n", api.EventNow)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.Handle("/", web.Handler())
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })

	drawn := func(most int) {
		t.Helper()
		var rows int
		tab.run("count rows", chromedp.Evaluate(`document.querySelectorAll("[data-row]").length`, &rows))
		if rows == 0 || rows > most {
			t.Errorf("%d rows are drawn, want at most %d", rows, most)
		}
	}
	tab.run("open the page", chromedp.Navigate(server.URL+"/#key=none"))
	tab.await("main", "1,000 sites", "site-0000")
	drawn(60)
	tab.shoot("many-sites")
	tab.view("jobs")
	tab.await(".filter", "all 10000")
	drawn(60)
	tab.run("scroll to the end", chromedp.Evaluate(`document.querySelector(".table .body").scrollTop = 1e9`, nil))
	tab.await(".table", "name-00000") // the oldest comes last
	drawn(60)
	tab.run("look for one", chromedp.SendKeys(`[type=search]`, "name-04321"))
	tab.await(".table", "name-04321")
	drawn(1)
	var paint float64
	tab.run("first paint", chromedp.Evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint))
	t.Logf("first paint after %.0f ms", paint)
}
