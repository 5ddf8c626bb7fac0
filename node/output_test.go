package node

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/p2p"
	"gridnode/node/run"
	"gridnode/node/site"
)

// writeOutput puts files where a task of a job of home would have written them.
func writeOutput(t *testing.T, h *Host, home grid.SiteID, task grid.TaskID, stdout, stderr string) string {
	t.Helper()
	base := h.files.Task(home, task)
	if err := os.MkdirAll(filepath.Dir(base), 0o700); err != nil {
		t.Fatal(err)
	}
	for stream, text := range map[run.Stream]string{run.Stdout: stdout, run.Stderr: stderr} {
		if err := os.WriteFile(base+stream.Suffix(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// TestOutputThatNothingWasWrittenTo: of a job that has printed to one output, and is over, the other
// one is empty; it is not gone.
func TestOutputThatNothingWasWrittenTo(t *testing.T) {
	h := team(t, 1)[0]
	for i, script := range []string{"echo out", "echo err >&2"} {
		job := shellJob(h, uint64(i+1), script)
		job.Goal = grid.GoalLocal
		if _, err := submitTo(h, job); err != nil {
			t.Fatal(err)
		}
		awaitState(t, h, job.ID, site.Done)
		for _, stream := range []run.Stream{run.Stdout, run.Stderr} {
			want := ""
			if int(stream-run.Stdout) == i {
				want = script[5:8] + "\n"
			}
			if got := output(t, h, job.ID, stream); got != want {
				t.Errorf("%s: %s is %q, want %q", script, stream, got, want)
			}
		}
	}
}

// TestOutputIsAppendedOnce: if standard error cannot be had, or put where it is wanted, what is
// there of standard output stays as it is when both are tried again.
func TestOutputIsAppendedOnce(t *testing.T) {
	h := team(t, 1)[0]
	dir := t.TempDir()
	out, errs := filepath.Join(dir, "out"), filepath.Join(dir, "later", "err")
	if err := os.WriteFile(out, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := shellJob(h, 1, "echo out; echo err >&2")
	job.Goal, job.Command.Output, job.Command.Error, job.Command.Append = grid.GoalLocal, out, errs, true
	if _, err := submitTo(h, job); err != nil {
		t.Fatal(err)
	}
	v := awaitState(t, h, job.ID, site.Done)
	AwaitOutputs(t.Context(), h, []grid.JobID{job.ID}) // which fails, as a folder is not there
	if err := os.WriteFile(out, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := deposit{job: job}
	if err := h.deposit.put(&one, &v); err == nil {
		t.Fatal("there is a file in a folder that is not")
	}
	if err := os.Mkdir(filepath.Dir(errs), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.deposit.put(&one, &v); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{out: "before\nout\n", errs: "err\n"} {
		if b, err := os.ReadFile(path); string(b) != want {
			t.Errorf("%s has %q, want %q; %v", path, b, want, err)
		}
	}

	pipe := filepath.Join(dir, "pipe") // that nobody reads
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.copyOutput(t.Context(), job.ID, run.Stdout, pipe, false) }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("something was written to a pipe that nobody reads")
		}
	case <-time.After(patience):
		t.Error("a pipe that nobody reads is waited for")
	}
}

// TestOutputIsAppendedOnceAfterACrash: of what an earlier daemon was appending to a file the rest is
// appended, and nothing if all is there; if others have written there since, all of it is. What was
// appended before is left alone.
func TestOutputIsAppendedOnceAfterACrash(t *testing.T) {
	h := team(t, 1)[0]
	out := filepath.Join(t.TempDir(), "out")
	job := shellJob(h, 1, "echo first; echo second")
	job.Goal, job.Command.Output, job.Command.Append = grid.GoalLocal, out, true
	submitJob(t, h, job)
	awaitState(t, h, job.ID, site.Done)
	AwaitOutputs(t.Context(), h, []grid.JobID{job.ID})
	until(t, "it is settled", func() bool { return !h.streams.begun(job.ID) })
	const all, from = "first\nsecond\n", int64(len("before\n"))
	for _, tt := range []struct {
		name        string
		noted       appended // nil: there is no mark
		there, want string   // behind what was there before
	}{
		{"appended before", nil, "", ""},
		{"begun when the job began", appended{}, "", all},
		{"nothing of it", appended{"stdout": from}, "", all},
		{"a part", appended{"stdout": from}, all[:8], all},
		{"all, not noted", appended{"stdout": from}, all, all},
		{"all, and what others wrote", appended{"stdout": from}, all + "other\n", all + "other\n"},
		{"all, noted", appended{"stdout": appendedAll}, "other\n" + all, "other\n" + all},
		{"what others wrote", appended{"stdout": from}, "other\n", "other\n" + all},
		{"emptied by its owner", appended{"stdout": from + 100}, "", all},
	} {
		if err := os.WriteFile(out, []byte("before\n"+tt.there), 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.noted != nil {
			if err := h.streams.noteAppended(job.ID, tt.noted); err != nil {
				t.Fatal(err)
			}
		}
		h.deposit.recover()
		AwaitOutputs(t.Context(), h, []grid.JobID{job.ID})
		until(t, "it is settled", func() bool { return !h.streams.begun(job.ID) })
		if text, err := os.ReadFile(out); string(text) != "before\n"+tt.want {
			t.Errorf("%s: the file has %q, want %q; %v", tt.name, text, "before\n"+tt.want, err)
		}
	}
}

// TestBroughtLaterForWantOfDescriptors: what cannot be put where it is wanted as no file can be opened any
// more comes later; for other reasons it has failed.
func TestBroughtLaterForWantOfDescriptors(t *testing.T) {
	h := team(t, 1)[0]
	for i, tt := range []struct {
		errno syscall.Errno
		later bool
	}{{syscall.EMFILE, true}, {syscall.ENFILE, true}, {syscall.ENOTDIR, false}} {
		err := fmt.Errorf("output: %w", &os.PathError{Op: "open", Path: "there", Err: tt.errno})
		if stays(err) == tt.later {
			t.Errorf("%v: it stays so: %v", err, stays(err))
		}
		job := grid.JobID{Hi: 9, Lo: uint64(i)}
		if h.filer.home.came(job, &Brought{}, err); h.filer.home.settled(job) == tt.later {
			t.Errorf("%v: files have failed: %v", err, h.filer.home.settled(job))
		}
	}
}

// askOutput makes one request and returns what came, and how it ended.
func askOutput(t *testing.T, from, at *Host, request *wirepb.OutputRequest) (stdout, stderr string, end outputEnd) {
	t.Helper()
	s, err := from.net.Open(t.Context(), at.ID(), outputProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := ask(s, request); err != nil {
		t.Fatal(err)
	}
	var got [3]string
	end, _, err = receive(s, bufio.NewReader(s), func(stream run.Stream, data []byte) error { got[stream] += string(data); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return got[run.Stdout], got[run.Stderr], end
}

func TestOnlyTheHomeSeesTheOutputOfItsJob(t *testing.T) {
	homes := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		memory := &p2p.Memory{}
		var list []*Host
		for i, home := range homes {
			cfg := hostConfig(byte(i), home, memory, &timers{})
			for _, other := range list {
				cfg.Join = append(cfg.Join, other.Addrs()...)
			}
			list = append(list, startHost(t, cfg))
			defer closeHost(t, list[i])
		}
		time.Sleep(time.Second)
		runs, home, other := list[0], list[1], list[2]
		task := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 3}
		long := strings.Repeat("line\n", outputChunk) // several chunks
		base := writeOutput(t, runs, home.ID(), task, long, "trouble")
		id := task.Job.Bytes()
		request := &wirepb.OutputRequest{Job: id[:], Epoch: task.Epoch}

		stdout, stderr, end := askOutput(t, home, runs, request)
		if stdout != long || stderr != "trouble" || end != outputWhole {
			t.Errorf("home got %d and %d bytes, end %d", len(stdout), len(stderr), end)
		}
		part := proto.CloneOf(request)
		part.Stream, part.Offset = uint32(run.Stderr), 3
		if stdout, stderr, _ := askOutput(t, home, runs, part); stdout != "" || stderr != "uble" {
			t.Errorf("from byte 3 of stderr: %q, %q", stdout, stderr)
		}
		// Another site asks, then says that it has everything: nothing happens.
		receipt := proto.CloneOf(request)
		receipt.Received = true
		if stdout, stderr, end := askOutput(t, other, runs, request); stdout+stderr != "" || end != outputUnknown {
			t.Errorf("another site got %d bytes, end %d", len(stdout+stderr), end)
		}
		askOutput(t, other, runs, receipt)
		if !exists(base + run.Stdout.Suffix()) {
			t.Error("another site had the output removed")
		}
		askOutput(t, home, runs, receipt)
		if exists(base+run.Stdout.Suffix()) || exists(base+run.Stderr.Suffix()) {
			t.Error("the output is kept although its home has it")
		}
		if _, _, end := askOutput(t, home, runs, request); end != outputUnknown {
			t.Errorf("asked again: end %d, want that it is unknown", end)
		}
	})
}

// TestOutputOverConnectionsThatBreak: an output of another site is read to its end, each byte once, though
// connections break before anything came or amid it; and not for ever.
func TestOutputOverConnectionsThatBreak(t *testing.T) {
	homes := []string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		runs, home := twoHosts(t, homes)
		defer closeHost(t, runs)
		defer closeHost(t, home)
		time.Sleep(time.Second)
		task := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 1}
		writeOutput(t, runs, home.ID(), task, "first and last", "")
		const always = 1 << 20
		for _, tt := range []struct {
			name   string
			breaks int    // so many streams
			first  string // what comes over the first of them
			whole  bool
		}{
			{"none", 0, "", true},
			{"at once", 3, "", true},
			{"amid it", 2, "first", true},
			{"always", always, "first", false},
		} {
			streams := 0
			runs.net.Handle(outputProtocol, func(from grid.SiteID, s network.Stream) error {
				if streams++; streams > tt.breaks {
					return runs.serveOutput(from, s)
				}
				if _, err := readRequest(bufio.NewReader(s)); err != nil {
					return err
				}
				if streams == 1 && tt.first != "" {
					if err := wire.WriteProto(s, &wirepb.OutputChunk{Stream: uint32(run.Stdout), Data: []byte(tt.first)}); err != nil {
						return err
					}
					time.Sleep(time.Second) // it is read before the stream is reset
				}
				return errors.New("broken")
			})
			began := time.Now()
			var text []byte
			source, err := home.openRemote(t.Context(), runs.ID(), task, run.Stdout, false)
			if err == nil {
				text, err = io.ReadAll(source)
				source.Close()
			}
			if tt.whole && (err != nil || string(text) != "first and last") {
				t.Errorf("%s: it reads %q, %v", tt.name, text, err)
			}
			if span := time.Since(began); !tt.whole && (err == nil || span < remoteAgain || span > 2*remoteAgain) {
				t.Errorf("%s: after %v it reads %q, %v, want an error after %v", tt.name, span, text, err, remoteAgain)
			}
		}
	})
}

func TestMalformedRequestForOutput(t *testing.T) {
	homes := []string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		good, bad := twoHosts(t, homes)
		defer closeHost(t, good)
		defer closeHost(t, bad)
		time.Sleep(time.Second)
		framed := func(m proto.Message) []byte {
			var b bytes.Buffer
			if err := wire.WriteProto(&b, m); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
		id := make([]byte, 16)
		cases := [][]byte{
			{5, 1, 2, 3, 4, 5},
			binary.AppendUvarint(nil, wire.FrameMax+1),
			{0},
			framed(&wirepb.OutputRequest{Job: id[:15], Epoch: 1}),
			framed(&wirepb.OutputRequest{Job: id, Epoch: 1, Stream: 3}),
			framed(&wirepb.OutputRequest{Job: id, Epoch: 1, Offset: -1}),
			framed(&wirepb.OutputRequest{Job: id, Epoch: 1})[:4],
		}
		for i, bytes := range cases {
			s, err := bad.net.Open(t.Context(), good.ID(), outputProtocol)
			if err != nil {
				t.Fatal(err)
			}
			s.Write(bytes)
			s.CloseWrite()
			if _, err := io.ReadAll(s); err == nil {
				t.Errorf("case %d: the stream was not reset", i)
			}
			synctest.Wait()
			if c := good.Counter(); c.Malformed != int64(i+1) {
				t.Errorf("case %d: %d malformed counted, want %d", i, c.Malformed, i+1)
			}
		}
	})
}

// TestLostExecutionsAreForgotten: what executions that were lost have left goes from their sites, though
// these were down when the job was placed anew, and home was started again since; what another execution
// has left stays.
func TestLostExecutionsAreForgotten(t *testing.T) {
	homes := []string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		memory := &p2p.Memory{}
		runsConfig := hostConfig(0, homes[0], memory, &timers{})
		runsConfig.Listen = []string{"/ip4/127.0.0.1/tcp/7"}
		runs := startHost(t, runsConfig)
		cfg := hostConfig(1, homes[1], memory, &timers{})
		cfg.Join = runs.Addrs()
		home := startHost(t, cfg)
		job := grid.JobID{Hi: 1, Lo: 2}
		results := func(job grid.JobID, epoch uint32) string {
			return runs.files.Task(home.ID(), grid.TaskID{Job: job, Epoch: epoch}) + run.ResultsSuffix
		}
		for epoch := range uint32(3) {
			writeOutput(t, runs, home.ID(), grid.TaskID{Job: job, Epoch: epoch + 1}, "out", "")
			if err := os.Mkdir(results(job, epoch+1), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		closeHost(t, runs)
		home.fetch.note([]grid.Event{{Kind: grid.JobReplaced, Job: &grid.Job{ID: job, Home: home.ID(), Command: &grid.Command{}}, Epoch: 2, Site: runs.ID()}})
		time.Sleep(time.Minute)
		closeHost(t, home)
		home = startHost(t, cfg)
		defer closeHost(t, home)
		runs = startHost(t, runsConfig)
		defer closeHost(t, runs)
		time.Sleep(2 * fetchAgainMax)
		for epoch, want := range []bool{1: false, 2: false, 3: true} {
			if got := epoch > 0 && exists(results(job, uint32(epoch))); got != want {
				t.Errorf("files of execution %d are there: %t, want %t", epoch, got, want)
			}
			task := grid.TaskID{Job: job, Epoch: uint32(epoch)}
			if got := epoch > 0 && exists(runs.files.Task(home.ID(), task)+run.Stdout.Suffix()); got != want {
				t.Errorf("output of execution %d is there: %t, want %t", epoch, got, want)
			}
		}
		if home.files.HasFetched(job) || len(home.files.Lost()) > 0 {
			t.Errorf("home has fetched it: %t, and has noted as lost %v", home.files.HasFetched(job), home.files.Lost())
		}
	})
}

func TestOutputIsFetchedWhenTheSiteIsBack(t *testing.T) {
	homes := []string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		memory := &p2p.Memory{}
		runsConfig := hostConfig(0, homes[0], memory, &timers{})
		runsConfig.Listen = []string{"/ip4/127.0.0.1/tcp/7"}
		runs := startHost(t, runsConfig)
		cfg := hostConfig(1, homes[1], memory, &timers{})
		cfg.Join = runs.Addrs()
		home := startHost(t, cfg)
		defer closeHost(t, home)
		task := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 1}
		lost := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 3}, Epoch: 1}
		writeOutput(t, runs, home.ID(), task, "out", "")
		closeHost(t, runs)
		home.fetch.add(runs.ID(), fetch{task: task, ended: time.Now()})
		home.fetch.add(runs.ID(), fetch{task: lost, ended: time.Now()})
		time.Sleep(10 * time.Minute)
		if home.files.HasFetched(task.Job) || home.files.HasFetched(lost.Job) {
			t.Fatal("fetched from a site that is down")
		}
		runs = startHost(t, runsConfig)
		defer closeHost(t, runs)
		time.Sleep(2 * fetchAgainMax)
		base := home.files.Fetched(task.Job)
		if out, err := os.ReadFile(base + run.Stdout.Suffix()); string(out) != "out" {
			t.Errorf("fetched %q, %v", out, err)
		}
		if exists(base + run.Stderr.Suffix()) {
			t.Error("a file was made for what was not written")
		}
		if exists(runs.files.Task(home.ID(), task) + run.Stdout.Suffix()) {
			t.Error("the executing site keeps what was fetched")
		}
		if _, err := home.files.OpenFetched(lost.Job, run.Stdout, 0); !errors.Is(err, run.ErrOutputGone) {
			t.Errorf("output that nobody has: %v, want ErrOutputGone", err)
		}

		// The answer to a receipt was lost: the site has forgotten what is here.
		home.fetch.add(runs.ID(), fetch{task: task, ended: time.Now()})
		time.Sleep(fetchAgainMax)
		if out, err := home.files.OpenFetched(task.Job, run.Stdout, 0); err != nil {
			t.Errorf("after a second receipt: %v", err)
		} else {
			out.Close()
		}
	})
}

