package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// scale is all that gridnode testnet scale gives: its targets, and figures by size.
type scale struct {
	flags  string
	test   string // a test that prints as much instead: go test …
	live   bool   // real nodes beside virtual networks
	groups []group
}

// group is figures of a federation that make one table, with a column for each size.
type group struct {
	title, text string
	figures     []figure
}

// scaleReport is the JSON of gridnode testnet scale, as far as it is used here.
type scaleReport struct {
	Results []map[string]any `json:"results"`
	Live    []struct {
		Sites int `json:"sites"`
		Types []struct {
			Type                       string  `json:"type"`
			Live, Virtual, Least, Most float64 // messages
		} `json:"types"`
		Rates []struct {
			Name              string  `json:"name"` // of a type, or of a protocol
			Live, Least, Most float64 // messages that a site receives in a minute
		} `json:"rates"`
	} `json:"live"`
	Growth []struct {
		Type, Law                 string
		Residual, Here, Predicted float64
	} `json:"growth"`
	Targets []struct {
		Text, Wanted, Here string
		Met                bool
	} `json:"targets"`
}

func (t scale) measure(ctx context.Context, run runner) (string, error) {
	command := strings.Join(strings.Fields("gridnode testnet scale "+t.flags+" "+seed), " ")
	ask := command + " -o json"
	if t.test != "" {
		command, ask = t.test, t.test
	}
	text, err := run.output(ctx, ask)
	if err != nil {
		return "", err
	}
	if begin, end := bytes.Index(text, []byte("{\n")), bytes.LastIndex(text, []byte("\n}")); t.test != "" && begin >= 0 && end > begin {
		text = text[begin : end+2] // around it a test says whether it passed
	}
	var r scaleReport
	if err := json.Unmarshal(text, &r); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	targets := grid{{"what", "target", "here", "met"}}
	for _, g := range r.Targets {
		met := "yes"
		if !g.Met {
			met = "no"
		}
		targets = append(targets, grid{{g.Text, g.Wanted, g.Here, met}}.wrapped(56, 28, 20, 4)...)
	}
	parts := []string{section("Targets", "A target that is missed is no error: the table says how far it is.", targets.markdown(), []string{command})}
	if t.live {
		parts = append(parts, r.rates())
		parts = append(parts, r.beside()...)
	}
	for _, g := range t.groups {
		table, err := r.table(g)
		if err != nil {
			return "", fmt.Errorf("%s: %w", command, err)
		}
		parts = append(parts, "## "+g.title+"\n\n"+wrap(g.text, widthMax)+"\n"+table.markdown())
	}
	if len(r.Growth) > 0 {
		parts = append(parts, r.growth())
	}
	return strings.Join(parts, "\n"), nil
}

// growth returns the laws by which messages grow with the sites.
func (r *scaleReport) growth() string {
	table := grid{{"messages", "a site and minute, for n sites", "residual, %", "at the most sites", "predicted for 1,000,000"}}
	for _, g := range r.Growth {
		table = append(table, []string{g.Type, g.Law, number(100*g.Residual, 1), number(g.Here, 3), number(g.Predicted, 3)})
	}
	return "## Growth\n\n" + wrap("The slowest of constant, log₂ n, √n and n that fits, by least squares; a faster one has to come "+
		"twice as near. The residual is the root of the mean square of the differences, over the mean.", widthMax) + "\n" + table.markdown()
}

// table has a column for each size.
func (r *scaleReport) table(g group) (grid, error) {
	head := []string{"sites"}
	var results []*result
	for _, keys := range r.Results {
		m := &result{keys: keys}
		head = append(head, number(m.at("sites"), 0))
		results = append(results, m)
	}
	out := grid{head}
	for _, f := range g.figures {
		row := []string{f.head}
		for _, m := range results {
			row = append(row, number(f.of(m), f.decimals))
			if m.missing != "" {
				return nil, fmt.Errorf("the result has no number %q", m.missing)
			}
		}
		out = append(out, row)
	}
	return out, nil
}

// rates returns one table of all numbers of nodes: what a site receives in a minute. The
// line of a protocol is for all of its messages.
func (r *scaleReport) rates() string {
	table := grid{{"messages"}}
	rows := make(map[string]int)
	var order []string
	for _, c := range r.Live {
		for _, rate := range c.Rates {
			if _, known := rows[rate.Name]; !known {
				rows[rate.Name] = 0
				order = append(order, rate.Name)
			}
		}
	}
	rank := func(name string) int { return max(slices.Index([]string{"look-ups", "all"}, name), -1) }
	slices.SortFunc(order, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	for i, name := range order {
		rows[name] = i + 1
		table = append(table, []string{name})
	}
	for _, c := range r.Live {
		table[0] = append(table[0], fmt.Sprintf("%d: live", c.Sites), "virtual")
		for i := range table[1:] {
			table[i+1] = append(table[i+1], "", "")
		}
		for _, rate := range c.Rates {
			row := table[rows[rate.Name]]
			row[len(row)-2], row[len(row)-1] = measured(rate.Live), measured(rate.Least)+"–"+measured(rate.Most)
		}
	}
	return "## Messages that a site receives in a minute\n\n" + wrap("For each number of nodes: live, and the range of the virtual "+
		"networks. The line of a protocol is for all of its messages. Processors for a job at several sites are claimed by leases; what "+
		"heads share out is given away by the market. Look-ups are requests in the DHT.", widthMax) + "\n" + table.markdown()
}

// beside returns a table for each number of nodes: messages live and in virtual time.
func (r *scaleReport) beside() (sections []string) {
	for _, c := range r.Live {
		table := grid{{"messages", "live", "virtual, mean", "least", "most", "off the range, %"}}
		for _, m := range c.Types {
			off := 0.0
			switch {
			case m.Live > m.Most:
				off = 100 * ratio(m.Live-m.Most, m.Most)
			case m.Live < m.Least:
				off = 100 * ratio(m.Live-m.Least, m.Least)
			}
			table = append(table, []string{m.Type, number(m.Live, 0), number(m.Virtual, 0), number(m.Least, 0), number(m.Most, 0), number(off, 1)})
		}
		sections = append(sections, fmt.Sprintf("## %d nodes\n\n%s\n%s", c.Sites,
			wrap("Real nodes, and five virtual networks of the same jobs. Of few messages chance changes much.", widthMax), table.markdown()))
	}
	return sections
}
