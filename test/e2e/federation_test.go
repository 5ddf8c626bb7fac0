package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// verdict is a line of why and submit --dry-run.
type verdict struct {
	SiteName string  `json:"siteName"`
	Price    float64 `json:"price"`
	Cost     float64 `json:"cost"`
	Finish   string  `json:"finish"`
	Outcome  string  `json:"outcome"`
}

type explanation struct {
	Feasible bool      `json:"feasible"`
	Verdicts []verdict `json:"verdicts"`
	Fastest  *verdict  `json:"fastest"`
	Cheapest *verdict  `json:"cheapest"`
}

func (e *explanation) of(site string) *verdict {
	for i := range e.Verdicts {
		if e.Verdicts[i].SiteName == site {
			return &e.Verdicts[i]
		}
	}
	return &verdict{}
}

// Three daemons, three processes: one is dear, one cheap, one fast.
func TestThreeDaemons(t *testing.T) {
	t.Parallel()
	sites := federation(t, []string{"dear", "cheap", "fast"}, map[string][]string{
		"dear":  {"--price", "5", "--processors", "4"},
		"cheap": {"--price", "1", "--processors", "4", "--foreign", "allow"},
		"fast":  {"--price", "4.5", "--processors", "4", "--speed", "3000", "--foreign", "allow"},
	})
	dear, cheap, fast := sites[0], sites[1], sites[2]
	step := func(name string, do func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			for _, s := range sites {
				s.TB = t // what goes wrong now is this step's
			}
			do(t)
		})
		for _, s := range sites {
			s.TB = t
		}
	}

	step("cheapest", func(t *testing.T) {
		r := dear.code(7, "submit", "--policy", "cheapest", "--budget", "10", "--deadline", "1h", "-W", "--",
			"sh", "-c", "hostname; echo $GRIDNODE_SITE; exit 7")
		id := r.job()
		host, _ := os.Hostname()
		if out := dear.ok("logs", id); out != host+"\ncheap\n" || r.stdout != out {
			t.Errorf("logs print %q, submit %q, want the host's name and cheap", out, r.stdout)
		}
		if j := dear.status(id[:10]); j.State != "failed" || j.SiteName != "cheap" || j.ExitCode == nil || *j.ExitCode != 7 || j.Cost > 10 {
			t.Errorf("status: %+v, want it failed at cheap with exit code 7", j)
		}
		if !strings.Contains(r.stderr, "failed at cheap") {
			t.Errorf("stderr %q does not say how it ended", r.stderr)
		}
	})
	step("fastest", func(t *testing.T) {
		id := strings.TrimSpace(dear.ok("submit", "--policy", "fastest", "-W", "-q", "--", "sh", "-c", "echo $GRIDNODE_SITE; echo oops >&2"))
		if out := dear.ok("logs", id); out != "fast\n" {
			t.Errorf("it ran at %q, want fast", out)
		}
		if out := dear.ok("logs", "--stderr", id); out != "oops\n" {
			t.Errorf("stderr holds %q", out)
		}
	})
	step("named site", func(t *testing.T) {
		id := strings.TrimSpace(dear.ok("submit", "--site", "fast", "-q", "-W", "--", "true"))
		if j := dear.status(id); j.SiteName != "fast" {
			t.Errorf("%+v, want it at fast", j)
		}
		dear.code(4, "submit", "--site", "nowhere", "--", "true")
	})
	step("quotes", func(t *testing.T) { testQuotes(t, dear) })
	step("scripts", func(t *testing.T) { testScripts(t, dear) })
	step("explains", func(t *testing.T) { testExplains(t, dear) })
	step("refuses", func(t *testing.T) { testRefuses(t, dear) })
	step("array", func(t *testing.T) { testArray(t, dear) })
	step("cancel", func(t *testing.T) { testCancel(t, dear, cheap) })
	step("executing daemon is killed", func(t *testing.T) { testKillExecuting(t, dear, cheap) })
	step("origin daemon is killed", func(t *testing.T) { testKillOrigin(t, dear) })
	step("foreign is denied", func(t *testing.T) {
		cheap.code(0, "stop")
		_ = cheap.daemon.Wait()
		cheap.start("--foreign", "deny")
		cheap.sees(3)
		dear.sees(3)
		id := strings.TrimSpace(dear.ok("submit", "--policy", "cheapest", "-q", "-W", "--", "true"))
		if j := dear.status(id); j.SiteName != "fast" {
			t.Errorf("%+v, want it at fast", j)
		}
		var why explanation
		dear.json(&why, "why", id)
		if o := why.of("cheap").Outcome; o != "foreign-refused" && o != "refused" {
			t.Errorf("cheap's verdict is %q, want foreign-refused", o)
		}
		dear.code(5, "submit", "--site", "cheap", "--", "true")
	})
	step("stop", func(t *testing.T) {
		fast.ok("stop")
		if err := fast.daemon.Wait(); err != nil {
			t.Errorf("the stopped daemon: %v, want exit code 0", err)
		}
		fast.daemon = nil
		fast.code(3, "status")
	})
}

