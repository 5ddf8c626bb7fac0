package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

var headBatches = flag.Int("head-batches", 0, "batches of 40 jobs by which TestHeadPolicies compares the policies of a head, from 3 on with a judgement; 0: one of short jobs, to see that all are done")

// headBatchesJudged is how many batches are enough to judge by: one may go either way.
const headBatchesJudged = 3

// headPolicies are compared, the ones that look at deadlines last.
var headPolicies = []string{"dll", "wrand", "muscle", "urgent"}

// headMembers are the processors of the members. A job of 5 fills the second; on the
// first it leaves room for nothing but itself, where two of 4 have room.
var headMembers = []int{8, 5, 4}

// spec is a job as the local API takes it.
type spec struct {
	Args       []string `json:"args"`
	Tasks      int      `json:"tasks"`
	Time       float64  `json:"time"`
	DeadlineIn float64  `json:"deadlineIn"`
}

// drawBatch draws 40 jobs of 4 or 5 processors (three to one) that sleep for 1 to 4
// units. Two units beyond its run time a job's deadline may lie, and up to 1.3 times as
// much as the members would need for all jobs if no processor were ever idle. grace is
// by how much the bound on the run time exceeds it.
func drawBatch(seed uint64, unit, grace time.Duration) []spec {
	rng := rand.New(rand.NewPCG(seed, 40))
	jobs := make([]spec, 40)
	work, processors := 0.0, 0
	for i := range jobs {
		run := unit.Seconds() * (1 + 3*rng.Float64())
		jobs[i] = spec{Args: []string{"sleep", fmt.Sprintf("%.3f", run)}, Tasks: 4, Time: run + grace.Seconds(), DeadlineIn: run}
		if rng.IntN(4) == 0 {
			jobs[i].Tasks = 5
		}
		work += run * float64(jobs[i].Tasks)
	}
	for _, n := range headMembers {
		processors += n
	}
	for i := range jobs {
		jobs[i].DeadlineIn += 2*unit.Seconds() + rng.Float64()*1.3*work/float64(processors)
	}
	return jobs
}

// submitAll submits jobs in one request and returns their IDs.
func (s *site) submitAll(jobs []spec) (ids []string) {
	s.Helper()
	body, err := json.Marshal(map[string]any{"jobs": jobs})
	if err != nil {
		s.Fatal(err)
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.home, "api.sock"))
		},
	}}
	answer, err := client.Post("http://gridnode/v1/jobs?wait=stored", "application/json", bytes.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	var reply struct {
		Jobs []job `json:"jobs"`
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || json.Unmarshal(text, &reply) != nil || len(reply.Jobs) != len(jobs) {
		s.Fatalf("submitting %d jobs: error %v, %s: %s", len(jobs), err, answer.Status, text)
	}
	for _, j := range reply.Jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// idle returns once the site knows that nothing runs or waits at the members.
func (s *site) idle() {
	s.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(look) {
		var sites []struct {
			Self                     bool
			Processors, Free, Queued int
		}
		s.json(&sites, "sites")
		busy := false
		for _, m := range sites {
			busy = busy || !m.Self && (m.Free < m.Processors || m.Queued > 0)
		}
		switch {
		case !busy:
			return
		case time.Now().After(deadline):
			s.Fatalf("the members are not idle: %+v", sites)
		}
	}
}

// TestHeadPolicies gives a head and three members in four processes the same batches
// of 40 jobs with deadlines by each policy. All jobs are done. With -head-batches
// it prints, and judges, how many deadlines are missed.
func TestHeadPolicies(t *testing.T) {
	t.Parallel()
	batches, unit, grace := *headBatches, time.Second, 3*time.Second/2
	if batches == 0 {
		batches, unit, grace = 1, 20*time.Millisecond, time.Minute
	}
	head, _ := headed(t, headMembers...)
	missed := map[string]int{}
	for _, policy := range headPolicies {
		head.kill()
		head.ok("config", "set", "muscle.policy", policy)
		head.start()
		head.heads(len(headMembers))
		for seed := range uint64(batches) {
			head.idle()
			begun := time.Now()
			ids := head.submitAll(drawBatch(seed, unit, grace))
			for tries := 5; head.run(append([]string{"wait", "-q", "--timeout", waitMost}, ids...)...).code != 0 && tries > 0; tries-- {
			}
			var jobs []job
			head.json(&jobs, "status", ids...)
			if len(jobs) != len(ids) {
				t.Fatalf("%s, batch %d: %d of %d jobs are listed", policy, seed, len(jobs), len(ids))
			}
			late := 0
			for _, j := range jobs {
				if j.State != "done" || (j.Late > 0) != j.End.After(j.Deadline) {
					t.Errorf("%s, batch %d: %+v, want it done, and late if it ended after its deadline", policy, seed, j)
				}
				if j.Late > 0 {
					late++
				}
			}
			missed[policy] += late
			t.Logf("%s, batch %d: %d of %d deadlines missed, done in %v", policy, seed, late, len(ids), time.Since(begun).Round(100*time.Millisecond))
		}
	}
	t.Logf("deadlines missed of %d: %v", 40*batches, missed)
	if *headBatches >= headBatchesJudged && (missed["muscle"] >= missed["dll"] || missed["urgent"] >= missed["dll"]) {
		t.Error("muscle and urgent do not both miss fewer than dll")
	}
}
