package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/api/apitest"
)

// TestStreamGoesOn: a stream that breaks goes on where it was, and says so where it cannot.
func TestStreamGoesOn(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	r := apitest.NewRelay(t, "unix", filepath.Join(b.home, "api.sock"))
	jobs := b.submit(false, api.JobSpec{Args: []string{"x"}, Hold: true}, api.JobSpec{Args: []string{"x"}, Hold: true}, api.JobSpec{Args: []string{"x"}, Hold: true})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var told []string
	var gaps []string
	stop := errors.New("enough")
	stream := api.Watch{Patience: time.Minute, Gap: func(why string) { gaps = append(gaps, why) }}
	follow := func(see func(api.Job) error) {
		t.Helper()
		told, gaps = nil, nil
		err := stream.Follow(ctx, api.NewSharedClient(r.Address), func(j api.Job) error { told = append(told, j.ID); return see(j) })
		if !errors.Is(err, stop) {
			t.Fatalf("the stream ends with %v after %v", err, told)
		}
	}
	cancelJob := func(i int) {
		t.Helper()
		if _, err := b.client.Cancel(ctx, api.IDsRequest{IDs: []string{jobs[i].ID}}); err != nil {
			t.Fatal(err)
		}
	}
	// The first ends behind the list, and is cut there; the second is told of it afterwards.
	follow(func(j api.Job) error {
		switch {
		case len(told) == 3:
			cancelJob(0)
		case j.ID == jobs[0].ID && j.Over():
			r.Cut()
			cancelJob(1)
		case j.ID == jobs[1].ID && j.Over():
			return stop
		}
		return nil
	})
	if made := r.Cut(); made < 2 || len(gaps) > 0 || slices.Contains(told[3:], jobs[2].ID) {
		t.Errorf("over %d connections it was told of %v, gaps %q; want %v and %v behind the list of all", made, told, gaps, jobs[0].ID, jobs[1].ID)
	}
	if stream.Place == "" {
		t.Fatal("no place to go on from")
	}

	// Who comes back after all this ended hears of what came meanwhile.
	cancelJob(2)
	follow(func(j api.Job) error {
		if j.ID == jobs[2].ID {
			return stop
		}
		return nil
	})
	if slices.Contains(told, jobs[0].ID) || len(gaps) > 0 {
		t.Errorf("told %v, gaps %q", told, gaps)
	}

	// A place of another daemon is none: all jobs follow.
	run, _, _ := strings.Cut(stream.Place, "-")
	stream.Place = "elsewhere-1"
	follow(func(api.Job) error {
		if len(told) == 3 {
			return stop
		}
		return nil
	})
	if !slices.Equal(gaps, []string{api.GapOther}) {
		t.Errorf("gaps %q", gaps)
	}
	b.api.changes.Missed()
	stream.Place = run + "-1"
	follow(func(api.Job) error {
		if len(told) == 3 {
			return stop
		}
		return nil
	})
	if !slices.Equal(gaps, []string{api.GapForgotten}) {
		t.Errorf("gaps %q", gaps)
	}
}

// TestStreamGivesUp: who has never been there is not waited for, who was, for a while only.
func TestStreamGivesUp(t *testing.T) {
	away := api.Watch{Patience: time.Minute}
	if err := away.Follow(t.Context(), api.NewClient(t.TempDir()), func(api.Job) error { return nil }); !errors.Is(err, api.ErrNoDaemon) {
		t.Errorf("without a daemon: %v", err)
	}
	gone := api.Watch{Patience: 300 * time.Millisecond, Place: "x-1"}
	if err := gone.Follow(t.Context(), api.NewClient(t.TempDir()), func(api.Job) error { return nil }); !errors.Is(err, api.ErrNoDaemon) {
		t.Errorf("after a while: %v", err)
	}
	b := newAPIBench(t, t.TempDir())
	wrong := api.Watch{Patience: time.Minute, Place: "x-1", Filter: url.Values{"state": {"nonsense"}}}
	err := wrong.Follow(t.Context(), b.client, func(api.Job) error { return nil })
	b.fails("a filter that is none", err, api.CodeUsage, "state")
}

// read returns the lines of an answer up to one that begins so.
func readTo(t *testing.T, from *bufio.Reader, prefix string) (lines []string) {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", lines, err)
		}
		lines = append(lines, strings.TrimSpace(line))
		if strings.HasPrefix(line, prefix) {
			return lines
		}
	}
}

// TestStreamOfEvents: what browsers read.
func TestStreamOfEvents(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	job := b.submit(false, api.JobSpec{Args: []string{"x"}, Hold: true})[0]
	ask := func(accept string) (*http.Response, *bufio.Reader) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://gridnode/v1/watch?id="+job.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		response, err := b.client.HTTP().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response, bufio.NewReader(response.Body)
	}
	response, events := ask("text/html, text/event-stream;q=0.9")
	lines := readTo(t, events, "data: {}")
	place := regexp.MustCompile(`^id: \w+-[01]$`) // what is told of the submission may come as a change, too
	if kind := response.Header.Get("Content-Type"); kind != api.MediaEvents || lines[0] != "event: job" || !strings.HasPrefix(lines[1], `data: {"id":"`+job.ID) ||
		lines[2] != "" || lines[3] != "event: now" || !place.MatchString(lines[4]) {
		t.Errorf("%s: %q", kind, lines)
	}
	response, values := ask("*/*")
	lines = readTo(t, values, "{")
	if kind := response.Header.Get("Content-Type"); kind != api.MediaLines || len(lines) != 1 {
		t.Errorf("%s: %q", kind, lines)
	}
}

// TestStreamBeats: a stream on which nothing happens says that it is there.
func TestStreamBeats(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/watch", func(w http.ResponseWriter, r *http.Request) { _ = watching{b.api, time.Millisecond}.watch(w, r) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/v1/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", api.MediaEvents)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	readTo(t, lines, ": ")
	readTo(t, lines, ": ")
}

// TestStreamEndsWithToken: who may ask no longer hears nothing more, also of what he asked for
// before.
func TestStreamEndsWithToken(t *testing.T) {
	home := t.TempDir()
	pages, err := access.OpenTokens(filepath.Join(home, "pages.json"))
	if err != nil {
		t.Fatal(err)
	}
	b := newAPIBenchOf(t, home, Config{Pages: pages})
	reply, err := b.client.OpenPage(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	base, key, _ := strings.Cut(reply.URL, "/#key=")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v: %+v", err, response)
	}
	defer response.Body.Close()
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, response.Body); ended <- err }()
	select {
	case err := <-ended:
		t.Fatalf("it ended at once: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := pages.Revoke(pages.List()[0].ID); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it goes on when its key was revoked")
	}
}