// quotes answers ranges, cheapest first unless asked otherwise; sites and peers list
// everybody.
func testQuotes(t *testing.T, dear *site) {
	for _, tt := range []struct{ flags, want string }{
		{"", "cheap fast dear"},
		{"--max-price 4.5", "cheap fast"},
		{"--max-price 4.499999", "cheap"},
		{"--max-price 0", ""},
		{"--min-speed 3000", "fast"},
		{"--sort speed --limit 1", "fast"},
		{"--cpus 4", "cheap fast dear"},
		{"--cpus 5", ""},
		{"--free 1 --max-price 1 --min-speed 1000", "cheap"},
	} {
		got := strings.Fields(dear.ok(append([]string{"quotes", "-o", "name"}, strings.Fields(tt.flags)...)...))
		if strings.Join(got, " ") != tt.want {
			t.Errorf("quotes %s: %q, want %s", tt.flags, got, tt.want)
		}
	}
	if got := strings.Fields(dear.ok("sites", "-o", "name")); strings.Join(got, " ") != "cheap dear fast" {
		t.Errorf("sites: %q", got)
	}
	if peers := strings.Fields(dear.ok("peers", "-o", "name")); len(peers) != 2 {
		t.Errorf("peers: %q, want two", peers)
	}
	if self := strings.TrimSpace(dear.ok("peers", "--self", "-o", "name")); self != dear.addr {
		t.Errorf("peers --self: %q, want %s", self, dear.addr)
	}
}

// A script travels with its job; its options count, the command line's before them.
func testScripts(t *testing.T, dear *site) {
	path := filepath.Join(t.TempDir(), "job.sh")
	text := "#!/bin/sh\n#SBATCH -n 2 -J from-slurm --partition=debug\n#GRID --policy fastest --time 1:00\n" +
		"echo $GRIDNODE_SITE $GRIDNODE_NTASKS $0 $1 $MODE\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := dear.code(0, "submit", "-W", "-n", "3", "-e", "MODE=quick", path, "word")
	id := r.job()
	if out := dear.ok("logs", id); out != "fast 3 job.sh word quick\n" {
		t.Errorf("the script wrote %q", out)
	}
	if !strings.Contains(r.stderr, "--partition debug is left out: no site is called so") {
		t.Errorf("stderr %q does not warn", r.stderr)
	}
	if j := dear.status(id); j.Name != "from-slurm" {
		t.Errorf("%+v, want its name from the script", j)
	}
	r = dear.runIn("line\n", "submit", "-W", "--policy", "fastest", "-n", "2", "--", "sh", "-c", "read x; echo $GRIDNODE_SITE $GRIDNODE_RANK $x")
	out := strings.Split(strings.TrimSpace(dear.ok("logs", r.job())), "\n")
	if slices.Sort(out); !slices.Equal(out, []string{"fast 0 line", "fast 1 line"}) {
		t.Errorf("two tasks wrote %q", out)
	}
	r = dear.runIn("#!/bin/sh\npwd; echo $HOME\n", "submit", "-W", "-D", "/", "--export", "HOME", "-")
	if out := dear.ok("logs", r.job()); r.code != 0 || out != "/\n"+dear.home+"\n" {
		t.Errorf("from standard input: %v; it wrote %q", r, out)
	}
}

// dry-run and why list every site with price, estimated finish and verdict.
func testExplains(t *testing.T, dear *site) {
	var preview explanation
	dear.json(&preview, "submit", "--dry-run", "--policy", "cheapest", "--budget", "10", "--deadline", "1h", "--", "true")
	if len(preview.Verdicts) != 3 || !preview.Feasible {
		t.Fatalf("dry run: %+v, want three sites", preview)
	}
	for name, price := range map[string]float64{"dear": 5, "cheap": 1, "fast": 4.5} {
		v := preview.of(name)
		want := "candidate"
		if name == "cheap" {
			want = "chosen"
		}
		if v.Price != price || v.Finish == "" || v.Cost <= 0 || v.Outcome != want {
			t.Errorf("dry run of %s: %+v, want price %v, a finish and verdict %s", name, v, price, want)
		}
	}
	id := strings.TrimSpace(dear.ok("submit", "--policy", "cheapest", "-q", "-W", "--", "true"))
	var why explanation
	dear.json(&why, "why", id)
	for _, name := range []string{"dear", "cheap", "fast"} {
		if v := why.of(name); v.Price == 0 || v.Finish == "" || v.Outcome == "" {
			t.Errorf("why about %s: %+v, want price, finish and verdict", name, v)
		}
	}
	table := dear.ok("why", id)
	for _, word := range []string{"PRICE", "FINISH", "VERDICT", "dear", "cheap", "fast", "chosen"} {
		if !strings.Contains(table, word) {
			t.Errorf("why prints no %s:\n%s", word, table)
		}
	}
	var jobs []job
	dear.json(&jobs, "status", "--all")
	before := len(jobs)
	dear.ok("submit", "--dry-run", "--", "true")
	jobs = nil
	dear.json(&jobs, "status", "--all")
	if len(jobs) != before {
		t.Errorf("a dry run left %d jobs behind", len(jobs)-before)
	}
}

