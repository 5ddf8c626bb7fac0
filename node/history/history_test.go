package history

import (
	"slices"
	"testing"

	"gridnode/grid"
)

// keys returns what an outbox saves and deletes, in order.
func keys(out *grid.Outbox) (list []string) {
	for _, e := range out.Effects {
		sign := "+"
		if e.Kind == grid.EffectDelete {
			sign = "-"
		}
		list = append(list, sign+out.Records[e.Index].RecordKey())
	}
	return list
}

// Numbers rise by one whatever was moved to files, and over restarts; what files have is
// deleted once.
func TestNumbersRise(t *testing.T) {
	var out grid.Outbox
	g := NewLog(0)
	for range 3 {
		g.Add(&Line{Kind: Job, ID: "a"}, &out)
	}
	g.Kept(2, &out)
	g.Kept(1, &out)
	g.Kept(7, &out)
	want := []string{"+" + Key(1), "+" + Key(2), "+" + Key(3), "-" + Key(1), "-" + Key(2), "-" + Key(3)}
	if got := keys(&out); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	g.Add(&Line{Kind: Job, ID: "b"}, &out)

	out = grid.Outbox{}
	g = NewLog(5) // files have lines up to 5; the store has 4 to 7 still
	for seq := uint64(4); seq <= 7; seq++ {
		if err := g.Recover(Key(seq), &out); err != nil {
			t.Fatal(err)
		}
	}
	g.Add(&Line{Kind: Job, ID: "c"}, &out)
	g.Kept(6, &out)
	if got := keys(&out); !slices.Equal(got, []string{"-" + Key(4), "-" + Key(5), "+" + Key(8), "-" + Key(6)}) {
		t.Errorf("after a restart %v", got)
	}
	if g.Last() != 8 || g.Full() {
		t.Errorf("last %d", g.Last())
	}
	if err := g.Recover(Prefix+"x", &out); err == nil {
		t.Error("took a key without a number")
	}
	if g := (&Log{first: 1, next: 1 + PendingMax}); !g.Full() {
		t.Error("not full")
	}
}

func TestLinesAreReadAgain(t *testing.T) {
	l := Line{
		Seq: 9, Kind: Job, Foreign: true, ID: "j", Epoch: 2, Number: 7, Name: "a\nb", User: "ann", Home: "h", HomeName: "beta", Site: "s", SiteName: "alpha",
		Org: "Institute", Sites: []grid.SiteID{"x", "y"}, Processors: 4, GPUs: 1, Submitted: 1, Start: 2, End: 3, Used: 4, Price: 5, Cost: 6, Bank: "b", BankName: "till",
		State: "failed", Exit: 137, Reason: "why",
	}
	text := l.AppendRecord(nil)
	if slices.Contains(text, '\n') {
		t.Errorf("%q has a line break", text)
	}
	got, err := Parse(text)
	if err != nil || string(got.AppendRecord(nil)) != string(text) || Seq(text) != 9 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "{}", `{"seq":1}`, `{"seq":1,"kind":"job"}`, "[1]", `{"seq":1,"kind":"job","id":"x"`} {
		if Seq([]byte(bad)) != 0 {
			t.Errorf("%q is a line", bad)
		}
	}
}

func TestFilter(t *testing.T) {
	own := Line{Kind: Job, ID: "0abc1", Number: 12, Name: "fit", User: "ann", Home: "self", Site: "b-id", SiteName: "beta", Org: "Institute", End: 100}
	guest := Line{Kind: Job, Foreign: true, ID: "0abd2", User: "ann", Home: "c-id", HomeName: "gamma", Site: "self", SiteName: "alpha", Org: "Lab", End: 200}
	gang := Line{Kind: Job, ID: "0ff", User: "ben", Home: "self", Sites: []grid.SiteID{"b-id", "c-id"}, End: 300}
	lease := Line{Kind: Lease, Foreign: true, ID: "3", Home: "c-id", HomeName: "gamma", Site: "self", End: 400}
	all := []Line{own, guest, gang, lease}
	for _, tt := range []struct {
		name string
		f    Filter
		want []int
	}{
		{"all", Filter{}, []int{0, 1, 2, 3}},
		{"since, included", Filter{Since: 200}, []int{1, 2, 3}},
		{"until, not included", Filter{Until: 200}, []int{0}},
		{"own", Filter{Own: true}, []int{0, 2}},
		{"foreign", Filter{Foreign: true}, []int{1, 3}},
		{"both", Filter{Own: true, Foreign: true}, []int{0, 1, 2, 3}},
		{"site by name", Filter{Site: "beta"}, []int{0}},
		{"site by ID, parts included", Filter{Site: "c-id"}, []int{1, 2, 3}},
		{"not itself", Filter{Site: "alpha"}, nil},
		{"organisation", Filter{Org: "Lab"}, []int{1}},
		{"user", Filter{User: "ann"}, []int{0, 1}},
		{"job by the beginning of its ID", Filter{Job: "0AB"}, []int{0, 1}},
		{"job by its number", Filter{Job: "12"}, []int{0}},
		{"job by its name", Filter{Job: "fit"}, []int{0}},
		{"kind", Filter{Kind: Lease}, []int{3}},
		{"two of them", Filter{User: "ann", Foreign: true}, []int{1}},
	} {
		var got []int
		for i := range all {
			if tt.f.Match(&all[i]) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
