package market

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// TestTranscripts runs testdata/*: each command is followed by everything that
// happened because of it. Commands:
//
//	site name=a [processors=10 speed=1000 price=1 foreign=no hold=10s parallel=1 asks-per-peer=8 …]
//	fill site=a processors=4 for=1h    occupy processors, without publishing a quote
//	quote site=a                       publish the live quote
//	price site=a price=2               change the price, without publishing
//	place job=1 home=a [processors=1 for=1h deadline=2h budget=5 goal=cheapest site=b]
//	preview job=1 home=a …             the same, only asked
//	deliver [count=1 | nth=2]          deliver that many messages in order, or only the nth; all without either
//	drop | copy | last | undeliverable the first message under way is lost | doubled | moved to the end | certainly never arrives
//	advance for=5s [deliver]           let time pass; messages stay under way, or are delivered at once
//	stop job=1 home=a
//	crash site=a | restart site=a
//	directory fails | works
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // the fuzzer's corpus
		}
		n := newNetwork(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			n.t = t
			n.command(t, d)
			return n.takeTrace()
		})
	})
}

func (n *network) command(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "site":
		id := grid.SiteID(text(d, "name", ""))
		n.gpus[id] = integer(d, "gpus", 0)
		if d.HasArg("guest-most") || d.HasArg("guest-price") || d.HasArg("guest-until") {
			n.houses[id] = &house{most: integer(d, "guest-most", 0), factor: grid.Price(integer(d, "guest-price", 1)), until: n.now + during(t, d, "guest-until", grid.Day)}
		}
		n.add(siteArgs(t, d), 0)
	case "fill":
		s := n.sites[grid.SiteID(text(d, "site", ""))]
		n.fills++
		request := lrmsRequest(n.fills, integer(d, "processors", s.cfg.Processors), during(t, d, "for", grid.Hour))
		if err := s.cluster.Submit(s.clock(), request); err != nil {
			t.Fatal(err)
		}
		s.schedule()
	case "quote":
		n.sites[grid.SiteID(text(d, "site", ""))].publish()
	case "price":
		n.sites[grid.SiteID(text(d, "site", ""))].agent.SetPrice(credits(t, d, "price", grid.Credit))
	case "place":
		n.place(n.jobArgs(t, d))
	case "preview":
		job := n.jobArgs(t, d)
		n.sites[job.Home].step(&Preview{Token: 1, Job: job})
	case "deliver":
		if d.HasArg("nth") {
			n.deliver(int(integer(d, "nth", 1)) - 1)
			return
		}
		if d.HasArg("count") {
			for range integer(d, "count", 1) {
				n.deliver(0)
			}
		} else {
			n.deliverAll()
		}
	case "drop":
		n.flight = n.flight[1:]
	case "copy":
		n.flight = append(n.flight[:1:1], n.flight...)
	case "last":
		n.flight = append(n.flight[1:], n.flight[0])
	case "undeliverable":
		m := n.flight[0]
		n.flight = n.flight[1:]
		n.sites[m.from].step(&grid.Undelivered{To: m.to, Message: m.message})
	case "advance":
		n.advance(during(t, d, "for", grid.Second), d.HasArg("deliver"))
	case "stop":
		n.stop(grid.SiteID(text(d, "home", "")), jobID(uint64(integer(d, "job", 1))))
	case "crash":
		n.sites[grid.SiteID(text(d, "site", ""))].crash()
	case "restart":
		n.sites[grid.SiteID(text(d, "site", ""))].restart()
	case "directory":
		n.deaf = d.HasArg("fails")
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
}

func jobID(number uint64) grid.JobID { return grid.JobID{Hi: 1, Lo: number} }

func siteArgs(t *testing.T, d *datadriven.TestData) Config {
	name := text(d, "name", "")
	placement, err := ParsePlacement(text(d, "placement", "coordinated"))
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Offer: Offer{
			Site: grid.SiteID(name), Name: name, Resources: grid.Resources{Processors: integer(d, "processors", 10), Memory: integer(d, "memory", 0)},
			Rating: grid.Rating{Speed: integer(d, "speed", 1000), Bandwidth: 1000}, Price: credits(t, d, "price", grid.Credit),
			Foreign: text(d, "foreign", "yes") == "yes",
		},
		Placement: placement, HoldSpan: during(t, d, "hold", 0),
		Parallel: int(integer(d, "parallel", 0)), AsksPerPeer: int(integer(d, "asks-per-peer", 0)), HoldsPerPeer: int(integer(d, "holds-per-peer", 0)),
		HoldShare: integer(d, "hold-share", 0), Page: int(integer(d, "page", 0)), Near: 1,
	}
}

func (n *network) jobArgs(t *testing.T, d *datadriven.TestData) *grid.Job {
	home := n.sites[grid.SiteID(text(d, "home", ""))]
	span := during(t, d, "for", grid.Hour)
	j := &grid.Job{
		ID: jobID(uint64(integer(d, "job", 1))), Home: home.cfg.Site, Site: grid.SiteID(text(d, "site", "")),
		Resources: grid.Resources{Processors: integer(d, "processors", 1), Memory: integer(d, "memory", 0)}, Tasks: 1,
		Submit: home.clock(), Estimate: span, RunTime: span, Work: grid.WorkOf(span, 0, home.cfg.Rating),
		Deadline: grid.Never, Budget: grid.NoBudget,
	}
	if d.HasArg("gpus") {
		j.GPUs = grid.GPUs{Type: text(d, "gpu-type", ""), Count: integer(d, "gpus", 0)}
	}
	if d.HasArg("deadline") {
		j.Deadline = home.clock() + during(t, d, "deadline", 0)
	}
	if d.HasArg("budget") {
		j.Budget = credits(t, d, "budget", 0)
	}
	for g := grid.GoalLocal; g <= grid.GoalSpill; g++ {
		if g.String() == text(d, "goal", "cheapest") {
			j.Goal = g
		}
	}
	return j
}

func text(d *datadriven.TestData, key, def string) string {
	for _, arg := range d.CmdArgs {
		if arg.Key == key && len(arg.Vals) > 0 {
			return arg.Vals[0]
		}
	}
	return def
}

func integer(d *datadriven.TestData, key string, def int64) int64 {
	v := text(d, key, "")
	if v == "" {
		return def
	}
	var value int64
	for _, c := range v {
		value = value*10 + int64(c-'0')
	}
	return value
}

func during(t *testing.T, d *datadriven.TestData, key string, def grid.Time) grid.Time {
	v := text(d, key, "")
	if v == "" {
		return def
	}
	span, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return grid.FromDuration(span)
}

func credits(t *testing.T, d *datadriven.TestData, key string, def grid.Credits) grid.Credits {
	v := text(d, key, "")
	if v == "" {
		return def
	}
	c, err := grid.ParseCredits(v)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return c
}

// TestProtocolSpeaksAllKinds checks that no message kind was forgotten.
func TestProtocolSpeaksAllKinds(t *testing.T) {
	for k := wire.MarketNegotiate; k <= wire.MarketCancel; k++ {
		if Protocol.Decoders[k] == nil {
			t.Errorf("no decoder for %s", wire.KindName(k))
		}
	}
}
