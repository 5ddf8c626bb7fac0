package record

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gridnode/grid"
)

// Each file of testdata is a conversation: commands to a small network without jitter,
// and every message that follows.
//
//	join ID...                             sites join
//	set site=a name=N [services=S]         a site says something of itself
//	kill site=a; start site=a
//	run DURATION
//	send from=a to=b site=c name=N sequence=N [issued=D]    a message out of order
//	find site=a text=T
//	held site=a                            what it holds
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld(t, Config{Replicas: 2})
		w.now = grid.Second
		var trace strings.Builder
		w.onSend = func(from, to grid.SiteID, m grid.Message) {
			fmt.Fprintf(&trace, "%v %s->%s %s\n", w.now.Duration().Round(time.Millisecond), from, to, describe(m))
		}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			trace.Reset()
			w.command(t, td, &trace)
			return trace.String()
		})
	})
}

func (w *world) command(t *testing.T, td *datadriven.TestData, trace *strings.Builder) {
	text := func(key string) (s string) {
		if td.HasArg(key) {
			td.ScanArgs(t, key, &s)
		}
		return s
	}
	id := grid.SiteID(text("site"))
	switch td.Cmd {
	case "join":
		for _, arg := range td.CmdArgs {
			w.join(grid.SiteID(arg.Key))
		}
	case "set":
		offer := Offer{Name: text("name")}
		for i, name := range serviceNames {
			if strings.Contains(text("services"), name) {
				offer.Services |= 1 << i
			}
		}
		w.set(id, offer)
		w.run(w.now + grid.Second)
	case "kill":
		w.sites[id].registry = nil
	case "start":
		w.start(w.sites[id])
	case "run":
		d, err := time.ParseDuration(td.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		w.run(w.now + grid.FromDuration(d))
	case "send":
		var sequence uint64
		td.ScanArgs(t, "sequence", &sequence)
		issued := w.now
		if ago := text("issued"); ago != "" {
			d, err := time.ParseDuration(ago)
			if err != nil {
				t.Fatal(err)
			}
			issued += grid.FromDuration(d)
		}
		m := &Enter{&Record{Site: id, Offer: Offer{Name: text("name")}, Sequence: sequence, Issued: issued, Lifetime: LifetimeDefault}}
		from, to := grid.SiteID(text("from")), grid.SiteID(text("to"))
		w.onSend(from, to, m)
		w.push(0, to, -1, &grid.Delivery{From: from, Message: m})
		w.run(w.now + grid.Second)
	case "find":
		f := w.find(id, text("text"))
		for _, r := range f.Records {
			fmt.Fprintf(trace, "found %s\n", describeRecord(r))
		}
		fmt.Fprintf(trace, "%d of %d answered\n", f.Answered, f.Asked)
	case "held":
		for _, other := range w.order {
			if r := w.sites[id].registry.holder.held[other]; r != nil {
				fmt.Fprintln(trace, describeRecord(r))
			}
		}
	default:
		t.Fatalf("unknown command %s", td.Cmd)
	}
}
