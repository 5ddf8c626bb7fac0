package slurm

import (
	"fmt"
	"strings"
	"testing"
)

// words splits without quotes: the tests have none.
func words(s string) ([]string, error) {
	s, _, _ = strings.Cut(s, " #")
	return strings.Fields(s), nil
}

func translated(text string) *Request {
	return Translate(Script(text, words), func(l Line) string { return fmt.Sprintf("%d: ", l.Number) })
}

func (r *Request) flags() string {
	var all []string
	for _, f := range r.Flags {
		all = append(all, f.Name+"="+f.Value)
	}
	return strings.Join(all, " ")
}

func TestTranslate(t *testing.T) {
	for _, tt := range []struct{ text, flags string }{
		{"#!/bin/bash\n#SBATCH -J sim -N 1 -n4 -c 2\n#SBATCH --time=1-00:00:00\n", "job-name=sim ntasks=4 cpus-per-task=2 time=1-00:00:00"},
		{"#SBATCH --nodes=2 --ntasks-per-node=8 --mem=4G\n", "mem=8G ntasks=16"},
		{"#SBATCH --nodes=2-4\n", "ntasks=2"},
		{"#SBATCH --nodes=1\n", "ntasks=1"},
		{"#SBATCH --ntasks 4\n#SBATCH --ntasks=8\n", "ntasks=8"},
		{"#SBATCH -o out.%j -e err.%j -a 0-9%2 -d afterok:12:13\n", "stdout=out.%j stderr=err.%j array=0-9%2 dependency=afterok:12:13"},
		{"#SBATCH --no-req --hold\n", "no-requeue=true hold=true"},
		{"#SBATCH --gres=none -G 0 -i /dev/null --mem=0 -t UNLIMITED\n", ""},
		{"#SBATCH --gres=gpu:2 -N 2\n", "ntasks=2 gpus=4"},
		{"#SBATCH --gres=gpu:a100:1 --gpus-per-node=a100:1\n", "gpus=a100:1"},
		{"#SBATCH --gres=gpu\n", "gpus=1"},
		{"#SBATCH -G a100:3 -n 2\n", "ntasks=2 gpus=a100:3"},
		{"#SBATCH --gpus-per-task=2 -n 4\n", "ntasks=4 gpus=8"},
		{"#SBATCH --nice\n", "nice=100"},
		{"#SBATCH --nice=7\n", "nice=7"},
		{"#SBATCH --nice=-7\n", ""},
		{"##SBATCH -n 4\n # SBATCH -n 5\n#SBATCHER -n 6\n", ""},
		{"\n\n#SBATCH -n 3\necho\n#SBATCH -n 9\n", "ntasks=3"},
		{"#SBATCH\t-n\t3\r\n", "ntasks=3"},
	} {
		r := translated(tt.text)
		if got := r.flags(); got != tt.flags || len(r.Refused) > 0 {
			t.Errorf("%q: %s, refused %q, want %s", tt.text, got, r.Refused, tt.flags)
		}
	}
}

func TestTranslateListsAllThatCannotBe(t *testing.T) {
	r := translated("#SBATCH --gres=shard:2 -A money\n#SBATCH -w n1 --time\n#SBATCH hetjob\n#SBATCH --ntasks-per=3 -N zero\n#SBATCH -i data stray\n#SBATCH -G a100:many\n")
	want := []string{
		"1: --gres=shard:2: gridnode hands out", "2: -w: which nodes", "2: option '--time' requires an argument", "3: hetjob",
		`4: option '--ntasks-per' is ambiguous`, `5: -i: standard input`, `5: "stray" is not an option`, `6: -G: "a100:many": want GPUs`,
	}
	if len(r.Refused) != len(want) || len(r.Notes) != 1 {
		t.Fatalf("refused %q, notes %q", r.Refused, r.Notes)
	}
	for i := range want {
		if !strings.HasPrefix(r.Refused[i], want[i]) {
			t.Errorf("%q, want %q", r.Refused[i], want[i])
		}
	}
}

// Every option has one entry and, if it does not mean what it says, a reason.
func TestOptionsAreStatedOnce(t *testing.T) {
	long, short := map[string]bool{}, map[byte]bool{}
	for _, o := range batch {
		if long[o.Long] || o.Short != 0 && short[o.Short] {
			t.Errorf("--%s or -%c stands there twice", o.Long, o.Short)
		}
		long[o.Long], short[o.Short] = true, true
		if o.fate != kept && o.why == "" {
			t.Errorf("--%s: no reason", o.Long)
		}
	}
}
