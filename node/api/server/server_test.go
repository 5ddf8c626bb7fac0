package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/api"
	"gridnode/node/p2p"
	"gridnode/node/quota"
	"gridnode/node/site"
)

// player is an executor that plays jobs: "exit N" ends at once with that code,
// anything else runs until it is killed.
type player struct {
	mu      sync.Mutex
	ended   func(*grid.TaskEnded)
	running map[grid.TaskID]bool
}

func (p *player) Recover() ([]site.Adopted, []grid.TaskEnded, error) { return nil, nil, nil }
func (p *player) Acknowledge([]grid.TaskID)                          {}
func (p *player) Close() error                                       { return nil }

func (p *player) Start(task grid.Task) {
	args := task.Job.Command.Args
	if args[0] == "exit" {
		code, _ := strconv.Atoi(args[1])
		p.end(task.ID, int32(code), "")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[task.ID] = true
}

func (p *player) Renew(grid.TaskID, grid.Time) {} // no task has a lease

func (p *player) Kill(task grid.Task) { p.end(task.ID, 137, task.Cause) }

func (p *player) end(id grid.TaskID, code int32, cause string) {
	p.mu.Lock()
	delete(p.running, id)
	p.mu.Unlock()
	now := grid.Time(time.Now().UnixMicro())
	p.ended(&grid.TaskEnded{ID: id, Result: grid.Result{Start: now, End: now, ExitCode: code, Reason: cause}})
}

// apiBench is a node with a local API, and a client of it.
type apiBench struct {
	*testing.T
	host   *node.Host
	api    *Server
	client *api.Client
	home   string
	shared string // directory of the socket for other accounts
	stops  int
}

func newAPIBench(t *testing.T, home string) *apiBench {
	t.Helper()
	return newAPIBenchOf(t, home, Config{})
}

// newAPIBenchOf is newAPIBench with what the server is told of people.
func newAPIBenchOf(t *testing.T, home string, cfg Config) *apiBench {
	t.Helper()
	return newAPIBenchFor(t, home, cfg, site.Limits{Jobs: 100, PerUser: 60, Finished: 1000, Retention: grid.Hour})
}

// newAPIBenchFor is newAPIBenchOf with bounds of the table of jobs.
func newAPIBenchFor(t *testing.T, home string, cfg Config, limits site.Limits) *apiBench {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	play := &player{running: make(map[grid.TaskID]bool)}
	host, err := node.Start(t.Context(), node.HostConfig{
		Key: key, Federation: "test", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Memory: new(p2p.Memory), Version: "test",
		Profile: p2p.ProfileFleet,
		Site: site.Config{
			Users: &quota.Config{},
			Name:  "here", Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
			Price: 2 * grid.Credit, Limits: limits,
		},
		Executor: func(ended func(*grid.TaskEnded)) (node.Executor, error) { play.ended = ended; return play, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &apiBench{T: t, host: host, client: api.NewClient(home), home: home}
	listener, err := api.ListenAPI(home)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Rating, cfg.Defaults = grid.Rating{Speed: 1000, Bandwidth: 1000}, Defaults{Estimate: 10 * grid.Minute}
	cfg.Federation, cfg.Version, cfg.Stop = "test", "test", func() { b.stops++ }
	b.api = New(host, cfg)
	if b.shared, err = os.MkdirTemp("", "gridnode-shared"); err != nil { // t.TempDir is closed to others
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(b.shared) })
	if err := os.Chmod(b.shared, 0o755); err != nil {
		t.Fatal(err)
	}
	shared, err := api.ListenShared(filepath.Join(b.shared, "api.sock"), 0o666, -1)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 2)
	for _, l := range []net.Listener{listener, shared} {
		go func() { served <- b.api.Serve(l) }()
	}
	t.Cleanup(func() {
		b.client.HTTP().CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(b.api.Close(ctx), <-served, <-served, host.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func (b *apiBench) submit(wait bool, specs ...api.JobSpec) []api.Job {
	b.Helper()
	if !wait {
		reply, err := b.client.Submit(b.Context(), specs)
		if err != nil {
			b.Fatalf("submit: %v", err)
		}
		return reply.Jobs
	}
	var stored []string
	reply, err := b.client.SubmitAndWait(b.Context(), specs, func(ids []string) { stored = ids })
	if err != nil {
		b.Fatalf("submit and wait: %v", err)
	}
	for i := range reply.Jobs {
		if stored[i] != reply.Jobs[i].ID {
			b.Errorf("job %d is stored as %s and ends as %s", i, stored[i], reply.Jobs[i].ID)
		}
	}
	return reply.Jobs
}

// fails checks that err is an API error of code that says text.
func (b *apiBench) fails(what string, err error, code, text string) {
	b.Helper()
	var failure *api.Error
	if !errors.As(err, &failure) || failure.Code != code || !strings.Contains(failure.Message, text) {
		b.Errorf("%s: %v (%+v), want code %s with %q", what, err, failure, code, text)
	}
}

func exits(code int) api.JobSpec { return api.JobSpec{Args: []string{"exit", strconv.Itoa(code)}} }

var holds = api.JobSpec{Args: []string{"/bin/hold"}}

func TestAPISubmitAndWait(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	jobs := b.submit(true, exits(0), exits(7))
	for i, want := range []struct {
		state string
		code  int32
	}{{"done", 0}, {"failed", 7}} {
		j := jobs[i]
		if j.State != want.state || j.ExitCode == nil || *j.ExitCode != want.code || !j.Over() || j.SiteName != "here" || j.Name != "exit" {
			t.Errorf("job %d: %+v, want it %s with exit code %d", i, j, want.state, want.code)
		}
		if j.User == "" {
			t.Error("job without a user")
		}
	}
	held := b.submit(false, holds)[0]
	if held.State != "queued" && held.State != "running" || held.ExitCode != nil || held.Price != api.Amount(2*grid.Credit) {
		t.Errorf("a job that is not over: %+v", held)
	}
	reply, err := b.client.Wait(t.Context(), api.IDsRequest{IDs: []string{held.ID}, Timeout: api.Seconds(grid.Millisecond)})
	if err != nil || !reply.TimedOut || len(reply.Jobs) != 1 {
		t.Errorf("wait with a time-out: %+v, %v, want it timed out", reply, err)
	}
	waited := make(chan *api.JobsReply, 1)
	go func() {
		reply, err := b.client.Wait(t.Context(), api.IDsRequest{IDs: []string{held.ID[:10]}})
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		waited <- reply
	}()
	cancelled, err := b.client.Cancel(t.Context(), api.IDsRequest{IDs: []string{held.ID}, Cause: "enough"})
	if err != nil || len(cancelled.Jobs) != 1 {
		t.Fatalf("cancel: %+v, %v", cancelled, err)
	}
	if reply := <-waited; reply != nil && (reply.TimedOut || reply.Jobs[0].State != "cancelled" || !strings.HasSuffix(reply.Jobs[0].Reason, ": enough")) {
		t.Errorf("after the cancellation: %+v, want it cancelled with the cause", reply.Jobs[0])
	}
	again, err := b.client.Cancel(t.Context(), api.IDsRequest{IDs: []string{jobs[0].ID}})
	if err != nil || again.Jobs[0].State != "done" {
		t.Errorf("cancelling a job that is over: %+v, %v, want it done still", again, err)
	}
}

func TestAPISubmitIsIdempotent(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	spec := exits(0)
	spec.ID = "0123456789abcdefghjkmnpqr0"
	first := b.submit(true, spec)[0]
	second := b.submit(true, spec)[0]
	if first.ID != spec.ID || second.ID != spec.ID || first.Known || !second.Known {
		t.Errorf("twice the same: %+v and %+v", first, second)
	}
	spec.Args = []string{"exit", "1"}
	_, err := b.client.Submit(t.Context(), []api.JobSpec{spec})
	b.fails("another job under the same ID", err, api.CodeRefused, "belongs to another job")
	array := api.JobSpec{ID: "10000000000000000000000000", Args: []string{"exit", "0"}, Array: []int64{3, 1, 2}}
	one, two := b.submit(true, array), b.submit(true, array)
	for i := range one {
		if one[i].ID != two[i].ID || !two[i].Known || one[i].Name != fmt.Sprintf("exit[%d]", array.Array[i]) {
			t.Errorf("array: %+v and then %+v", one[i], two[i])
		}
	}
}

func TestAPIListsAndFilters(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	b.submit(true, exits(0), exits(1), api.JobSpec{Name: "sim", Args: []string{"exit", "0"}, Array: []int64{0, 1}})
	running := b.submit(false, api.JobSpec{Name: "simulation", Args: []string{"hold"}})[0]
	for _, tt := range []struct {
		query string
		want  int
	}{
		{"", 5}, {"state=done", 3}, {"state=done&state=failed", 4}, {"name=sim", 2}, {"name=simulation", 1}, {"site=here", 5},
		{"user=nobody-of-this-name", 0}, {"id=" + running.ID, 1}, {"all=true", 5}, {"user=" + url.QueryEscape(running.User), 5},
	} {
		values, err := url.ParseQuery(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := b.client.Jobs(t.Context(), values)
		if err != nil || len(reply.Jobs) != tt.want {
			t.Errorf("%q: %d jobs, %v, want %d", tt.query, len(reply.Jobs), err, tt.want)
		}
	}
	reply, err := b.client.Wait(t.Context(), api.IDsRequest{Names: []string{"simulation"}, Timeout: api.Seconds(grid.Millisecond)})
	if err != nil || len(reply.Jobs) != 1 || !reply.TimedOut {
		t.Errorf("wait by name: %+v, %v", reply, err)
	}
	_, err = b.client.Cancel(t.Context(), api.IDsRequest{Names: []string{"sim"}})
	b.fails("cancelling an array that is over", err, api.CodeNotFound, `no job called "sim"`)
}

func TestAPIWatchTellsEveryEnd(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	over := make(map[string]string)
	started := make(chan struct{})
	result := make(chan error, 1)
	errEnough := errors.New("seen enough")
	go func() {
		first := true
		result <- b.client.Watch(ctx, url.Values{}, func(j api.Job) error {
			if first {
				first = false
				close(started)
			}
			if j.Over() {
				over[j.ID] = j.State
			}
			if len(over) == 31 {
				return errEnough
			}
			return nil
		})
	}()
	// The watch has begun for certain once it has told of one job.
	for begun := false; !begun; {
		b.submit(true, exits(0))
		select {
		case <-started:
			begun = true
		default:
		}
	}
	specs := exits(0)
	specs.Array = make([]int64, 31)
	for i := range specs.Array {
		specs.Array[i] = int64(i)
	}
	b.submit(true, specs)
	if err := <-result; !errors.Is(err, errEnough) {
		t.Errorf("watch ended with %v after %d ends, want all", err, len(over))
	}
}

func TestAPIRefuses(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	neg, huge := api.Amount(-1), api.Amount(grid.CreditsMax+1)
	past := api.InstantOf(time.Now().Add(-time.Minute))
	for _, tt := range []struct {
		name string
		spec api.JobSpec
		code string
		text string
	}{
		{"no program", api.JobSpec{}, api.CodeUsage, "args"},
		{"ID", api.JobSpec{ID: "nonsense", Args: []string{"x"}}, api.CodeUsage, "id"},
		{"zero ID", api.JobSpec{ID: strings.Repeat("0", 26), Args: []string{"x"}}, api.CodeUsage, "id"},
		{"tasks", api.JobSpec{Args: []string{"x"}, Tasks: -1}, api.CodeUsage, "tasks"},
		{"overflow", api.JobSpec{Args: []string{"x"}, Tasks: 1 << 24, CPUsPerTask: 1 << 24}, api.CodeUsage, "processors"},
		{"time", api.JobSpec{Args: []string{"x"}, Time: -1}, api.CodeUsage, "time"},
		{"deadlines", api.JobSpec{Args: []string{"x"}, Deadline: past, DeadlineIn: 1}, api.CodeUsage, "exclude"},
		{"past deadline", api.JobSpec{Args: []string{"x"}, Deadline: past}, api.CodeUsage, "deadline"},
		{"negative deadline", api.JobSpec{Args: []string{"x"}, DeadlineIn: -1}, api.CodeUsage, "deadlineIn"},
		{"budget", api.JobSpec{Args: []string{"x"}, Budget: &neg}, api.CodeUsage, "budget"},
		{"huge budget", api.JobSpec{Args: []string{"x"}, Budget: &huge}, api.CodeUsage, "budget"},
		{"policy", api.JobSpec{Args: []string{"x"}, Policy: "best"}, api.CodeUsage, "policy"},
		{"site", api.JobSpec{Args: []string{"x"}, Site: "nowhere"}, api.CodeNotFound, `no site is called "nowhere"`},
		{"env", api.JobSpec{Args: []string{"x"}, Env: []string{"=a"}}, api.CodeUsage, "env"},
		{"dir", api.JobSpec{Args: []string{"x"}, Dir: "there"}, api.CodeUsage, "dir"},
		{"NUL", api.JobSpec{Args: []string{"x\x00"}}, api.CodeUsage, "NUL"},
		{"long name", api.JobSpec{Args: []string{"x"}, Name: strings.Repeat("n", 129)}, api.CodeUsage, "name"},
		{"long command", api.JobSpec{Args: []string{"x", strings.Repeat("x", 49<<10)}}, api.CodeUsage, "command"},
		{"array twice", api.JobSpec{Args: []string{"x"}, Array: []int64{1, 1}}, api.CodeUsage, "array"},
		{"array too long", api.JobSpec{Args: []string{"x"}, Array: make([]int64, jobsMax+1)}, api.CodeUsage, "more than"},
		{"over the user's limit", api.JobSpec{Args: []string{"hold"}, Array: upTo(70)}, api.CodeRefused, "60 of 70 jobs were taken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.client.Submit(t.Context(), []api.JobSpec{tt.spec})
			b.fails(tt.name, err, tt.code, tt.text)
		})
	}
	_, err := b.client.Jobs(t.Context(), url.Values{"site": {"nowhere"}})
	b.fails("jobs at a site that nobody knows", err, api.CodeNotFound, `no site is called "nowhere"`)
	if reply, err := b.client.Jobs(t.Context(), url.Values{"site": {string(b.host.ID())}, "name": {"none"}}); err != nil || len(reply.Jobs) != 0 {
		t.Errorf("jobs here that do not exist: %+v, %v", reply, err)
	}
	for _, id := range []string{"zzzzzz", "!", "10000000000000000000000000"} {
		_, err := b.client.Why(t.Context(), id)
		b.fails("why "+id, err, api.CodeNotFound, id)
	}
	_, err = b.client.Wait(t.Context(), api.IDsRequest{})
	b.fails("wait for nothing", err, api.CodeUsage, "no jobs")
}

func upTo(n int64) []int64 {
	var list []int64
	for i := range n {
		list = append(list, i)
	}
	return list
}

func TestAPIRefusesBadRequests(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	for _, tt := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"POST", "/v1/jobs", `{"jobs":[{"args":["x"],"prio":1}]}`, 400, "prio"},
		{"POST", "/v1/jobs", `{"jobs":[]}`, 400, "no jobs"},
		{"POST", "/v1/jobs", `{"jobs":[{"args":["x"],"array":[]}]}`, 400, "no indices"},
		{"POST", "/v1/jobs", `{"jobs":[{"args":["x"]}]} {}`, 400, "follows"},
		{"POST", "/v1/jobs", `{"jobs`, 400, "body"},
		{"POST", "/v1/jobs", `{"jobs":[{"args":["x"],"time":"1h"}]}`, 400, "span"},
		{"POST", "/v1/jobs", `{"jobs":[{"args":["x"],"deadline":"noon"}]}`, 400, "instant"},
		{"POST", "/v1/jobs", `{"jobs":[{"args":["` + strings.Repeat("x", bodyMax) + `"]}]}`, 400, "longer than"},
		{"POST", "/v1/jobs?wait=yes", `{"jobs":[{"args":["x"]}]}`, 400, "wait"},
		{"POST", "/v1/preview", `{"jobs":[{"args":["x"]},{"args":["x"]}]}`, 400, "want one"},
		{"GET", "/v1/jobs?stat=done", "", 400, `"stat"`},
		{"GET", "/v1/jobs?state=dead", "", 400, "dead"},
		{"GET", "/v1/jobs?all=1", "", 400, "all"},
		{"GET", "/v1/quotes?minSpeed=-1", "", 400, "minSpeed"},
		{"GET", "/v1/quotes?maxPrice=x", "", 400, "maxPrice"},
		{"GET", "/v1/quotes?sort=name", "", 400, "sort"},
		{"GET", "/v1/quotes?limit=0", "", 400, "limit"},
		{"GET", "/v2/jobs", "", 404, "/v2/jobs"},
		{"DELETE", "/v1/jobs", "", 404, "DELETE"},
		{"POST", "/v1/wait", `{"ids":["000"],"timeout":-1}`, 404, "000"},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), tt.method, "http://gridnode"+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			response, err := b.client.HTTP().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			var failure api.Error
			if err != nil || json.Unmarshal(text, &failure) != nil || response.StatusCode != tt.status || !strings.Contains(failure.Message, tt.text) {
				t.Errorf("%d %s, want %d with %q", response.StatusCode, text, tt.status, tt.text)
			}
		})
	}
}

func TestAPIPreviewAndWhy(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	budget := api.Amount(grid.Credit / 1000)
	spec := api.JobSpec{Args: []string{"exit", "0"}, Time: api.Seconds(grid.Hour), Budget: &budget}
	reply, err := b.client.Preview(t.Context(), spec)
	if err != nil || reply.Feasible || len(reply.Verdicts) != 1 || reply.Verdicts[0].Outcome != "too-dear" || reply.Cheapest == nil || reply.Cheapest.Cost != api.Amount(2*grid.Credit) {
		t.Fatalf("preview: %+v, %v, want one site that is too dear", reply, err)
	}
	refused := b.submit(false, spec)[0]
	if refused.State != "refused" || refused.ExitCode != nil {
		t.Errorf("%+v, want it refused", refused)
	}
	why, err := b.client.Why(t.Context(), refused.ID[:12])
	if err != nil || why.Feasible || len(why.Verdicts) != 1 || why.Fastest == nil || why.Job.ID != refused.ID {
		t.Errorf("why: %+v, %v", why, err)
	}
	reply, err = b.client.Preview(t.Context(), exits(0))
	if err != nil || !reply.Feasible {
		t.Errorf("preview without bounds: %+v, %v, want it feasible", reply, err)
	}
	if jobs, err := b.client.Jobs(t.Context(), url.Values{"all": {"true"}}); err != nil || len(jobs.Jobs) != 1 {
		t.Errorf("%d jobs, %v, want the refused one only: a preview submits nothing", len(jobs.Jobs), err)
	}
}

func TestAPIAboutTheNode(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	info, err := b.client.Node(t.Context())
	if err != nil || info.Name != "here" || info.ID != string(b.host.ID()) || len(info.Addresses) == 0 || info.Federation != "test" {
		t.Errorf("node: %+v, %v", info, err)
	}
	sites, err := b.client.Sites(t.Context())
	if err != nil || len(sites.Sites) != 1 || !sites.Sites[0].Self || sites.Sites[0].Processors != 4 {
		t.Errorf("sites: %+v, %v", sites, err)
	}
	quotes, err := b.client.Quotes(t.Context(), url.Values{"maxPrice": {"1.999999"}})
	if err != nil || len(quotes.Sites) != 0 {
		t.Errorf("quotes below the price: %+v, %v, want none", quotes, err)
	}
	peers, err := b.client.Peers(t.Context())
	if err != nil || peers.Peers == nil || len(peers.Peers) != 0 {
		t.Errorf("peers: %+v, %v, want an empty list", peers, err)
	}
	if _, err := b.client.Counters(t.Context()); err != nil {
		t.Errorf("counters: %v", err)
	}
	if err := b.client.Stop(t.Context()); err != nil || b.stops != 1 {
		t.Errorf("stop: %v, called %d times, want once", err, b.stops)
	}
}

// A path too long for a socket address is reached through the open directory.
func TestAPIInALongPath(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("d", 60), strings.Repeat("e", 60))
	if _, err := api.NewClient(home).Node(t.Context()); !errors.Is(err, api.ErrNoDaemon) {
		t.Errorf("without a home: %v, want ErrNoDaemon", err)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := api.NewClient(home).Node(t.Context()); !errors.Is(err, api.ErrNoDaemon) {
		t.Errorf("without a daemon: %v, want ErrNoDaemon", err)
	}
	b := newAPIBench(t, home)
	if _, err := b.client.Node(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLastLines(t *testing.T) {
	for _, tt := range []struct {
		text  string
		lines int64
		want  string
	}{
		{"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\nb\n", 9, "a\nb\n"}, {"a\n", 0, ""}, {"", 3, ""}, {"\n\n", 1, "\n"}, {"abc", 1, "abc"},
	} {
		last := lastLines{lines: tt.lines}
		for i := range len(tt.text) {
			_, _ = last.Write([]byte{tt.text[i]})
		}
		if got := string(last.text()); got != tt.want || last.total != int64(len(tt.text)) {
			t.Errorf("the last %d lines of %q are %q, want %q", tt.lines, tt.text, got, tt.want)
		}
	}
	var b bytes.Buffer
	s := skipper{&b, 3}
	for _, piece := range []string{"ab", "cd", "ef"} {
		if n, err := s.Write([]byte(piece)); n != 2 || err != nil {
			t.Fatal(n, err)
		}
	}
	if b.String() != "def" {
		t.Errorf("without the first 3 bytes: %q, want def", b.String())
	}
}

func TestJobPrefix(t *testing.T) {
	id := grid.JobID{Hi: 0x0123456789abcdef, Lo: 0xfedcba9876543210}
	text := id.String()
	for n := 1; n <= 25; n++ {
		prefix, ok := parseJobPrefix(strings.ToUpper(text[:n]))
		if !ok || !prefix.match(id) {
			t.Fatalf("%q does not match %s", text[:n], text)
		}
		other := []byte(text)
		other[n-1] = jobIDAlphabet[(strings.IndexByte(jobIDAlphabet, other[n-1])+1)%32]
		changed, err := grid.ParseJobID(string(other))
		if err == nil && prefix.match(changed) {
			t.Errorf("%q matches %s", text[:n], changed)
		}
	}
	for _, bad := range []string{"", "i", "a!", strings.Repeat("0", 26)} {
		if _, ok := parseJobPrefix(bad); ok {
			t.Errorf("%q was taken for a prefix", bad)
		}
	}
}

func TestMicros(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int64
		out  string
	}{
		{"0", 0, "0"}, {"1.5", 1_500_000, "1.5"}, {"-0.25", -250_000, "-0.25"}, {"1e-6", 1, "0.000001"}, {"12.000001", 12_000_001, "12.000001"}, {"1e3", 1e9, "1000"},
	} {
		var s api.Seconds
		if err := json.Unmarshal([]byte(tt.in), &s); err != nil || int64(s) != tt.want {
			t.Errorf("%s became %d, %v, want %d", tt.in, s, err, tt.want)
		}
		if out, err := json.Marshal(s); err != nil || !bytes.Equal(out, []byte(tt.out)) {
			t.Errorf("%s came out as %s, %v, want %s", tt.in, out, err, tt.out)
		}
	}
	for _, bad := range []string{`"1"`, "1e300", "null1", "[]"} {
		var a api.Amount
		if json.Unmarshal([]byte(bad), &a) == nil {
			t.Errorf("%s was taken for an amount", bad)
		}
	}
}

// A job is late if it ended by itself after its deadline, however it ended.
func TestJobLate(t *testing.T) {
	for _, tt := range []struct {
		name          string
		state         site.State
		deadline, end grid.Time
		want          api.Seconds
	}{
		{"in time", site.Done, 5 * grid.Second, 5 * grid.Second, 0},
		{"late", site.Done, 5 * grid.Second, 7 * grid.Second, api.Seconds(2 * grid.Second)},
		{"failed late", site.Failed, 5 * grid.Second, 6 * grid.Second, api.Seconds(grid.Second)},
		{"no deadline", site.Done, grid.Never, 7 * grid.Second, 0},
		{"cancelled", site.CancelledByUser, 5 * grid.Second, 7 * grid.Second, 0},
		{"not over", site.Running, 5 * grid.Second, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := jobOf(&site.View{Job: &grid.Job{Deadline: tt.deadline}, State: tt.state, End: tt.end}, func(grid.SiteID) string { return "" })
			if j.Late != tt.want {
				t.Errorf("late by %v, want %v", grid.Time(j.Late), grid.Time(tt.want))
			}
		})
	}
}

// Every state, terminal or not, is known to clients by its name.
func TestJobOver(t *testing.T) {
	for state := site.Placing; state <= site.Refused; state++ {
		j := api.Job{State: state.String()}
		if j.Over() != state.Terminal() {
			t.Errorf("%s: over %v, want %v", state, j.Over(), state.Terminal())
		}
	}
}
