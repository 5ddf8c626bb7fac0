package grid

// Message is what one site sends to another. Cores use pointers to their own
// structs; the wire form is the codec's business.
type Message interface {
	// MessageKind returns the type under which the envelope counts the message.
	MessageKind() Kind
}

// Kind numbers the message types of all protocols; package wire lists them.
type Kind uint8

// JobMessage is a Message that is about one job.
type JobMessage interface {
	Message
	ForJob() JobID
}

// Record is a piece of a core's state that must survive a crash.
type Record interface {
	// RecordKey returns where the record is stored ("job/…"); same key, same record.
	RecordKey() string
	// AppendRecord appends the stored form to dst.
	AppendRecord(dst []byte) []byte
}

// EffectKind says which of the Outbox's lists an effect stands in.
type EffectKind uint8

// Effects, in the order of the accessors of Outbox.
const (
	EffectSend      EffectKind = iota // Outbox.Sends
	EffectSave                        // Outbox.Records
	EffectDelete                      // Outbox.Records
	EffectStart                       // Outbox.Tasks
	EffectKill                        // Outbox.Tasks
	EffectClosest                     // Outbox.Keys
	EffectPublish                     // Outbox.Sends, To is the topic
	EffectTell                        // Outbox.Events
	EffectAnswer                      // Outbox.Answers
	EffectProbe                       // Outbox.Probes
	EffectProvide                     // Outbox.Keys
	EffectProviders                   // Outbox.Keys
	EffectExpel                       // Outbox.Expelled
	EffectRenew                       // Outbox.Tasks
	EffectAttend                      // Outbox.Attended
)

// Effect is one order to the driver: its kind and its index in the list of that kind.
type Effect struct {
	Kind  EffectKind
	Index int32
}

// Send is a message on its way out.
type Send struct {
	To      SiteID // the topic, for EffectPublish
	Message Message
}

// Task is an execution to start or to kill.
//
// A Task without a Job is a pilot: it keeps processors that are lent for Pilot.Site,
// and runs what that site sends. Started again, it lasts for Limit from then on.
type Task struct {
	ID    TaskID
	Job   *Job
	Limit Time   // wall-clock span after which the executor ends it; 0 in EffectKill
	Until Time   // nothing of it may be alive from then on, however late it begins; 0 or Never if that does not matter; of a pilot: no renewal moves its end further
	Lease Time   // nothing of it may be alive from then on, unless it is renewed (EffectRenew); 0 or Never if it goes on until its limit
	Cause string // for EffectKill: why, shown to the user
	Pilot Pilot  // of a job: the borrowed processors it runs on; zero: this site's own

	Processors int64 // of a pilot, which has no job: how many it keeps
	More       Time  // of a pilot, after a restart of the daemon: one that is there ends at most so much later than it was told before, and need not end later at all; else 0

	Gang    *Gang    // a co-allocated execution as a whole; else nil
	Again   bool     // with Gang: it was started before the daemon was
	Bring   Time     // with Gang: how much longer than others its start may take, as its inputs are brought first
	Squad   *Squad   // of the tasks of one part of a gang; else nil
	GPUs    []string // names of those that it has
	Abandon bool     // for EffectKill: nobody waits for what runs at other sites, as its leases are over; only of a gang is the end reported
}

// Pilot names processors that one site uses at another under a lease. The zero
// value names none.
type Pilot struct {
	Site SiteID // at who uses them: whose they are; at their owner: who uses them
	Key  uint64 // the owner's number of the grant, at least 1
}

// Answer is what somebody who asked through the local API waits for.
type Answer struct {
	Token uint64 // as given with the question; never 0
	Value any    // belongs to the asker from now on
}

// Outbox collects what a core orders during a Step. It is reused: after the
// first few steps appending allocates nothing. The zero value is ready.
type Outbox struct {
	Effects []Effect
	Sends   []Send
	Records []Record
	Tasks   []Task
	Keys    []Key
	Events  []Event
	Answers []Answer
	Probes  []SiteID

	Expelled []Expulsion
	Attended [][]SiteID

	// Locals are inputs for the other cores of the same site. Who composes the cores
	// feeds them on (Feed) before it returns; a driver never sees any of a site.
	Locals []Input
}

// Send orders message to be sent. Delivery is not certain, nor is order.
func (o *Outbox) Send(to SiteID, message Message) {
	o.add(EffectSend, len(o.Sends))
	o.Sends = append(o.Sends, Send{to, message})
}

// Publish orders message to be gossiped on topic.
func (o *Outbox) Publish(topic string, message Message) {
	o.add(EffectPublish, len(o.Sends))
	o.Sends = append(o.Sends, Send{SiteID(topic), message})
}

// Save orders record to be made durable before any Send or Start of this step.
// The driver encodes it before the next Step, so a pointer to live state is fine.
func (o *Outbox) Save(record Record) {
	o.add(EffectSave, len(o.Records))
	o.Records = append(o.Records, record)
}