// twoHosts starts two hosts, of which the second joins the first.
func twoHosts(t *testing.T, homes []string) (first, second *Host) {
	t.Helper()
	memory := &p2p.Memory{}
	first = startHost(t, hostConfig(0, homes[0], memory, &timers{}))
	cfg := hostConfig(1, homes[1], memory, &timers{})
	cfg.Join = first.Addrs()
	return first, startHost(t, cfg)
}

// TestReceiptBeforeTheEnd: a process of an execution that its site takes to be lost may be at work yet.
// What it leaves after home's receipt goes, too.
func TestReceiptBeforeTheEnd(t *testing.T) {
	homes := []string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		runs, home := twoHosts(t, homes)
		defer closeHost(t, runs)
		defer closeHost(t, home)
		lost := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 1}
		base := runs.files.Task(home.ID(), lost)
		if err := os.MkdirAll(base+run.ScratchSuffix, 0o700); err != nil {
			t.Fatal(err)
		}
		home.fetch.add(runs.ID(), fetch{task: lost, ended: time.Now(), lost: true})
		time.Sleep(staysAgain / 2)
		if err := os.Rename(base+run.ScratchSuffix, base+run.ResultsSuffix); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * staysAgain)
		if exists(base + run.ResultsSuffix) {
			t.Error("what it has left is there")
		}
	})
}

