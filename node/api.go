package node

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/node/site"
)

// The local API is HTTP with JSON over the Unix socket api.sock in the home
// directory, described in docs/api.md. Keys are stable; spans are seconds,
// instants RFC 3339, money decimal credits. The types below are its vocabulary.

// Seconds is a span; in JSON a number of seconds, exact to the microsecond.
type Seconds grid.Time

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return appendMicros(nil, int64(s)), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	n, err := parseMicros(b)
	if err != nil {
		return fmt.Errorf("a span: %w", err)
	}
	*s = Seconds(n)
	return nil
}

// Amount is money; in JSON a number of credits, exact to the micro-credit.
type Amount grid.Credits

// MarshalJSON implements json.Marshaler.
func (a Amount) MarshalJSON() ([]byte, error) { return appendMicros(nil, int64(a)), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (a *Amount) UnmarshalJSON(b []byte) error {
	n, err := parseMicros(b)
	if err != nil {
		return fmt.Errorf("an amount of credits: %w", err)
	}
	*a = Amount(n)
	return nil
}

// String prints the amount as grid.Credits does.
func (a Amount) String() string { return grid.Credits(a).String() }

// Instant is a point in time; in JSON RFC 3339, in UTC, exact to the microsecond.
// The zero value is left out and means that there is none.
type Instant grid.Time

// MarshalJSON implements json.Marshaler.
func (i Instant) MarshalJSON() ([]byte, error) {
	return i.Time().UTC().AppendFormat([]byte{'"'}, `2006-01-02T15:04:05.999999Z07:00"`), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *Instant) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("an instant: want RFC 3339 in quotes, as \"2006-01-02T15:04:05Z\": %w", err)
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("an instant: %w", err)
	}
	*i = InstantOf(t)
	return nil
}

// Time returns i as a time.Time.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)) }

// InstantOf returns t as an Instant.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMicro()) }

// appendMicros appends n millionths as a decimal number.
func appendMicros(dst []byte, n int64) []byte {
	if n < 0 {
		dst = append(dst, '-')
		n = -n
	}
	dst = strconv.AppendInt(dst, n/1e6, 10)
	if n %= 1e6; n == 0 {
		return dst
	}
	return append(dst, "."+strings.TrimRight(fmt.Sprintf("%06d", n), "0")...)
}

