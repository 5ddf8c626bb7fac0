package directory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gridnode/grid"
)

// Each file of testdata/transcript is a conversation: commands to a small network without
// jitter, and every message that follows.
//
//	join N                                 N sites join
//	set site=a price=P [speed=S] [free=F]  a site offers something
//	withdraw site=a
//	kill site=a
//	run DURATION
//	find site=a [by=price] [down] [limit=N]
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcript", func(t *testing.T, path string) {
		n := newNetwork(t, 1, Config{CellMax: 8, Replicas: 2, Lifetime: 10 * grid.Minute})
		var trace strings.Builder
		n.onSend = func(from, to grid.SiteID, m grid.Message) {
			fmt.Fprintf(&trace, "%v %s->%s %s\n", n.now.Duration().Round(time.Millisecond), from, to, describe(m))
		}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			trace.Reset()
			n.command(t, td, &trace)
			return trace.String()
		})
	})
}

func (n *network) command(t *testing.T, td *datadriven.TestData, trace *strings.Builder) {
	var id string
	if td.HasArg("site") {
		td.ScanArgs(t, "site", &id)
	}
	s := n.byID[grid.SiteID(id)]
	number := func(key string, value int64) int64 {
		if td.HasArg(key) {
			td.ScanArgs(t, key, &value)
		}
		return value
	}
	switch td.Cmd {
	case "join":
		for range number("sites", 1) {
			n.join()
		}
	case "set":
		n.set(s, n.offer(s, grid.Price(number("price", 1)), number("speed", 100), number("free", 10)))
	case "withdraw":
		n.withdraw(s)
	case "kill":
		n.kill(s)
	case "run":
		d, err := time.ParseDuration(td.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		n.run(grid.FromDuration(d))
	case "find":
		q := Query{Descending: td.HasArg("down"), Limit: int(number("limit", 0))}
		if td.HasArg("by") {
			var by string
			td.ScanArgs(t, "by", &by)
			for a := range Attribute(attributes) {
				if a.String() == by {
					q.Attribute = a
				}
			}
		}
		f := n.find(s, q)
		fmt.Fprintf(trace, "found %v end=%v messages=%d", ids(f.Quotes), f.End, f.Messages)
		if f.Err != nil {
			fmt.Fprintf(trace, " error: %v", f.Err)
		}
		trace.WriteByte('\n')
	default:
		t.Fatalf("unknown command %q", td.Cmd)
	}
}

// describe prints a message as a transcript shows it.
func describe(m grid.Message) string {
	switch m := m.(type) {
	case *Publish:
		text := fmt.Sprintf("publish price=%d free=%d", m.Quote.Price, m.Quote.Free)
		for _, c := range m.Copies {
			text += " " + c.Cell.String() + flags("quiet", c.Quiet, "guest", c.Guest, "safe", c.Safe)
		}
		return text
	case *Published:
		text := "published"
		for _, r := range m.Receipts {
			text += " " + r.Cell.String() + flags("gone", r.Gone, "refused", r.Refused, "closing", r.Closing, "closed", r.Closed)
			if r.Moved {
				text += " moved to " + r.To.String()
			}
		}
		return text
	case *Withdraw:
		text := "withdraw " + m.Cell.String()
		if m.Moved {
			text += " moved to " + m.To.String()
		}
		return text
	case *Scan:
		return fmt.Sprintf("scan %v limit=%d", m.Cell, m.Limit) + flags("down", m.Descending)
	case *Page:
		var sites []grid.SiteID
		for _, q := range m.Quotes {
			sites = append(sites, q.Site)
		}
		return fmt.Sprintf("page %v %v fences=%v", m.Cell, sites, m.Fences) + flags("more", m.More, "held", m.Held, "mature", m.Mature)
	case *Report:
		return fmt.Sprintf("report %v child %v", m.Cell, m.Child)
	case *Reported:
		text := fmt.Sprintf("reported strays=%d", m.Strays)
		if m.Moved {
			text += " moved to " + m.To.String()
		}
		return text
	}
	return fmt.Sprintf("%T", m)
}

func flags(list ...any) (text string) {
	for i := 0; i < len(list); i += 2 {
		if list[i+1].(bool) {
			text += " " + list[i].(string)
		}
	}
	return text
}