func TestOutputThatCannotBeFetchedIsGivenUp(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := startHost(t, hostConfig(1, home, &p2p.Memory{}, &timers{}))
		defer closeHost(t, h)
		task := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 1}
		h.fetch.add("12D3KooWEkiMu4jpwh9n1wvUtsbcdnQjhvEYUQM3o6xy85S8d4kp", fetch{task: task, ended: time.Now().Add(time.Hour/2 - fetchGiveUp)})
		time.Sleep(time.Hour/2 - 10*time.Second)
		if h.files.HasFetched(task.Job) {
			t.Error("given up before its time")
		}
		time.Sleep(2 * fetchAgainMax)
		if _, err := h.files.OpenFetched(task.Job, run.Stdout, 0); !errors.Is(err, run.ErrOutputGone) || !strings.Contains(err.Error(), "12D3") {
			t.Errorf("got %v, want ErrOutputGone that names the site", err)
		}
	})
}

func TestOldFilesArePrunedAndThoseOfLiveJobsKept(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := hostConfig(1, home, &p2p.Memory{}, &timers{})
		h := startHost(t, cfg)
		defer closeHost(t, h)
		live := testJob(h, 1, 100*grid.Day)
		if _, err := submitTo(h, live); err != nil {
			t.Fatal(err)
		}
		awaitState(t, h, live.ID, site.Running)
		dead := grid.TaskID{Job: grid.JobID{Hi: 9, Lo: 9}, Epoch: 1}
		kept := writeOutput(t, h, h.ID(), grid.TaskID{Job: live.ID, Epoch: 1}, "x", "x") + run.Stdout.Suffix()
		own := writeOutput(t, h, h.ID(), dead, "x", "x") + run.Stdout.Suffix()
		foreign := writeOutput(t, h, "12D3KooWEkiMu4jpwh9n1wvUtsbcdnQjhvEYUQM3o6xy85S8d4kp", dead, "x", "x") + run.Stdout.Suffix()
		fetched := h.files.Fetched(dead.Job) + run.Stdout.Suffix()
		scratch := h.files.Task(h.ID(), dead) + run.ScratchSuffix
		if err := errors.Join(os.WriteFile(fetched, nil, 0o600), os.MkdirAll(scratch+"/sub", 0o700)); err != nil {
			t.Fatal(err)
		}
		all := []string{kept, own, foreign, fetched, scratch}
		remaining := func(after time.Duration) (left []string) {
			(&pruner{h}).once(time.Now().Add(after))
			for _, path := range all {
				if exists(path) {
					left = append(left, path)
				}
			}
			return left
		}
		for _, path := range all { // the files have the real time, the bubble its own
			if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if got := remaining(run.ForeignKept - time.Minute); !slices.Equal(got, all) {
			t.Errorf("before its time only %v were kept", got)
		}
		if got := remaining(run.ForeignKept + time.Minute); !slices.Equal(got, []string{kept, own, fetched, scratch}) {
			t.Errorf("after a day %v were kept", got)
		}
		if got := remaining(site.DefaultLimits.Retention.Duration() + time.Minute); !slices.Equal(got, []string{kept}) {
			t.Errorf("after the retention %v were kept, want the live job's only", got)
		}
	})
}