// parseMicros reads a JSON number as millionths. Numbers with an exponent or more
// than six decimals are rounded.
func parseMicros(b []byte) (int64, error) {
	whole, frac, _ := strings.Cut(string(b), ".")
	if len(frac) <= 6 && len(whole) <= 13 {
		n, err := strconv.ParseInt(whole+frac+"000000"[len(frac):], 10, 64)
		if err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.Abs(f) > 9e12 {
		return 0, fmt.Errorf("%s: want a number between -9e12 and 9e12", b)
	}
	return int64(math.Round(f * 1e6)), nil
}

// JobSpec is a job, or an array of jobs, as it is submitted.
type JobSpec struct {
	// ID is the job's identity, 26 characters, chosen by the client so that it may
	// repeat a request whose answer was lost; made up here if empty. The jobs of
	// an array get IDs of their own that follow from it.
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"` // at most 128 bytes; default: the program's name

	Args []string `json:"args"`          // program and arguments; looked up in PATH where it runs
	Env  []string `json:"env,omitempty"` // KEY=VALUE
	Dir  string   `json:"dir,omitempty"` // working directory at home; elsewhere a scratch directory

	Tasks              int64 `json:"tasks,omitempty"`              // default 1
	CPUsPerTask        int64 `json:"cpusPerTask,omitempty"`        // default 1
	MemoryPerProcessor int64 `json:"memoryPerProcessor,omitempty"` // bytes; 0: any

	Time       Seconds `json:"time,omitempty"`       // bound on the run time; default: job.time of the configuration
	Deadline   Instant `json:"deadline,omitzero"`    // must have ended by then
	DeadlineIn Seconds `json:"deadlineIn,omitempty"` // the same from now; not both
	Budget     *Amount `json:"budget,omitempty"`     // most it may cost
	Policy     string  `json:"policy,omitempty"`     // cheapest, fastest, local, spill; default: see docs/cli.md
	Site       string  `json:"site,omitempty"`       // the only site it may run at: name or ID

	Array []int64 `json:"array,omitempty"` // one job for each, with GRIDNODE_ARRAY_TASK_ID

	Inputs       []DataInput   `json:"inputs,omitempty"`       // data sets that it reads; with coallocation
	Coallocation *Coallocation `json:"coallocation,omitempty"` // it may run at several sites at the same moment
}

// SubmitRequest is the body of POST /v1/jobs.
type SubmitRequest struct {
	Jobs []JobSpec `json:"jobs"`
}

// SubmitStored comes before SubmitReply with wait=done: the jobs are safe, and the
// asker may go away.
type SubmitStored struct {
	IDs []string `json:"stored"`
}

// SubmitReply answers it: the jobs in order, arrays spread out. With wait=done every
// job is over, or Failure says why that is not known.
type SubmitReply struct {
	Jobs    []Job     `json:"jobs"`
	Failure *APIError `json:"failure,omitempty"`
}

// Job is a job as users see it.
type Job struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	User  string `json:"user"`
	State string `json:"state"` // placing queued awarded running cancelling done failed cancelled refused

	Foreign  bool   `json:"foreign"`            // of another site; it runs here
	Home     string `json:"home"`               // ID of the site it was submitted to
	Site     string `json:"site,omitempty"`     // ID of the site it is at
	SiteName string `json:"siteName,omitempty"` // the same for people

	Processors         int64    `json:"processors"`
	Tasks              int64    `json:"tasks"`
	MemoryPerProcessor int64    `json:"memoryPerProcessor,omitempty"`
	Time               Seconds  `json:"time"`
	Deadline           Instant  `json:"deadline,omitzero"`
	Budget             *Amount  `json:"budget,omitempty"`
	Policy             string   `json:"policy"`
	Args               []string `json:"args,omitempty"`

	Inputs       []DataInput   `json:"inputs,omitempty"`       // data sets that it reads
	Coallocation *Coallocation `json:"coallocation,omitempty"` // as it was submitted, sites by their IDs
	Components   []Component   `json:"components,omitempty"`   // where it runs or ran

	Submitted      Instant `json:"submitted"`
	Start          Instant `json:"start,omitzero"`          // of its execution, once it began
	End            Instant `json:"end,omitzero"`            // once it is over
	Late           Seconds `json:"late,omitempty"`          // by how much it ended after its deadline, if it did
	PromisedFinish Instant `json:"promisedFinish,omitzero"` // by the site it was awarded to
	Price          Amount  `json:"price"`                   // agreed, per hour
	Cost           Amount  `json:"cost"`                    // agreed ceiling; what it cost once it is over
	ExitCode       *int32  `json:"exitCode,omitempty"`      // once it is over, if it ran or was cancelled
	Reason         string  `json:"reason,omitempty"`        // why it is in its state
	Epoch          uint32  `json:"epoch"`                   // how often it was placed
	Messages       int32   `json:"messages"`                // sent and received for it by home
	Known          bool    `json:"known,omitempty"`         // answer to a submission that had come before
}

// Over reports whether the job's state is terminal.
func (j *Job) Over() bool {
	switch j.State {
	case site.Done.String(), site.Failed.String(), site.CancelledByUser.String(), site.Refused.String():
		return true
	}
	return false
}

// JobsReply answers GET /v1/jobs, POST /v1/cancel and POST /v1/wait.
type JobsReply struct {
	Jobs     []Job `json:"jobs"`
	TimedOut bool  `json:"timedOut,omitempty"` // of a wait: some are not over yet
}

// Verdict is what came of one site that was considered for a job.
type Verdict struct {
	Site     string  `json:"site"`
	SiteName string  `json:"siteName"`
	Price    Amount  `json:"price"`           // per hour
	Cost     Amount  `json:"cost"`            // of the whole job there
	Finish   Instant `json:"finish,omitzero"` // estimated; left out if it never could
	Outcome  string  `json:"outcome"`         // stable word
	Detail   string  `json:"detail,omitempty"`
}

// WhyReply answers GET /v1/jobs/{id}/why and POST /v1/preview.
type WhyReply struct {
	Job      Job       `json:"job"`
	Feasible bool      `json:"feasible"` // some site would have it (preview) or had it
	Verdicts []Verdict `json:"verdicts"`
	Certain  *bool     `json:"certain,omitempty"`  // of a preview: no site is missing, as far as the directory knows
	Fastest  *Verdict  `json:"fastest,omitempty"`  // earliest finish that could be had
	Cheapest *Verdict  `json:"cheapest,omitempty"` // lowest cost that could be had
}

// IDsRequest is the body of POST /v1/cancel and POST /v1/wait.
type IDsRequest struct {
	IDs     []string `json:"ids"`             // unique prefixes do
	Names   []string `json:"names,omitempty"` // jobs of that name, arrays included, that are not over
	Cause   string   `json:"cause,omitempty"` // of a cancellation, at most 200 bytes
	Timeout Seconds  `json:"timeout,omitempty"`
}