// Delete orders the record stored under record's key to be forgotten.
func (o *Outbox) Delete(record Record) {
	o.add(EffectDelete, len(o.Records))
	o.Records = append(o.Records, record)
}

// Start orders a task to be started; TaskEnded will come back as an input.
func (o *Outbox) Start(task Task) {
	o.add(EffectStart, len(o.Tasks))
	o.Tasks = append(o.Tasks, task)
}

// Renew orders that a task go on until task.Lease, if it runs and is not being ended.
func (o *Outbox) Renew(task Task) {
	o.add(EffectRenew, len(o.Tasks))
	o.Tasks = append(o.Tasks, task)
}

// Kill orders a task and everything it started to be ended; TaskEnded still comes.
func (o *Outbox) Kill(task Task) {
	o.add(EffectKill, len(o.Tasks))
	o.Tasks = append(o.Tasks, task)
}

// Closest asks the DHT's router for the sites closest to key; Closest comes back
// as an input.
func (o *Outbox) Closest(key Key) {
	o.add(EffectClosest, len(o.Keys))
	o.Keys = append(o.Keys, key)
}

// Provide orders a provider record of this site to be put into the DHT under key;
// Provided comes back as an input. The record expires unless it is put there again.
func (o *Outbox) Provide(key Key) {
	o.add(EffectProvide, len(o.Keys))
	o.Keys = append(o.Keys, key)
}

// FindProviders asks the DHT for the sites that have put provider records there under
// key; Providers comes back as an input.
func (o *Outbox) FindProviders(key Key) {
	o.add(EffectProviders, len(o.Keys))
	o.Keys = append(o.Keys, key)
}

// Tell reports something to users, the local API, metrics and checkers.
func (o *Outbox) Tell(event Event) {
	o.add(EffectTell, len(o.Events))
	o.Events = append(o.Events, event)
}

// Answer orders value to be handed to whoever asked with token, once what this
// step saved is durable.
func (o *Outbox) Answer(token uint64, value any) {
	o.add(EffectAnswer, len(o.Answers))
	o.Answers = append(o.Answers, Answer{token, value})
}

// Probe orders the round trip to a site to be measured; Probed comes back as an
// input, for each site ordered once.
func (o *Outbox) Probe(to SiteID) {
	o.add(EffectProbe, len(o.Probes))
	o.Probes = append(o.Probes, to)
}

// Expulsion is what Expel orders.
type Expulsion struct {
	Site SiteID
	Last Message // what it is told before, so that it knows why; nil: nothing
}

// Expel orders that nothing more be taken of a site, which is a member of the federation
// no longer: connections with it end, after a last message if it is connected.
func (o *Outbox) Expel(site SiteID, last Message) {
	o.add(EffectExpel, len(o.Expelled))
	o.Expelled = append(o.Expelled, Expulsion{site, last})
}

// Attend orders connections with these sites, and with no others any more, to be kept; for
// each that ends, or that there is none with, Parted comes back as an input. The slice must
// not be changed later.
func (o *Outbox) Attend(sites []SiteID) {
	o.add(EffectAttend, len(o.Attended))
	o.Attended = append(o.Attended, sites)
}

// Local hands an input to the other cores of this site.
func (o *Outbox) Local(in Input) { o.Locals = append(o.Locals, in) }

// Feed hands apply the inputs for other cores of the site that stand behind the first
// ones, with all that follow from them, in order, and takes them out: whoever gets the
// outbox next must not find them again.
func (o *Outbox) Feed(first int, apply func(Input)) {
	for i := first; i < len(o.Locals); i++ {
		apply(o.Locals[i])
	}
	clear(o.Locals[first:])
	o.Locals = o.Locals[:first]
}

// Empty reports whether nothing is ordered and nobody is told anything.
func (o *Outbox) Empty() bool { return len(o.Effects) == 0 && len(o.Locals) == 0 }

// Reset empties the outbox and keeps its memory.
func (o *Outbox) Reset() {
	clear(o.Sends)
	clear(o.Records)
	clear(o.Tasks)
	clear(o.Locals)
	clear(o.Events)
	clear(o.Answers)
	clear(o.Expelled)
	clear(o.Attended)
	o.Effects = o.Effects[:0]
	o.Sends = o.Sends[:0]
	o.Records = o.Records[:0]
	o.Tasks = o.Tasks[:0]
	o.Keys = o.Keys[:0]
	o.Events = o.Events[:0]
	o.Answers = o.Answers[:0]
	o.Probes = o.Probes[:0]
	o.Expelled = o.Expelled[:0]
	o.Attended = o.Attended[:0]
	o.Locals = o.Locals[:0]
}

func (o *Outbox) add(kind EffectKind, index int) {
	o.Effects = append(o.Effects, Effect{kind, int32(index)})
}