func FuzzDecodeOutput(f *testing.F) {
	id := make([]byte, 16)
	for _, m := range []proto.Message{
		&wirepb.OutputRequest{Job: id, Epoch: 1, Stream: 1, Offset: 5, Follow: true},
		&wirepb.OutputChunk{Stream: 2, Data: []byte("hello"), End: 1},
	} {
		b, _ := proto.Marshal(m)
		f.Add(b)
	}
	corpus.Fuzz(f, func(t *testing.T, b []byte) {
		framed := func() *bufio.Reader {
			return bufio.NewReader(bytes.NewReader(append(binary.AppendUvarint(nil, uint64(len(b))), b...)))
		}
		if request, err := readRequest(framed()); err == nil {
			if _, err := grid.JobIDFromBytes(request.Job); err != nil || request.Offset < 0 || run.Stream(request.Stream) > run.Stderr {
				t.Errorf("request %v was let through", request)
			}
		} else if !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("a bad request gives %v", err)
		}
		if chunk, err := readChunk(framed()); err == nil {
			if len(chunk.Data) > 0 && (run.Stream(chunk.Stream) < run.Stdout || run.Stream(chunk.Stream) > run.Stderr) {
				t.Errorf("chunk %v was let through", chunk)
			}
		} else if !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("a bad chunk gives %v", err)
		}
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestFilesNotForgottenYet: a site that has files of a lost execution yet is told again to forget them,
// also if it was to be asked for others meanwhile.
func TestFilesNotForgottenYet(t *testing.T) {
	home := t.TempDir()
	f := &fetchers{h: &Host{files: run.Files{Home: home}}, sites: make(map[grid.SiteID]*fetchSite), wake: make(chan struct{}, 1)}
	if err := os.MkdirAll(filepath.Dir(f.h.files.Fetched(grid.JobID{})), 0o700); err != nil {
		t.Fatal(err)
	}
	job, _ := grid.JobIDFromBytes([]byte("sixteen bytes 01"))
	task, other := grid.TaskID{Job: job, Epoch: 1}, grid.TaskID{Job: job, Epoch: 2}
	if err := f.h.files.NoteLost(task, "s"); err != nil {
		t.Fatal(err)
	}
	f.add("s", fetch{task: task, ended: time.Now(), lost: true})
	s := f.sites["s"]
	batch := f.batch(s)
	f.add("s", fetch{task: other, ended: time.Now()})
	batch[0].stays = true
	f.ended("s", s, batch, 1, nil)
	if at := f.h.files.Lost(); at[task] != "s" {
		t.Errorf("it is forgotten where it was lost: %v", at)
	}
	if len(s.jobs) != 1 || s.jobs[0].task != other {
		t.Errorf("left to be asked for are %+v", s.jobs)
	}
}
