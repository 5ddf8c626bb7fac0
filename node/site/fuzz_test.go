package site

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
)

// FuzzSite runs a recorded conversation, and between its commands does to its messages what networks
// and peers may: messages are lost, come twice, late, in another order, or with other bytes in them, and
// sites crash. No site may panic, leave a terminal state, need Ticks for ever at one instant or
// count processors that it does not have.
func FuzzSite(f *testing.F) {
	conversations := recorded(f)
	for i := range conversations {
		f.Add(uint8(i), []byte{})
		for seed := range uint64(2) {
			random, changes := rand.New(rand.NewPCG(uint64(i), seed)), make([]byte, 150)
			for j := range changes {
				changes[j] = byte(random.UintN(256))
			}
			f.Add(uint8(i), changes)
		}
	}
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		x := &mess{n: newNetwork(t), changes: changes[:min(len(changes), 200)], over: map[overKey]ended{}}
		for _, d := range conversations[int(which)%len(conversations)] {
			for range 3 {
				x.change()
			}
			if s := x.n.sites[grid.SiteID((args{t, &d}).text("site", ""))]; s != nil && s.site == nil && d.Cmd != "restart" {
				continue // it is down, and nobody can ask it
			}
			d := d
			x.n.command(&d)
			x.n.trace.Reset()
			x.check()
		}
	})
}

// recorded returns the commands of all transcripts, in the order of their names.
func recorded(tb testing.TB) (all [][]datadriven.TestData) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		tb.Fatal("no transcripts", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var list []datadriven.TestData
		lines := strings.Split(string(text), "\n")
		for i := 1; i < len(lines); i++ {
			if lines[i] != "----" {
				continue
			}
			cmd, arguments, err := datadriven.ParseLine(lines[i-1])
			if err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
			list = append(list, datadriven.TestData{Pos: file, Cmd: cmd, CmdArgs: arguments})
		}
		all = append(all, list)
	}
	return all
}

// mess is a network to which changes are made.
type mess struct {
	n       *network
	changes []byte
	sent    []message // that were under way at some time
	over    map[overKey]ended
}

type overKey struct {
	site grid.SiteID
	job  grid.JobID
}

// ended is how a job is over at a site, and with which epoch.
type ended struct {
	state State
	epoch uint32
}

// next returns the next byte of the changes, 0 if there is none.
func (x *mess) next() int {
	if len(x.changes) == 0 {
		return 0
	}
	b := x.changes[0]
	x.changes = x.changes[1:]
	return int(b)
}

// change makes the next change.
func (x *mess) change() {
	n := x.n
	what := x.next() % 8
	x.sent = append(x.sent, n.flight...)
	x.sent = x.sent[max(0, len(x.sent)-64):]
	switch what {
	case 1, 2, 3, 4:
		if len(n.flight) == 0 {
			return
		}
		i := x.next() % len(n.flight)
		m := n.flight[i]
		switch what {
		case 1:
			n.flight = append(n.flight, m)
		case 2:
			n.flight = slices.Delete(n.flight, i, i+1)
		case 3:
			n.deliver(i)
		case 4:
			if changed := garble(m, x.next()<<8|x.next(), byte(x.next())); changed != nil {
				n.sites[m.to].step(&grid.Delivery{From: m.from, Message: changed})
			}
		}
	case 5:
		n.advance(grid.Time(x.next())*grid.Second, true)
	case 6:
		if len(n.order) > 0 {
			n.sites[n.order[x.next()%len(n.order)]].restart()
		}
	case 7:
		if len(x.sent) > 0 {
			m := x.sent[x.next()%len(x.sent)]
			n.sites[m.to].step(&grid.Delivery{From: m.from, Message: m.message})
		}
	}
}

// codecs are the protocols, by the kinds of their messages.
var codecs = func() map[grid.Kind]*wire.Protocol {
	by := make(map[grid.Kind]*wire.Protocol)
	for _, p := range []*wire.Protocol{&market.Protocol, &directory.Protocol, &lease.Protocol, &bank.Protocol, &fee.Protocol, &dataset.Protocol, &sibling.Protocol, &record.Protocol} {
		for kind := range p.Decoders {
			by[kind] = p
		}
	}
	return by
}()

// garble returns what is decoded of a message in which a byte is another one, nil if nobody takes it
// for a message.
func garble(m message, at int, with byte) grid.Message {
	out, ok := m.message.(wire.Message)
	p := codecs[m.message.MessageKind()]
	if !ok || p == nil {
		return nil
	}
	frame, err := wire.Encode(out)
	if err != nil {
		return nil
	}
	body, err := wire.ReadFrame(bufio.NewReader(bytes.NewReader(frame)))
	if err != nil {
		return nil
	}
	body[at%len(body)] ^= with
	changed, err := p.Decode(m.from, body)
	if err != nil {
		return nil
	}
	return changed
}

// check looks at all sites.
func (x *mess) check() {
	n := x.n
	n.advance(0, false) // a restart has taken a second
	for _, id := range n.order {
		s := n.sites[id]
		if s.site == nil {
			continue
		}
		if s.site.NextTimer() <= n.now {
			n.t.Errorf("%s needs Ticks for ever at %v", id, n.now)
		}
		if free := s.site.Idle(n.now); free < 0 || free > s.cfg.Processors {
			n.t.Errorf("%s has %d of %d processors free", id, free, s.cfg.Processors)
		}
		for job, e := range s.site.jobs.byID {
			key := overKey{id, job}
			again := e.foreign && e.epoch > x.over[key].epoch // its home has placed it here once more
			if before, over := x.over[key]; over && e.state != before.state && !(before.state == Returned && again) {
				n.t.Errorf("job %v of %s was %v with epoch %d and is %v with epoch %d", job, id, before.state, before.epoch, e.state, e.epoch)
			}
			if e.state.Terminal() {
				x.over[key] = ended{e.state, e.epoch}
			}
		}
	}
}