// A budget or deadline that nothing meets: exit code 5, with the best to be had.
func testRefuses(t *testing.T, dear *site) {
	for _, bound := range [][]string{{"--budget", "0.001"}, {"--deadline", "1s"}} {
		flags := append([]string{"submit", "--time", "1h"}, bound...)
		r := dear.code(5, append(flags, "--", "true")...)
		for _, text := range []string{"refused", "the earliest finish is", "at fast for 1.5 credits", "the lowest cost is 1 credits at cheap"} {
			if !strings.Contains(r.stderr, text) {
				t.Errorf("%v: %q does not say %q", bound, r.stderr, text)
			}
		}
		var why explanation
		dear.json(&why, "why", strings.TrimSpace(r.stdout))
		if why.Feasible || len(why.Verdicts) != 3 || why.Fastest == nil || why.Fastest.SiteName != "fast" || why.Cheapest == nil || why.Cheapest.SiteName != "cheap" {
			t.Errorf("%v: why says %+v", bound, why)
		}
		dry := dear.code(5, append(append(slices.Clone(flags), "--dry-run"), "--", "true")...)
		if !strings.Contains(dry.stderr, "the lowest cost is 1 credits at cheap") || !strings.Contains(dry.stdout, "VERDICT") {
			t.Errorf("%v, dry run: %v", bound, dry)
		}
	}
	if r := dear.code(5, "submit", "-n", "5", "--deadline", "1h", "--", "true"); !strings.Contains(r.stderr, "refused") {
		t.Errorf("a job wider than any site: %v", r)
	}
	if r := dear.code(5, "submit", "-n", "5", "--", "true"); !strings.Contains(r.stderr, "refused") {
		t.Errorf("a job wider than this site: %v", r)
	}
}

func testArray(t *testing.T, dear *site) {
	const n = 50
	r := dear.code(0, "submit", "-J", "many", "-W", "--policy", "fastest", "-a", fmt.Sprintf("0-%d", n-1), "--", "sh", "-c", "echo $GRIDNODE_ARRAY_TASK_ID")
	ids := strings.Fields(r.stdout)
	if len(ids) != n {
		t.Fatalf("%d IDs, want %d", len(ids), n)
	}
	for _, i := range []int{0, 7, n - 1} {
		if out := dear.ok("logs", ids[i]); out != fmt.Sprintf("%d\n", i) {
			t.Errorf("job %d wrote %q", i, out)
		}
	}
	if names := strings.Fields(dear.ok("status", "-n", "many", "-t", "CD", "-o", "name")); len(names) != n {
		t.Errorf("%d jobs of the array are done, want %d", len(names), n)
	}
	r = dear.code(9, "submit", "-W", "-a", "1,9,3", "--", "sh", "-c", "exit $GRIDNODE_ARRAY_TASK_ID")
	if !strings.Contains(r.stderr, "3 failed") {
		t.Errorf("stderr %q does not count the failures", r.stderr)
	}
}

func testCancel(t *testing.T, dear, cheap *site) {
	begun, never := newGate(t), newGate(t)
	id := strings.TrimSpace(dear.ok("submit", "-J", "long", "--site", "cheap", "--", "sh", "-c",
		fmt.Sprintf("echo begun > %s; read x < %s", begun, never)))
	begun.await(t)
	if r := dear.code(124, "wait", "--timeout", "10ms", id); !strings.Contains(r.stderr, "not over") {
		t.Errorf("wait: %v", r)
	}
	if r := cheap.code(5, "cancel", id); !strings.Contains(r.stderr, dear.id) {
		t.Errorf("cancelling another site's job: %v, want its home named", r)
	}
	dear.ok("cancel", "--name", "long", "--reason", "enough")
	if r := dear.run("wait", "--timeout", waitMost, id); r.code == 0 || r.code == 124 {
		t.Errorf("wait for the cancelled job: %v, want its code", r)
	}
	if j := dear.status(id); j.State != "cancelled" || !strings.Contains(j.Reason, "enough") {
		t.Errorf("%+v, want it cancelled with the reason", j)
	}
	// Its processors are free again: a job as wide as the site runs.
	cheap.ok("submit", "-n", "4", "-W", "--", "true")
	dear.code(4, "cancel", "zzzzzzzz")
}

