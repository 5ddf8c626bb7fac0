package papers

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/reproduce/gridfederation"
	"gridnode/testnet/sweep"
	"gridnode/testnet/sweep/away"
)

// TestFind: an unknown name is answered with the known ones.
func TestFind(t *testing.T) {
	if _, err := Find("nothing"); !errors.Is(err, reproduce.ErrConfig) || !strings.Contains(err.Error(), gridfederation.Paper.Name) {
		t.Errorf("error %v, want one that names the papers", err)
	}
}

// TestElsewhere: a report is the same when other processes have made the runs.
func TestElsewhere(t *testing.T) {
	for _, p := range All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("it makes each evaluation twice")
			}
			o := reproduce.DefaultOptions()
			o.Windows, o.Quick, o.Sizes, o.Jobs = 1, true, []int{2}, 10
			if p.Name == "co-allocation" || p.Name == "delegated-matchmaking" {
				o.Sizes = []int{40}
			}
			here, err := reproduce.Reproduce(t.Context(), p, o)
			if err != nil {
				t.Fatal(err)
			}
			o.Away = func(ctx context.Context, runs []sweep.Run, _ sweep.Options) error {
				return others(ctx, t, p, o, len(runs), func(i int, path string, part away.Part) error { return part.Take(path, &runs[i]) })
			}
			there, err := reproduce.Reproduce(t.Context(), p, o)
			if err != nil {
				t.Fatal(err)
			}
			here.WallSeconds, there.WallSeconds = 0, 0
			var texts [2]strings.Builder
			for i, r := range []*reproduce.Report{here, there} {
				if err := errors.Join(r.Write(&texts[i], "json"), r.Write(&texts[i], "table")); err != nil {
					t.Fatal(err)
				}
			}
			if texts[0].String() != texts[1].String() || !reflect.DeepEqual(here.Score, there.Score) {
				t.Errorf("elsewhere the report is\n%s\nhere\n%s", &texts[1], &texts[0])
			}
		})
	}
}

// others makes each run of an evaluation as another process does, and has take read what it leaves.
func others(ctx context.Context, t *testing.T, p reproduce.Paper, o reproduce.Options, runs int, take func(i int, path string, part away.Part) error) error {
	dir := t.TempDir()
	o.Away = func(ctx context.Context, all []sweep.Run, o sweep.Options) error {
		for i := range all {
			part, path := away.Part{Run: i, Runs: runs}, filepath.Join(dir, "part")
			if err := part.Do(path)(ctx, all, o); !errors.Is(err, away.ErrPart) {
				return err
			}
			if err := take(i, path, part); err != nil {
				return err
			}
		}
		return away.ErrPart
	}
	if _, err := reproduce.Reproduce(ctx, p, o); !errors.Is(err, away.ErrPart) {
		return err
	}
	return nil
}
