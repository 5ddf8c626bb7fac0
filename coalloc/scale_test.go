package coalloc

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

// surveyedFederation returns a survey that has heard of all sites of a federation of that
// size but itself, which is the first of them.
func surveyedFederation(tb testing.TB, n int) (*View, *Survey, []grid.SiteID) {
	v := federation(n)
	s, err := NewSurvey(SurveyConfig{Self: v.Sites[0].ID, Topic: "load"}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		tb.Fatal(err)
	}
	var out grid.Outbox
	ids := make([]grid.SiteID, n)
	for i := range v.Sites {
		ids[i] = v.Sites[i].ID
		at := v.Network.(plane)[i]
		r := &LatencyReport{Site: ids[i], Sequence: 1, Within: 30, Coordinate: Coordinate{X: at.x * coordinateUnit, Y: at.y * coordinateUnit, Error: 100}}
		for k := 1; k <= NearestMax; k++ {
			j := (i + k) % n
			r.Nearest = append(r.Nearest, Nearby{mark(v.Sites[j].ID), v.Network.Latency(i, j)})
		}
		s.Step(0, &grid.Delivery{From: ids[i], Message: r}, &out)
	}
	return v, s, ids
}

// TestMessagesOfAPlacement: of 1000 sites only those that are chosen hear of a job:
// two messages each until all hold, two more until it starts, two when it is over.
func TestMessagesOfAPlacement(t *testing.T) {
	for _, policy := range []Policy{PolicyFCM, PolicyCA, PolicyCF, PolicyAdaptive} {
		t.Run(policy.String(), func(t *testing.T) {
			v, _, _ := surveyedFederation(t, 1000)
			const home = grid.SiteID("home")
			books := map[grid.SiteID]*lease.Book{}
			book := func(id grid.SiteID, processors int64) *lease.Book {
				if books[id] == nil {
					cluster, err := lrms.New(lrms.Config{Processors: processors})
					if err != nil {
						t.Fatal(err)
					}
					if books[id], err = lease.New(lease.Config{Site: id}, cluster); err != nil {
						t.Fatal(err)
					}
				}
				return books[id]
			}
			c, err := NewCoordinator(CoordinatorConfig{Queue: QueueConfig{Policy: policy}}, v, book(home, 0), rand.New(rand.NewPCG(1, 2)))
			if err != nil {
				t.Fatal(err)
			}
			const now = grid.Hour
			var started *Start
			sent := 0
			// drain carries what is in out, and what follows from it, to its end.
			var drain func(from grid.SiteID, out *grid.Outbox)
			drain = func(from grid.SiteID, out *grid.Outbox) {
				for i := 0; i < len(out.Locals); i++ {
					switch in := out.Locals[i].(type) {
					case *lease.Asked:
						if err := books[from].Grant(now, in.ID, lease.Terms{}, out); err != nil {
							t.Fatal(err)
						}
					case *Start:
						started = in
					case *lease.Activated, *lease.Ended:
					default:
						c.Step(now, in, out)
					}
				}
				for _, s := range out.Sends {
					sent++
					to := book(s.To, 1000)
					var next grid.Outbox
					to.Step(now, &grid.Delivery{From: from, Message: s.Message}, &next)
					drain(s.To, &next)
				}
			}
			var out grid.Outbox
			task := grid.TaskID{Job: jobID(1), Epoch: 1}
			c.Step(now, &Submit{Task: task, Request: &Request{Processors: 700, CCR: 250}, Estimate: grid.Hour}, &out)
			chosen := len(out.Sends)
			drain(home, &out)
			if started == nil || chosen < 2 || chosen != len(started.Parts) {
				t.Fatalf("%d sites are asked, the job starts with %+v", chosen, started)
			}
			if len(books) != chosen+1 {
				t.Errorf("%d sites hear of a job on %d", len(books)-1, chosen)
			}
			if sent != 4*chosen {
				t.Errorf("%d messages until the start on %d sites, want 2 to hold and 2 to claim for each", sent, chosen)
			}
			var end grid.Outbox
			c.Step(now, &Finish{task.Job}, &end)
			drain(home, &end)
			if sent != 6*chosen {
				t.Errorf("%d messages in all for %d sites, want 6 for each", sent, chosen)
			}
		})
	}
}

// BenchmarkSubmit is what a flexible job costs its home in a federation of 1000 sites,
// from its submission until the chosen sites are asked: /scan after a directory scan,
// with every site's idle processors, the latencies and the groups taken in anew; /warm
// when one site has changed.
func BenchmarkSubmit(b *testing.B) {
	for _, policy := range []Policy{PolicyFCM, PolicyCA, PolicyCF, PolicyAdaptive} {
		for _, warm := range []bool{false, true} {
			b.Run(fmt.Sprintf("%v/%s/sites=1000", policy, map[bool]string{false: "scan", true: "warm"}[warm]), func(b *testing.B) {
				base, survey, ids := surveyedFederation(b, 1000)
				c, err := NewCoordinator(CoordinatorConfig{Queue: QueueConfig{Policy: policy}}, base, &asker{}, rand.New(rand.NewPCG(1, 2)))
				if err != nil {
					b.Fatal(err)
				}
				r := &Request{Processors: 700, CCR: 250}
				out := &grid.Outbox{}
				var idle []int64
				for i := range base.Sites {
					idle = append(idle, base.Sites[i].Free)
				}
				b.ReportAllocs()
				begun := processorTime(b)
				for i := range b.N {
					v := c.View()
					if warm {
						k := i % len(idle)
						v.SetFree(k, max(0, idle[k]-int64(i%7)))
					} else {
						for k := range v.Sites {
							s := v.Sites[k]
							s.Free = (s.Free*7 + int64(i)) % (s.Processors/4 + 1)
							v.Put(s)
						}
						v.SetNetwork(survey.Network(grid.Second, ids, nil))
						Groups(v, 1500)
					}
					task := grid.TaskID{Job: jobID(i + 1), Epoch: 1}
					c.Step(0, &Submit{Task: task, Request: r, Estimate: grid.Hour}, out)
					if c.Claiming() != 1 {
						b.Fatalf("the job is not placed: %+v", out.Locals)
					}
					c.Step(0, &Withdraw{task.Job}, out)
					out.Reset()
				}
				b.ReportMetric((processorTime(b)-begun).Seconds()*1000/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// processorTime is what this process has used: on a busy machine, unlike the time that
// passes, it says what something costs.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