// gatedJob submits a job that says that it has begun, waits, says that it ends, and
// exits with 3. It also leaves a line in the file starts, so that running twice shows.
type gatedJob struct {
	id                   string
	begun, release, over gate
	starts               string
}

func submitGated(t *testing.T, at *site, flags ...string) gatedJob {
	g := gatedJob{begun: newGate(t), release: newGate(t), over: newGate(t), starts: filepath.Join(t.TempDir(), "starts")}
	open(t, filepath.Dir(g.starts), 0o777)
	line := fmt.Sprintf("echo started >> %s; echo first; echo begun > %s; read x < %s; echo last; echo over > %s; exit 3", g.starts, g.begun, g.release, g.over)
	g.id = strings.TrimSpace(at.ok(append(append([]string{"submit"}, flags...), "--", "sh", "-c", line)...))
	g.begun.await(t)
	return g
}

// check waits for the job at its home and looks at what is left of it.
func (g *gatedJob) check(t *testing.T, home *site, where string) {
	t.Helper()
	if r := home.run("wait", "--timeout", waitMost, g.id); r.code != 3 {
		t.Fatalf("wait %s: want exit code 3, got %v%s", g.id, r, home.logTail())
	}
	if j := home.status(g.id); j.State != "failed" || j.SiteName != where || j.Epoch != 1 {
		t.Errorf("%+v, want it failed at %s in its first execution", j, where)
	}
	if out := home.ok("logs", g.id); out != "first\nlast\n" {
		t.Errorf("logs print %q", out)
	}
	if text, err := os.ReadFile(g.starts); err != nil || string(text) != "started\n" {
		t.Errorf("the job left %q, %v, want that it started once", text, err)
	}
}

// kill -9 of the executing daemon: jobs go on under their shim and are taken up
// again at the restart; the result is delivered.
func testKillExecuting(t *testing.T, dear, cheap *site) {
	endsMeanwhile := submitGated(t, dear, "--site", "cheap")
	endsLater := submitGated(t, dear, "--site", "cheap")
	cheap.kill()
	endsMeanwhile.release.open(t)
	endsMeanwhile.over.await(t)
	cheap.start()
	endsLater.release.open(t)
	endsLater.over.await(t)
	endsMeanwhile.check(t, dear, "cheap")
	endsLater.check(t, dear, "cheap")
}

// kill -9 of the origin: after the restart its jobs are there and results arrive.
func testKillOrigin(t *testing.T, dear *site) {
	elsewhere := submitGated(t, dear, "--site", "cheap")
	here := submitGated(t, dear, "--policy", "local")
	dear.kill()
	elsewhere.release.open(t)
	elsewhere.over.await(t)
	dear.start()
	if j := dear.status(here.id); j.State != "running" {
		t.Errorf("%+v, want it running still", j)
	}
	here.release.open(t)
	here.over.await(t)
	elsewhere.check(t, dear, "cheap")
	here.check(t, dear, "dear")
	dear.sees(3)
}

// logs -f prints what comes, while the job runs elsewhere, and ends with it.
func TestLogsFollow(t *testing.T) {
	t.Parallel()
	sites := federation(t, []string{"home", "away"}, map[string][]string{"away": {"--foreign", "allow"}})
	home := sites[0]
	g := submitGated(t, home, "--site", "away")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := home.command(ctx, "logs", "-f", g.id)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); line != "first\n" {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	g.release.open(t)
	g.over.await(t)
	if line, err := lines.ReadString('\n'); line != "last\n" {
		t.Errorf("the last line is %q, %v", line, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("logs -f: %v", err)
	}
	if out := home.ok("logs", "--tail", "1", g.id); out != "last\n" {
		t.Errorf("logs --tail 1 prints %q", out)
	}
}

// status --watch prints a job that is there and every change until it is over.
func TestStatusWatch(t *testing.T) {
	t.Parallel()
	s := newSite(t, "watched").start()
	g := submitGated(t, s, "-J", "seen")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := s.command(ctx, "status", "--watch", "-n", "seen", "-o", "csv", "--no-headers")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), g.id+",1,seen,") || !strings.Contains(lines.Text(), ",running,") {
		t.Fatalf("the first line is %q, %v", lines.Text(), lines.Err())
	}
	g.release.open(t)
	g.over.await(t)
	for lines.Scan() && !strings.Contains(lines.Text(), ",failed,") {
	}
	if !strings.Contains(lines.Text(), ",failed,") {
		t.Errorf("the last line is %q, %v, want the job's end", lines.Text(), lines.Err())
	}
	cancel()
	_ = cmd.Wait() // it was killed
}
