package away

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"gridnode/testnet/sweep"
)

// squares are the runs of a sweep, and what comes of them.
func squares(n int) (runs []sweep.Run, got []*int) {
	got = make([]*int, n)
	for i := range n {
		runs = append(runs, sweep.Run{Name: fmt.Sprintf("square of %d", i), Weight: int64(i), Result: &got[i], Do: func(context.Context, func(int64)) error {
			square := i * i
			got[i] = &square
			return nil
		}})
	}
	return runs, got
}

// fake is a way whose jobs are over at once.
type fake struct {
	t      *testing.T
	gone   error          // nothing can be handed over
	ends   map[int][]news // how the next jobs of a part end that leave nothing
	handed [][]int        // parts, by call of hand
	known  map[int]news   // how those stand
	late   []int          // parts whose jobs, of an earlier call, end at the second look
	looks  int
	cancel context.CancelFunc // called at the first look that follows; nil: nobody is
}

func (f *fake) reach(context.Context) error { return f.gone }

func (f *fake) hand(ctx context.Context, w *work, parts []int) error {
	f.handed = append(f.handed, parts)
	for _, run := range parts {
		f.known[run] = news{over: true}
		if left := f.ends[run]; len(left) > 0 {
			f.known[run], f.ends[run] = left[0], left[1:]
			continue
		}
		f.end(ctx, w, run)
	}
	return nil
}

// end has a part be done.
func (f *fake) end(ctx context.Context, w *work, run int) {
	runs, _ := squares(len(w.Runs))
	p, path := w.part(run)
	if err := p.Do(path)(ctx, runs, sweep.Options{}); !errors.Is(err, ErrPart) {
		f.t.Errorf("part %v: %v", p, err)
	}
	f.known[run] = news{over: true}
}

func (f *fake) look(ctx context.Context, w *work) (map[int]news, error) {
	if f.looks++; f.looks == 2 {
		for _, run := range f.late {
			f.end(ctx, w, run)
		}
	}
	if len(f.handed) > 0 && f.cancel != nil {
		f.cancel()
	}
	return f.known, nil
}

func (f *fake) afterwards(*work) string { return "jobs go on" }

// sweepOf returns a sweep in a directory, and what it says.
func sweepOf(t *testing.T, dir string, way Way) (*Sweep, *strings.Builder) {
	t.Helper()
	said := new(strings.Builder)
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("the program"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Sweep{Dir: dir, Program: program, Args: []string{"square"}, Way: way, Again: "again", Say: func(text string) { fmt.Fprintln(said, text) }}, said
}

// TestSweep: what is missing is done, the heaviest first, and nothing else; what is killed is done
// again, a few times; what fails is named when the others are done.
func TestSweep(t *testing.T) {
	killed, failed, under := news{over: true, killed: true, why: "it was killed"}, news{over: true, why: "exit code 1", see: "cat log"}, news{}
	for _, tt := range []struct {
		name   string
		ends   map[int][]news
		handed string
		err    string // of the first call
		second string // handed over by a second call, which ends well
	}{
		{"all go well", nil, "[[3 2 1 0]]", "", "[]"},
		{"two are killed", map[int][]news{1: {killed}, 3: {killed, killed}}, "[[3 2 1 0] [3 1] [3]]", "", "[]"},
		{"one is killed each time", map[int][]news{2: {killed, killed, killed}}, "[[3 2 1 0] [2] [2]]", "part 2, square of 2: it was killed", "[[2]]"},
		{"two fail", map[int][]news{0: {failed}, 2: {failed}}, "[[3 2 1 0]]", "2 of 4 runs have failed; the others are kept, and the same command has only these done again:\n  part 0, square of 0: exit code 1 (cat log)\n  part 2", "[[2 0]]"},
		{"one goes on after Ctrl-C", map[int][]news{1: {under}}, "[[3 2 1 0]]", "context canceled", "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				way := &fake{t: t, ends: tt.ends, known: map[int]news{}}
				if tt.err == "context canceled" {
					way.cancel = cancel
				}
				s, said := sweepOf(t, dir, way)
				runs, _ := squares(4)
				err := s.Do(ctx, runs, sweep.Options{})
				if fmt.Sprint(way.handed) != tt.handed || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("handed over %v, %v; want %s, %q\n%s", way.handed, err, tt.handed, tt.err, said)
				}
				if ctx.Err() != nil && !strings.Contains(said.String(), "3 of 4 parts are there; jobs go on; to go on: again") {
					t.Errorf("it does not say how to go on:\n%s", said)
				}
				if way.handed, way.cancel, way.looks = nil, nil, 0; ctx.Err() != nil {
					way.late = []int{1}
				}
				runs, got := squares(4)
				if err := s.Do(t.Context(), runs, sweep.Options{}); err != nil || fmt.Sprint(way.handed) != tt.second {
					t.Fatalf("the second call has handed over %v, %v; want %s", way.handed, err, tt.second)
				}
				for i, square := range got {
					if square == nil || *square != i*i {
						t.Errorf("of run %d has come %v", i, square)
					}
				}
			})
		})
	}
}

