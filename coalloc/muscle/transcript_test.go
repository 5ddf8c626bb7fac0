package muscle

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// TestTranscripts runs testdata/*.txt: the four algorithms of the paper, each command
// followed by what comes of it. Jobs are J1, J2, … as the paper has them. Commands:
//
//	table sizes=2+1+4 rows=6                   algorithm 1: the composition table
//	fill space=4 [taken=J1+J3]                 algorithms 2 and 3: what to put into a space
//	batch clusters=4+6 sizes=2+1 times=2+4 slacks=6+8 [free=0:0:3:3+0:0]   free: seconds, by processor
//	pack [policy=muscle|urgent|dll|wrand] [seed=1]                         algorithm 4
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // the fuzzer's corpus
		}
		var s script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.d, s.t = d, t
			switch d.Cmd {
			case "table":
				return s.makeTable()
			case "fill":
				return s.fill()
			case "batch":
				s.makeBatch()
				return ""
			case "pack":
				return s.pack()
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

type script struct {
	t     *testing.T
	d     *datadriven.TestData
	table *Table
	batch *Batch
}

// makeTable fills a table and prints its rows.
func (s *script) makeTable() string {
	var text strings.Builder
	rows := s.numbers("rows")[0]
	s.table = NewTable(s.numbers("sizes"), rows)
	for row := 1; row <= rows; row++ {
		fmt.Fprintf(&text, "%d:", row)
		for _, composition := range s.table.Row(row) {
			fmt.Fprintf(&text, " {%s}", names(composition))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// fill looks for what to put into a space.
func (s *script) fill() string {
	look := newSearch(s.table)
	for _, name := range s.words("taken") {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "J"))
		if err != nil {
			s.t.Fatalf("%s: %v", s.d.Pos, err)
		}
		look.taken[n-1] = true
	}
	jobs, row := look.fill(s.numbers("space")[0])
	if jobs == nil {
		return "nothing\n"
	}
	return fmt.Sprintf("{%s} from row %d\n", names(jobs), row)
}

func (s *script) makeBatch() {
	b := &Batch{}
	free := s.words("free")
	for c, processors := range s.numbers("clusters") {
		k := Cluster{Processors: processors, Weights: titan.DefaultWeights}
		if free != nil {
			for _, v := range strings.Split(free[c], ":") {
				at, err := strconv.Atoi(v)
				if err != nil {
					s.t.Fatalf("%s: %v", s.d.Pos, err)
				}
				k.Free = append(k.Free, grid.Time(at)*grid.Second)
			}
		}
		b.Clusters = append(b.Clusters, k)
	}
	times, slacks := s.numbers("times"), s.numbers("slacks")
	for i, size := range s.numbers("sizes") {
		span := grid.Time(times[i]) * grid.Second
		j := Job{Processors: size, Deadline: grid.Time(slacks[i])*grid.Second + span}
		for range b.Clusters {
			j.Spans = append(j.Spans, span)
		}
		b.Jobs = append(b.Jobs, j)
	}
	s.batch = b
}

// pack shares the batch out, and prints what each cluster gets and why.
func (s *script) pack() string {
	policy, seed := "muscle", 1
	if words := s.words("policy"); words != nil {
		policy = words[0]
	}
	if s.d.HasArg("seed") {
		seed = s.numbers("seed")[0]
	}
	p, err := ParsePolicy(policy)
	if err != nil {
		s.t.Fatalf("%s: %v", s.d.Pos, err)
	}
	packing, err := p.Share(s.batch, draws(uint64(seed)))
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	var text strings.Builder
	for c := range packing.Shares {
		share := &packing.Shares[c]
		fmt.Fprintf(&text, "C%d gets %s\n", c+1, names(share.Jobs))
		for _, job := range share.Jobs {
			if packing.Placements != nil {
				why := packing.Placements[job]
				fmt.Fprintf(&text, "  J%d at %v, %d free, from row %d with %d others, epsilon %.3g\n", job+1, why.Start, why.Space, why.Row, why.Mates, why.Epsilon)
			}
		}
	}
	if len(packing.Unplaced) > 0 {
		fmt.Fprintf(&text, "nowhere: %s\n", names(packing.Unplaced))
	}
	return text.String()
}

// names names jobs.
func names[N int | int32](jobs []N) string {
	var words []string
	for _, j := range jobs {
		words = append(words, fmt.Sprintf("J%d", j+1))
	}
	return strings.Join(words, " ")
}

func (s *script) words(key string) []string {
	for _, arg := range s.d.CmdArgs {
		if arg.Key == key {
			return strings.Split(strings.Join(arg.Vals, ""), "+")
		}
	}
	return nil
}

func (s *script) numbers(key string) (list []int) {
	for _, w := range s.words(key) {
		n, err := strconv.Atoi(w)
		if err != nil {
			s.t.Fatalf("%s: %v", s.d.Pos, err)
		}
		list = append(list, n)
	}
	return list
}