// SiteInfo is one site of the federation as this one sees it.
type SiteInfo struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Self       bool    `json:"self"`
	Processors int64   `json:"processors"`
	Free       int64   `json:"free"`   // processors idle now
	Widest     int64   `json:"widest"` // most processors a job could start on now
	Wait       Seconds `json:"wait"`   // estimated wait of a job as wide as the site
	Queued     int64   `json:"queued"` // jobs waiting there, if it gossiped
	Memory     int64   `json:"memoryPerProcessor,omitempty"`
	Speed      int64   `json:"speed"`          // MIPS rating
	Bandwidth  int64   `json:"bandwidth"`      // Mb/s
	Price      Amount  `json:"price"`          // per processor-hour, per hour under cost model paper
	Cost       string  `json:"cost"`           // cost model
	Foreign    bool    `json:"foreign"`        // runs jobs of other sites
	Head       string  `json:"head,omitempty"` // ID of the site that may head it, if it gossiped
	Sequence   uint64  `json:"sequence"`
	Issued     Instant `json:"issued,omitzero"` // its quote
	Expires    Instant `json:"expires,omitzero"`

	// From here: half a round trip, and how it is known. Without a source it is not.
	Latency       Seconds   `json:"latency,omitempty"`
	LatencySource string    `json:"latencySource,omitempty"`
	Latencies     []Latency `json:"latencies,omitempty"` // to all sites of the listing, if they are at most 32
}

// SitesReply answers GET /v1/sites and GET /v1/quotes.
type SitesReply struct {
	Sites    []SiteInfo `json:"sites"`
	Messages int32      `json:"messages"` // the directory needed to answer
	Certain  bool       `json:"certain"`  // no site is missing, as far as the directory knows; see directory.Found
}

// Peer is a node this one is connected to.
type Peer struct {
	ID      string  `json:"id"`
	Name    string  `json:"name,omitempty"` // of its site, if a quote of it came by
	Address string  `json:"address"`        // of the connection
	Inbound bool    `json:"inbound"`        // it dialled us
	Since   Instant `json:"since"`
	Latency Seconds `json:"latency"` // smoothed round trip; 0 if not measured
	Agent   string  `json:"agent"`   // program and version it says it runs
	Member  bool    `json:"member"`  // it speaks this federation's DHT protocol
}

// PeersReply answers GET /v1/peers.
type PeersReply struct {
	Peers []Peer `json:"peers"`
}

// MessageCount is the messages and bytes of one kind.
type MessageCount struct {
	Kind          string `json:"kind"`
	Sent          int64  `json:"sent"`
	SentBytes     int64  `json:"sentBytes"`
	Received      int64  `json:"received"`
	ReceivedBytes int64  `json:"receivedBytes"`
}

// PriceRequest is the body of POST /v1/price.
type PriceRequest struct {
	Price Amount `json:"price"` // credits per processor-hour
}

// PriceReply answers POST /v1/price.
type PriceReply struct {
	Before Amount `json:"before"`
	Price  Amount `json:"price"`
}

// CountersReply answers GET /v1/counters.
type CountersReply struct {
	Messages  []MessageCount `json:"messages"`
	Malformed int64          `json:"malformed"` // frames that did not decode
}

// NodeInfo answers GET /v1/node.
type NodeInfo struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Federation string   `json:"federation"`
	Addresses  []string `json:"addresses"` // with /p2p/ID: what others join
	PID        int      `json:"pid"`
	Started    Instant  `json:"started"`
	Version    string   `json:"version"`
	Jobs       int      `json:"jobs"`    // known here
	Price      Amount   `json:"price"`   // charged at the moment, per processor-hour
	Pricing    string   `json:"pricing"` // "fixed" or "demand"
}

// APIError is the body of every answer that is not 2xx.
type APIError struct {
	Code    string `json:"code"` // one of the Code constants
	Message string `json:"message"`
}

// Codes of APIError.
const (
	CodeUsage       = "usage"       // the request is wrong: 400, 413
	CodeNotFound    = "notFound"    // no such job, site, output or path: 404
	CodeRefused     = "refused"     // legitimate no: limits, ID of another job: 409
	CodeBusy        = "busy"        // too many requests wait, nothing happened: 429
	CodeUnavailable = "unavailable" // the node is stopping: 503
	CodeInternal    = "internal"    // our fault: 500
)

// Error implements error.
func (e *APIError) Error() string { return e.Message }