// TestDirectoryOfAnother: a directory that is of another sweep, or of none, is not touched, and
// that is said in a line.
func TestDirectoryOfAnother(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, s *Sweep)
		says   string
	}{
		{"other settings", func(_ *testing.T, s *Sweep) { s.Args = append(s.Args, "--seed=2") }, "has parts of 'gridnode square', not of 'gridnode square --seed=2'"},
		{"another build", func(t *testing.T, s *Sweep) {
			if err := os.WriteFile(s.Program, []byte("another"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "that another build of gridnode has made"},
		{"another log", func(t *testing.T, s *Sweep) { s.Inputs = []Input{{Name: "log", From: s.Program}} }, "that have read another "},
		{"another form", func(t *testing.T, s *Sweep) {
			if err := os.WriteFile(filepath.Join(s.Dir, "sweep.json"), []byte(`{"format": 99}`), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "has parts of form 99, not 1: another version"},
		{"no sweep", func(t *testing.T, s *Sweep) {
			if err := os.WriteFile(filepath.Join(s.Dir, "sweep.json"), []byte("notes"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "a sweep.json that is none"},
		{"a part of another", func(t *testing.T, s *Sweep) {
			runs, _ := squares(3)
			if err := (Part{1, 3, "other"}).Do(filepath.Join(s.Dir, "parts", "1.part"))(t.Context(), runs, sweep.Options{}); !errors.Is(err, ErrPart) {
				t.Fatal(err)
			}
		}, "1.part is of another sweep, or of another version: part 1/3@other, not 1/3@"},
		{"a part that is none", func(t *testing.T, s *Sweep) {
			if err := os.WriteFile(filepath.Join(s.Dir, "parts", "2.part"), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "2.part is not what a part leaves"},
		{"nobody is there", func(t *testing.T, s *Sweep) {
			s.Way.(*fake).gone = errors.New("nobody is there")
			if err := os.Remove(filepath.Join(s.Dir, "parts", "0.part")); err != nil {
				t.Fatal(err)
			}
		}, "nobody is there"},
		{"done here only", func(t *testing.T, s *Sweep) {}, "part 0 can be done on this machine only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := &fake{t: t, known: map[int]news{}}
				s, _ := sweepOf(t, t.TempDir(), way)
				runs, _ := squares(3)
				if err := s.Do(t.Context(), runs, sweep.Options{}); err != nil {
					t.Fatal(err)
				}
				way.handed = nil
				tt.change(t, s)
				if runs, _ = squares(3); tt.name == "done here only" {
					runs[0] = sweep.Run{}
				}
				if err := s.Do(t.Context(), runs, sweep.Options{}); err == nil || !strings.Contains(err.Error(), tt.says) || way.handed != nil {
					t.Errorf("%v, handed over %v; want %q", err, way.handed, tt.says)
				}
			})
		})
	}
}

// TestPart: what ParsePart takes is what String gives.
func TestPart(t *testing.T) {
	p := Part{3, 40, "1f2e3d4c5b6a"}
	if got, err := ParsePart(p.String()); err != nil || got != p {
		t.Errorf("%v is read as %v, %v", p, got, err)
	}
	for _, text := range []string{"", "3", "3/40", "40/40@x", "-1/40@x", "x/40@x"} {
		if got, err := ParsePart(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	runs, _ := squares(3)
	if err := p.Do(filepath.Join(t.TempDir(), "x"))(t.Context(), runs, sweep.Options{}); err == nil || !strings.Contains(err.Error(), "has 3 runs") {
		t.Errorf("a part of forty of three: %v", err)
	}
}

// TestElements: how an element of an array stands follows from what Slurm knows and what it has
// left.
func TestElements(t *testing.T) {
	w := &work{dir: t.TempDir()}
	if err := os.Mkdir(w.path("jobs"), 0o755); err != nil {
		t.Fatal(err)
	}
	see := "cat " + w.path("logs", "000001.4")
	for _, tt := range []struct {
		state, left string
		want        news
	}{
		{"PENDING", "", news{see: see}},
		{"RUNNING", "", news{see: see}},
		{"COMPLETING", "0", news{see: see}},
		{"", "0", news{over: true, why: "it has left no file", see: see}},
		{"FAILED", "2", news{over: true, why: "exit code 2", see: see}},
		{"FAILED", "137", news{over: true, killed: true, why: "exit code 137", see: see}},
		{"", "", news{over: true, killed: true, why: "its job has vanished", see: see}},
		{"NODE_FAIL", "", news{over: true, killed: true, why: "its job has vanished node_fail", see: see}},
		{"CANCELLED", "", news{over: true, why: "its job was cancelled", see: see}},
		{"TIMEOUT", "143", news{over: true, why: "the time limit of its job was reached; --part-time says a longer one", see: see}},
	} {
		_ = os.Remove(w.path("jobs", "000001.4"))
		if tt.left != "" {
			if err := os.WriteFile(w.path("jobs", "000001.4"), []byte(tt.left+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.ended(tt.state, "000001.4"); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q, %q: %+v, want %+v", tt.state, tt.left, got, tt.want)
		}
	}
}
