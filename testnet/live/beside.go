package live

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"gridnode/testnet/measure"
	"gridnode/testnet/scenario/scale"
)

// Rate is what a site receives in a minute, of one type of message or of a protocol: live,
// and in virtual networks of the same jobs.
type Rate struct {
	Name  string          `json:"name"` // "lease.claim"; "lease" for all of the protocol; "all"
	Live  measure.Decimal `json:"live"`
	Least measure.Decimal `json:"least"` // of the virtual networks
	Most  measure.Decimal `json:"most"`
}

// Whole reports whether it is a protocol, or all of them.
func (r *Rate) Whole() bool { return !strings.Contains(r.Name, ".") }

// LookUps is the name of the requests of the DHT among the rates.
const LookUps = "look-ups"

// Rates returns the rates of all protocols with their types of messages, and of all
// together in the end.
func Rates(live *scale.Result, virtual []*scale.Result) (list []Rate) {
	families := make(map[string]int) // where they are in the list
	perMinute := func(m *scale.Result, messages float64) measure.Decimal {
		minutes := m.SpanSeconds.Float() / 60 * float64(m.Sites)
		return measure.Decimal(100*messages/max(minutes, 1e-9) + 0.5)
	}
	rate := func(name string, of func(*scale.Result) float64) {
		r := Rate{Name: name, Live: perMinute(live, of(live))}
		for i, v := range virtual {
			n := perMinute(v, of(v))
			if i == 0 {
				r.Least = n
			}
			r.Least, r.Most = min(r.Least, n), max(r.Most, n)
		}
		list = append(list, r)
	}
	family := func(name string) func(*scale.Result) float64 {
		return func(m *scale.Result) (sum float64) {
			for kind, n := range m.ByType {
				if strings.HasPrefix(kind, name+".") {
					sum += float64(n)
				}
			}
			return sum
		}
	}
	requests := func(m *scale.Result) float64 { return float64(m.Lookups) * m.RequestsPerLookup.Float() }
	for _, d := range Differences(live, virtual) {
		name, _, _ := strings.Cut(d.Type, ".")
		if _, known := families[name]; !known {
			families[name] = len(list)
			rate(name, family(name))
		}
		rate(d.Type, func(m *scale.Result) float64 { return float64(m.ByType[d.Type]) })
	}
	rate(LookUps, requests)
	rate("all", func(m *scale.Result) float64 {
		sum := requests(m)
		for name := range families {
			sum += family(name)(m)
		}
		return sum
	})
	return list
}

// Beside is a replay beside virtual networks of the same jobs.
type Beside struct {
	Networks int          `json:"networks"` // virtual ones
	Types    []Difference `json:"types"`
	Rates    []Rate       `json:"rates"` // messages received per site and minute
}

// Beside has virtual networks replay what the nodes have replayed, and adds to its result
// what was said here and there.
func (l *Live) Beside(ctx context.Context, r *measure.Result) error {
	virtual, err := l.twins(ctx)
	if err != nil {
		return err
	}
	live := l.measured()
	b := &Beside{Networks: len(virtual), Types: Differences(live, virtual), Rates: Rates(live, virtual)}
	r.Beside = b
	r.Table = func(w io.Writer, r *measure.Result) error {
		plain := *r
		plain.Table = nil
		if err := plain.Write(w, "table"); err != nil {
			return err
		}
		return b.write(w)
	}
	if l.cfg.Out != "" {
		return r.Save(l.cfg.Out)
	}
	return nil
}

// write prints a line for each type of message.
func (b *Beside) write(w io.Writer) error {
	fmt.Fprintf(w, "\nbeside %d virtual networks of the same jobs:\n", b.Networks)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "messages\tlive\tvirtual\tleast\tmost\toff the range\tper site and minute\tleast\tmost\t")
	for _, r := range b.Rates {
		i := slices.IndexFunc(b.Types, func(d Difference) bool { return d.Type == r.Name })
		counts := "\t\t\t\t"
		if i >= 0 {
			d := &b.Types[i]
			counts = fmt.Sprintf("%d\t%d\t%d\t%d\t%+.1f %%", d.Live, d.Virtual, d.Least, d.Most, d.Outside.Float())
		}
		fmt.Fprintf(t, "%s\t%s\t%v\t%v\t%v\t\n", r.Name, counts, r.Live, r.Least, r.Most)
	}
	return t.Flush()
}
