package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"gridnode/grid"
)

// Config says what is traced.
type Config struct {
	Exporter sdk.SpanExporter // takes the spans, and is shut down by Close; nil: nothing is traced
	Share    int64            // thousandths of this site's jobs that are, 0 to 1000; of other sites' those that come with a span
}

// Bounds.
const (
	// jobsMax bounds the jobs of which spans are open. Those beyond it are not traced. Other
	// sites' may be half of them: a home that never says that it has a result keeps its own here.
	jobsMax    = 1 << 16
	foreignMax = jobsMax / 2
	// idleMax bounds how long a job of another site that does not run is kept of which nothing is
	// heard: its home has lost it, or never says that it has the result.
	idleMax   = 7 * 24 * grid.Hour
	sweepSpan = grid.Hour // between two looks for such jobs
	// lentMax bounds the tasks of other sites on processors that they have on lease.
	lentMax = 1 << 16
	// servedMax bounds the questions of a turn that are answered in it.
	servedMax = 1 << 10
	// openMax bounds the open spans of a job: more sites than any home asks at once.
	openMax = 64
	// queueMax bounds the spans that wait to be exported: those of some five hundred jobs.
	// What is too much is dropped; no job waits for it.
	queueMax = 8192
)

// Tracer makes the spans of one site. All methods but Close are the loop's. A nil one does
// nothing.
type Tracer struct {
	self  grid.SiteID
	share uint64 // what a job's lot is below of that is traced
	about *resource.Resource
	out   sdk.SpanProcessor

	jobs    map[grid.JobID]*job
	foreign int // of them, other sites'
	swept   grid.Time
	lent    map[grid.TaskID]*lent
	served  []served // questions of this turn
	over    []grid.JobID
	spans   []uint64 // of the messages of this turn
}

// job is a job of which this site makes spans.
type job struct {
	id    grid.JobID
	home  bool
	base  uint64    // the span that those of this site are children of
	since grid.Time // it waits here from then on; 0: it does not
	open  []open
	bills bool // of another site: it came with a cheque
	heard grid.Time
}

// open is a span that has not ended.
type open struct {
	peer  grid.SiteID // with whom; empty: nobody
	epoch uint32
	span  *span
}

// served is a question of another site.
type served struct {
	kind grid.Kind
	job  grid.JobID
	from grid.SiteID
	span uint64
	at   grid.Time
	bill bool
}

// lent is a task of another site on processors that it has on lease.
type lent struct {
	parent uint64
	left   int    // processes of it that have not ended
	why    string // the first of them failed; empty: none has
	exit   int32  // of that one
	span   *span  // nil: it was not started yet
}

// New returns what makes the spans of a site, nil if nothing is traced.
func New(cfg Config, self grid.SiteID, name, version string) *Tracer {
	if cfg.Exporter == nil {
		return nil
	}
	// What a collector calls a service is a site here: each is somebody else's.
	about := resource.NewSchemaless(
		attribute.String("service.name", name), attribute.String("service.namespace", "gridnode"),
		attribute.String("service.instance.id", string(self)), attribute.String("service.version", version),
	)
	t := &Tracer{
		self: self, about: about, out: sdk.NewBatchSpanProcessor(cfg.Exporter, sdk.WithMaxQueueSize(queueMax)),
		jobs: make(map[grid.JobID]*job), lent: make(map[grid.TaskID]*lent),
	}
	t.share = ^uint64(0) / 1000 * uint64(min(max(cfg.Share, 0), 1000))
	return t
}

// Close exports what has ended. It blocks until that is done or ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.out.Shutdown(ctx)
}

// rootOf returns the number of the first span of a job's trace, and the job's lot.
func rootOf(id grid.JobID) (span, lot uint64) {
	b := id.Bytes()
	sum := sha256.Sum256(b[:])
	return max(binary.BigEndian.Uint64(sum[:8]), 1), binary.BigEndian.Uint64(sum[8:16])
}

// own returns what is known of a job of this site, nil if it is not traced.
func (t *Tracer) own(of *grid.Job) *job {
	if j := t.jobs[of.ID]; j != nil {
		return j
	}
	root, lot := rootOf(of.ID)
	if lot > t.share || t.share == 0 || len(t.jobs) >= jobsMax {
		return nil
	}
	j := &job{id: of.ID, home: true, base: root}
	t.jobs[of.ID] = j
	return j
}

// What is told of spans. The job stands at those by which one looks for a trace.
const (
	keyJob        attribute.Key = "gridnode.job"
	keyNumber     attribute.Key = "gridnode.job.number"
	keyProcessors attribute.Key = "gridnode.job.processors"
	keyState      attribute.Key = "gridnode.job.state"
	keyMessages   attribute.Key = "gridnode.job.messages"
	keyExit       attribute.Key = "gridnode.job.exit_code"
	keyEpoch      attribute.Key = "gridnode.epoch"
	keyPeer       attribute.Key = "gridnode.peer"
	keyAnswer     attribute.Key = "gridnode.answer"
	keyQuotes     attribute.Key = "gridnode.quotes"
	keyStep       attribute.Key = "gridnode.step"
)

// made makes a span of a job that has ended.
func (t *Tracer) made(j *job, name string, from, to grid.Time, about ...attribute.KeyValue) {
	t.begin(j.id, j.base, name, trace.SpanKindInternal, from, about...).end(to, "")
}

// find returns an open span of a job, nil if there is none.
func (j *job) find(name string, peer grid.SiteID, epoch uint32) *open {
	for i := range j.open {
		if o := &j.open[i]; o.span.name == name && o.peer == peer && o.epoch == epoch {
			return o
		}
	}
	return nil
}

// ensure returns the number of an open span of a job, which it begins if there is none.
func (t *Tracer) ensure(j *job, now grid.Time, name string, kind trace.SpanKind, peer grid.SiteID, epoch uint32, about ...attribute.KeyValue) uint64 {
	if o := j.find(name, peer, epoch); o != nil {
		return o.span.id
	}
	if len(j.open) >= openMax {
		return j.base
	}
	if epoch > 1 {
		about = append(about, keyEpoch.Int64(int64(epoch)))
	}
	if peer != "" {
		about = append(about, keyPeer.String(string(peer)))
	}
	s := t.begin(j.id, j.base, name, kind, now, about...)
	j.open = append(j.open, open{peer, epoch, s})
	return s.id
}

// end ends an open span, if there is one. It failed if why is not empty.
func (j *job) end(name string, peer grid.SiteID, epoch uint32, now grid.Time, why string, about ...attribute.KeyValue) {
	o := j.find(name, peer, epoch)
	if o == nil {
		return
	}
	o.span.end(now, why, about...)
	last := len(j.open) - 1
	*o = j.open[last]
	j.open[last] = open{}
	j.open = j.open[:last]
}

// endAll ends the open spans of a name, or all if it is empty.
func (j *job) endAll(now grid.Time, why, name string) {
	kept := j.open[:0]
	for _, o := range j.open {
		if name == "" || o.span.name == name {
			o.span.end(now, why)
		} else {
			kept = append(kept, o)
		}
	}
	clear(j.open[len(kept):])
	j.open = kept
}
