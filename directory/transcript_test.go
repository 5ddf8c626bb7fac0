package directory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gridnode/directory/trie"
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
//	crowd rounds=N [by=price]              all sites ask for the lowest, one after the other
//	cells [by=price]                       who holds what, as the holders see it
//
// Any of them may have show=(KIND,...), so that only these messages are printed, and
// about=WORD, so that only those are in which it occurs.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcript", func(t *testing.T, path string) {
		n := newNetwork(t, 1, Config{CellMax: 8, Replicas: 2, Lifetime: 10 * grid.Minute})
		var trace strings.Builder
		var show []string // kinds of messages to print; nil: all
		var about string
		n.onSend = func(from, to grid.SiteID, m grid.Message) {
			text := describe(m)
			kind, _, _ := strings.Cut(text, " ")
			if len(show) > 0 && !slices.Contains(show, kind) || !strings.Contains(text, about) {
				return
			}
			fmt.Fprintf(&trace, "%v %s->%s %s\n", n.now.Duration().Round(time.Millisecond), from, to, text)
		}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			trace.Reset()
			show, about = nil, ""
			for _, arg := range td.CmdArgs {
				switch arg.Key {
				case "show":
					show = arg.Vals
				case "about":
					about = arg.Vals[0]
				}
			}
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
	case "crowd":
		for range number("rounds", 1) {
			for _, s := range n.sites {
				if !s.down {
					n.find(s, Query{Attribute: attributeOf(t, td), Limit: 2})
					n.run(50 * grid.Millisecond)
				}
			}
		}
	case "cells":
		n.cellsOf(attributeOf(t, td), trace)
	case "find":
		q := Query{Attribute: attributeOf(t, td), Descending: td.HasArg("down"), Limit: int(number("limit", 0))}
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

// attributeOf returns the attribute that a command names; the price if it names none.
func attributeOf(t *testing.T, td *datadriven.TestData) (a Attribute) {
	if !td.HasArg("by") {
		return Price
	}
	var by string
	td.ScanArgs(t, "by", &by)
	for a.String() != by {
		if a++; a == attributes {
			t.Fatalf("unknown attribute %q", by)
		}
	}
	return a
}

// cellsOf prints the cells of an attribute as each holder sees them: how many quotes of
// its own it has, what was split off it, and where it is in its life.
func (n *network) cellsOf(a Attribute, trace *strings.Builder) {
	for _, s := range n.sites {
		if s.down {
			continue
		}
		for _, h := range s.dir.holder.holdings {
			if h.cell.attribute != a {
				continue
			}
			quotes, _ := h.stand(n.now)
			fmt.Fprintf(trace, "%s %v quotes=%d", s.id, h.cell, quotes)
			if fences, _ := h.fences.List(); len(fences) > 0 {
				fmt.Fprintf(trace, " fences=%v", fences)
			}
			if strays := h.strays(n.now, trie.Prefix{}) - quotes; strays > 0 {
				fmt.Fprintf(trace, " strays=%d", strays)
			}
			trace.WriteString(flags("mature", h.isMature()) + " " + h.life.Stage(n.now, n.cfg.Lifetime).String() + "\n")
		}
	}
}

// describe prints a message as a transcript shows it.
func describe(m grid.Message) string {
	switch m := m.(type) {
	case *Publish:
		text := fmt.Sprintf("publish price=%d free=%d", m.Quote.Price, m.Quote.Free)
		for _, c := range m.Copies {
			text += " " + c.Cell.String() + flags("quiet", c.Quiet, "spare", c.Spare, "safe", c.Safe)
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
		return fmt.Sprintf("scan %v limit=%d", m.Cell, m.Limit) + flags("down", m.Descending, "image", m.Image) + stead(m.Via)
	case *Page:
		if m.Token == 0 && !m.Held {
			return fmt.Sprintf("void %v", m.Cell)
		}
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

// stead names the holder in whose stead a mirror is asked.
func stead(via grid.SiteID) string {
	if via == "" {
		return ""
	}
	return " via " + string(via)
}

func flags(list ...any) (text string) {
	for i := 0; i < len(list); i += 2 {
		if list[i+1].(bool) {
			text += " " + list[i].(string)
		}
	}
	return text
}
