package site

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"gridnode/coalloc"
	"gridnode/directory/record"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/wire/wirepb"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/node/after"
	"gridnode/node/blame"
	"gridnode/node/guest"
	"gridnode/node/member"
	"gridnode/node/quota"
)

// table is the jobs that a site knows, its own and others', live and ended.
type table struct {
	limits   Limits
	byID     map[grid.JobID]*entry
	users    map[string]int // live home jobs by user
	live     []*entry       // those not terminal, and those of others whose home may not have the result; in no order
	finished []finishedJob  // ended home jobs that are still kept, oldest first
}

// Fate implements after.Table.
func (t *table) Fate(id grid.JobID) (f after.Fate) {
	if e := t.byID[id]; e != nil {
		return fateOf(f, e)
	}
	for _, e := range t.byID {
		if e.job.Array != nil && e.job.Array.ID == id {
			f = fateOf(f, e)
		}
	}
	return f
}

// fateOf adds what became of one home job.
func fateOf(f after.Fate, e *entry) after.Fate {
	if e.foreign {
		return f
	}
	over := e.state.Terminal()
	begun := over || e.start != 0
	return after.Fate{Known: true, Live: f.Live || !over, Failed: f.Failed || over && e.state != Done, Begun: begun && (f.Begun || !f.Known)}
}

// Live implements after.Table.
func (t *table) Live(user string) func(func(*grid.Job) bool) {
	return func(yield func(*grid.Job) bool) {
		for j := range t.going {
			if j.User == user && !yield(j) {
				return
			}
		}
	}
}

// audit returns which count of jobs is not what a recount gives.
func (t *table) audit() error {
	users := make(map[string]int)
	for i, e := range t.live {
		if e.place != int32(i) || t.byID[e.job.ID] != e || !e.live() {
			return fmt.Errorf("job %s, epoch %d, %s, counts as live, and is not", e.job.ID, e.epoch, e.state)
		}
		if e.state == Waiting && (e.start != 0 || e.losses != 0 || e.lease != 0 || e.gone != 0 || e.award != (market.Award{}) || len(e.gpus) > 0 || e.result.End != 0) {
			return fmt.Errorf("job %s waits to be placed, and stands as it was: begun at %v, %d losses, lease %d, %+v", e.job.ID, e.start, e.losses, e.lease, e.award)
		}
		if !e.foreign {
			users[e.job.User]++
		}
	}
	if !maps.Equal(users, t.users) {
		return fmt.Errorf("jobs of %v are not over, and count as of %v", users, t.users)
	}
	if ended := len(t.byID) - len(t.live); ended != len(t.finished) {
		return fmt.Errorf("%d jobs are over, and %d are kept as that", ended, len(t.finished))
	}
	return nil
}

// AuditEnded returns which job of a site counts as over and is not, or is over and will never be
// forgotten; nil: none. Audit looks at what is live, which is little, and this at all that is kept.
func AuditEnded(s *Site) error {
	t := &s.jobs.table
	kept := make(map[grid.JobID]bool)
	for _, f := range t.finished {
		kept[f.id] = true
	}
	for _, e := range t.byID {
		switch at := int(e.place); {
		case !e.live() && !kept[e.job.ID]:
			return fmt.Errorf("job %s is %s, and will never be forgotten", e.job.ID, e.state)
		case e.live() && (at >= len(t.live) || t.live[at] != e):
			return fmt.Errorf("job %s, epoch %d, %s, counts as over", e.job.ID, e.epoch, e.state)
		}
	}
	return nil
}

// going yields the jobs of this site's users that are not over, each with whether it waits to be
// let go, in any order.
func (t *table) going(yield func(j *grid.Job, waits bool) bool) {
	for _, e := range t.live {
		if !e.foreign && !e.state.Terminal() && !yield(e.job, e.state == Waiting) {
			return
		}
	}
}

// records yields what a site has to have saved, but for jobs, leases and a bank's journal, and what
// only this site's own users or owner would miss.
func (s *Site) records(yield func(grid.Record) bool) {
	all := []iter.Seq[grid.Record]{}
	if s.payment != nil {
		all = append(all, bank.Records(s.payment.desk))
	}
	if s.fees != nil {
		all = append(all, fee.Records(s.fees.tab))
	}
	if s.gangs != nil {
		all = append(all, s.gangs.home.Records, s.gangs.coord.Records)
	}
	if s.guests != nil {
		all = append(all, s.guests.records)
	}
	if s.membership != nil {
		all = append(all, s.membership.roll.Records)
	}
	for _, records := range all {
		for r := range records {
			if !yield(r) {
				return
			}
		}
	}
}

// recordKinds are the prefixes of the keys of what records yields.
var recordKinds = []string{bank.RecordPrefix, fee.RecordPrefix, coalloc.HomePrefix, coalloc.RecordPrefix, guest.BanPrefix, guest.HoldPrefix, member.InvitationPrefix, member.ListPrefix, member.MetPrefix}

// AuditRecords returns which record of a site is not saved as it is, or which is saved of what is
// over; nil: there is none. It is asked of a site between two inputs.
func AuditRecords(s *Site, stored iter.Seq2[string, []byte]) error {
	kept, leases, spent := make(map[string][]byte), make(map[string][]byte), make(map[string][]byte)
	for key, value := range stored {
		switch begins := func(prefix string) bool { return strings.HasPrefix(key, prefix) }; {
		case begins(RecordPrefix): // most are
		case begins(lease.RecordPrefix):
			leases[key] = value
		case begins(quota.Prefix):
			spent[key] = value
		case !begins(bank.JournalPrefix) && slices.ContainsFunc(recordKinds, begins):
			kept[key] = value
		}
	}
	var is []byte
	for r := range s.records {
		key := r.RecordKey()
		is = r.AppendRecord(is[:0])
		if was, there := kept[key]; !there || !bytes.Equal(was, is) {
			return fmt.Errorf("%s is not saved as it is (at all: %t)", key, there)
		}
		delete(kept, key)
	}
	if len(kept) > 0 {
		return fmt.Errorf("%s is over, and saved still", slices.Sorted(maps.Keys(kept))[0])
	}
	if s.loans != nil {
		if err := lease.AuditRecords(s.loans.book, leases); err != nil {
			return err
		}
	}
	return s.jobs.desk.AuditRecords(spent)
}

// JobsAudit tells of which job a site knows what it has not saved, and would do without, or do once more,
// as it came up. It is asked between two inputs, time and again. The zero value is one that has seen nothing.
type JobsAudit struct {
	round int
	read  map[string]reading
}

// reading is a record, and what it says.
type reading struct {
	record []byte
	says   lasting
}

const (
	auditMost = 16   // jobs that are looked at in each round
	readMost  = 1024 // records that are remembered
)

// Look returns what a site has not saved of some of its live jobs, others in each round; nil: there is nothing.
func (a *JobsAudit) Look(s *Site, saved func(key string) []byte) error {
	live := s.jobs.live
	for i := range min(len(live), auditMost) {
		e := live[(a.round*auditMost+i)%len(live)]
		key := e.RecordKey()
		record := saved(key)
		if record == nil {
			return fmt.Errorf("job %s, %s, is not saved", e.job.ID, e.state)
		}
		saved, err := a.says(key, record)
		if err != nil {
			return err
		}
		if is := e.lasting(); is != saved {
			return fmt.Errorf("job %s is %+v, and saved as %+v", e.job.ID, is, saved)
		}
	}
	a.round++
	return nil
}

// says returns what a record says, which it reads only if it is another than the last one.
func (a *JobsAudit) says(key string, record []byte) (lasting, error) {
	was, known := a.read[key]
	if known && bytes.Equal(was.record, record) {
		return was.says, nil
	}
	e, err := decodeEntry(record)
	if err != nil {
		return lasting{}, err
	}
	if a.read == nil || len(a.read) >= readMost {
		a.read = make(map[string]reading)
	}
	was = reading{append(was.record[:0], record...), e.lasting()}
	a.read[key] = was
	return was.says, nil
}

// lasting is what must be known of a job after a restart.
type lasting struct {
	over, cancelling, waits bool
	state                   State // if it is over
	foreign                 bool
	epoch, losses           uint32
	restarts                uint32
	budget                  grid.Credits
	at, bank                grid.SiteID
	cost                    grid.Credits // elsewhere
	until, keeps            grid.Time
	hold, lease             uint64
	adrift                  bool // it is waited for until nothing of it is alive
	gang                    bool
	gpus                    string
	again, held             bool
	retries                 uint32
	result                  string
}

func (e *entry) lasting() lasting {
	l := lasting{
		over: e.state.Terminal(), cancelling: e.state == Cancelling, waits: e.state == Waiting, foreign: e.foreign, epoch: e.epoch, losses: e.losses,
		restarts: uint32(e.job.Restarts), budget: e.job.Budget, at: e.award.Site, bank: e.award.Bank, until: e.award.Until, keeps: e.award.Lease, hold: e.award.Hold,
		lease: e.lease, adrift: e.gone != 0, gang: e.gang != nil, gpus: strings.Join(e.gpus, ","), again: e.turn.Again, held: e.turn.Held, retries: uint32(e.turn.Retries),
	}
	if e.foreign {
		l.cost = e.award.Cost
	}
	if l.over {
		l.state, l.result = e.state, fmt.Sprint(e.result.ExitCode, e.result.Reason, e.result.Cost)
	}
	return l
}

// Audit returns which count of a site is not what a recount gives, or which processors or GPUs are kept
// for what is over, which job waits that nothing will start, or what waits without a timer; nil: there
// is nothing of that kind. It is asked of a site at rest.
func Audit(now grid.Time, s *Site) error {
	if err := auditTimers(now, s); err != nil {
		return err
	}
	if err := s.jobs.audit(); err != nil {
		return err
	}
	if err := s.jobs.gate.Audit(now, s.jobs.going); err != nil {
		return err
	}
	if err := s.membership.audit(now); err != nil {
		return err
	}
	if s.placing != nil {
		if err := s.placing.agent.Audit(); err != nil {
			return err
		}
	}
	if s.loans != nil {
		if err := s.loans.audit(now); err != nil {
			return err
		}
	}
	if s.borrowing != nil {
		if err := s.borrowing.audit(); err != nil {
			return err
		}
	}
	if s.gangs != nil {
		if err := s.gangs.audit(now); err != nil {
			return err
		}
	}
	if s.names != nil {
		if err := record.Audit(now, s.names.registry); err != nil {
			return err
		}
	}
	if s.inputs != nil {
		if err := s.inputs.catalog.Audit(now); err != nil {
			return err
		}
	}
	if s.quotes != nil {
		if err := s.quotes.dir.Audit(now); err != nil {
			return err
		}
	}
	if s.siblings != nil {
		if err := s.siblings.circle.Audit(now); err != nil {
			return err
		}
	}
	var owners map[grid.TaskID]bool // other than jobs
	for r, runs := range s.cluster.Tasks {
		if ends := runs && r.ID.Epoch > 0; ends { // a process that is ended has them until it is
			continue
		}
		if e := s.jobs.current(r.ID); e != nil && !e.state.Terminal() {
			continue
		}
		if owners == nil {
			owners = s.owners()
		}
		if !owners[r.ID] {
			return fmt.Errorf("%d processors are kept for job %s, epoch %d, which is not here", r.Processors, r.ID.Job, r.ID.Epoch)
		}
	}
	for id := range s.jobs.gpus.Grants {
		if e := s.jobs.current(id); (e == nil || e.state.Terminal()) && !lrms.Knows(s.cluster, id) { // of one that is ended they come back with its processors
			return fmt.Errorf("GPUs are kept for job %s, epoch %d, which is not here", id.Job, id.Epoch)
		}
	}
	for _, e := range s.jobs.live {
		if e.state == Queued && !e.adrift && e.lease == 0 && !divided(e.job) && !s.waits(e.task()) {
			return fmt.Errorf("job %s, epoch %d, is %s, and in no queue", e.job.ID, e.epoch, e.state)
		}
	}
	return nil
}

// auditTimers returns what waits, of what is agreed with other sites, without a timer.
func auditTimers(now grid.Time, s *Site) error {
	if s.placing != nil {
		if err := market.AuditTimers(now, s.placing.agent); err != nil {
			return err
		}
	}
	if s.payment != nil {
		if err := bank.Audit(now, s.payment.desk); err != nil {
			return err
		}
	}
	if s.fees != nil {
		return fee.Audit(now, s.fees.tab)
	}
	return nil
}

// waits reports whether something will start a job that is queued.
func (s *Site) waits(id grid.TaskID) bool {
	switch {
	case lrms.Knows(s.cluster, id), s.borrowing != nil && lease.Demanded(s.borrowing.matches, id):
		return true
	case s.guests == nil:
		return false
	}
	h := s.guests.held[id.Job]
	return h != nil && h.Task == id // until the owner lets it go, or its time has come
}

// owners returns for what the cluster may keep processors, other than jobs.
func (s *Site) owners() map[grid.TaskID]bool {
	owners := make(map[grid.TaskID]bool)
	if s.placing != nil {
		for g := range s.placing.agent.Guarantees {
			owners[g.Task] = true
		}
	}
	if s.gangs != nil {
		for l := range s.gangs.home.Each {
			owners[coalloc.HomeTask(l.ID)] = true
		}
	}
	if s.loans != nil {
		for l := range lease.All(s.loans.book) {
			if l.Lent {
				owners[lease.TaskOf(l.Epoch)] = true
			}
		}
	}
	if s.borrowing != nil {
		for id := range s.borrowing.matches.Demands {
			owners[id] = true
		}
	}
	return owners
}

// Count is how many jobs stand alike.
type Count struct {
	State   State
	Foreign bool // they are of other sites
	Jobs    int64
}

// census returns how many jobs there are in each state, its own before others'.
func (t *table) census() []Count {
	var own, others [len(stateNames)]int64
	for _, e := range t.byID {
		if e.foreign {
			others[e.state]++
		} else {
			own[e.state]++
		}
	}
	counts := make([]Count, 0, 2*len(own))
	for state := State(1); int(state) < len(own); state++ {
		counts = append(counts, Count{state, false, own[state]}, Count{state, true, others[state]})
	}
	return counts
}

type finishedJob struct {
	id grid.JobID
	at grid.Time
}

func newTable(limits Limits) table {
	return table{limits: limits, byID: make(map[grid.JobID]*entry), users: make(map[string]int)}
}

// live reports whether an entry counts: it is not over, or its home may not have the result yet.
func (e *entry) live() bool { return e.foreign || !e.state.Terminal() }

// add puts an entry into the table.
func (t *table) add(e *entry) {
	t.byID[e.job.ID] = e
	if !e.live() {
		return
	}
	e.place = int32(len(t.live))
	t.live = append(t.live, e)
	if !e.foreign {
		t.users[e.job.User]++
	}
}

// leave takes a live entry off the list of them.
func (t *table) leave(e *entry) {
	last := len(t.live) - 1
	moved := t.live[last]
	t.live[e.place], moved.place = moved, e.place
	t.live[last] = nil
	t.live = t.live[:last]
}

// end moves a home job to a terminal state and keeps it for as long as ended
// jobs are kept.
func (t *table) end(now grid.Time, e *entry, state State, out *grid.Outbox) {
	t.leave(e)
	if t.users[e.job.User]--; t.users[e.job.User] == 0 {
		delete(t.users, e.job.User)
	}
	e.state = state
	if t.limits.Retention == 0 || t.limits.Finished == 0 {
		out.Delete(e)
		delete(t.byID, e.job.ID)
		return
	}
	out.Save(e)
	t.finished = append(t.finished, finishedJob{e.job.ID, now})
}

// drop forgets a foreign job.
func (t *table) drop(e *entry) {
	t.leave(e)
	delete(t.byID, e.job.ID)
}

// expire forgets ended jobs that were kept long enough, or that are too many.
func (t *table) expire(now grid.Time, out *grid.Outbox) {
	n := 0
	for _, f := range t.finished {
		if len(t.finished)-n <= t.limits.Finished && f.at.Add(t.limits.Retention) > now {
			break
		}
		if e := t.byID[f.id]; e != nil && e.state.Terminal() {
			out.Delete(e)
			delete(t.byID, f.id)
		}
		n++
	}
	if n > 0 {
		t.finished = append(t.finished[:0], t.finished[n:]...)
	}
}

// nextExpiry returns when expire next has something to do.
func (t *table) nextExpiry() grid.Time {
	if len(t.finished) == 0 {
		return grid.Never
	}
	return t.finished[0].at.Add(t.limits.Retention)
}

// current returns the entry of a task, or nil if that execution is not the
// latest one: whatever carries an older epoch changes nothing.
func (t *table) current(id grid.TaskID) *entry {
	if e := t.byID[id.Job]; e != nil && e.epoch == id.Epoch {
		return e
	}
	return nil
}

// save stores e unless its end has settled what is stored.
func (t *table) save(e *entry, out *grid.Outbox) {
	if !e.state.Terminal() {
		out.Save(e)
	}
}

// numbers are given to home jobs for those who name jobs by numbers. None is given twice, so
// how far they went is stored, a block ahead.
type numbers struct{ next, stored uint64 }

// numberBlock is how many numbers are taken with one record.
const numberBlock = 1000

const numbersKey = "number/next"

// RecordKey implements grid.Record.
func (*numbers) RecordKey() string { return numbersKey }

// AppendRecord implements grid.Record.
func (n *numbers) AppendRecord(dst []byte) []byte {
	out, err := proto.MarshalOptions{}.MarshalAppend(dst, &wirepb.Numbers{Next: n.stored})
	if err != nil {
		panic(fmt.Sprintf("site: record of numbers does not encode: %v", err))
	}
	return out
}

// number gives a job its number, and its array that of its first job.
func (js *jobs) number(j *grid.Job, out *grid.Outbox) {
	if !js.cfg.Numbers {
		return
	}
	if js.numbers.next++; js.numbers.next >= js.numbers.stored {
		js.numbers.stored = js.numbers.next + numberBlock
		out.Save(&js.numbers)
	}
	j.Number = js.numbers.next
	if j.Array == nil {
		return
	}
	a := *j.Array
	if a.Number = js.gate.Number(a.ID); a.Number == 0 {
		a.Number = j.Number
	}
	j.Array = &a
}

// keeps implements recorder.
func (*jobs) keeps() []string { return []string{numbersKey, quota.Prefix, blame.RecordKey} }

// recover implements recorder. Numbers of the last block may have been given.
func (js *jobs) recover(_ grid.Time, records records, _ *grid.Outbox) error {
	for key, value := range records.each {
		if key == blame.RecordKey {
			if err := js.deaths.Recover(value); err != nil {
				return recordError(key, err)
			}
			continue
		}
		if strings.HasPrefix(key, quota.Prefix) {
			if js.desk == nil {
				continue
			}
			if err := js.desk.Recover(key, value); err != nil {
				return recordError(key, err)
			}
			continue
		}
		var p wirepb.Numbers
		if err := proto.Unmarshal(value, &p); err != nil {
			return recordError(key, err)
		}
		js.numbers = numbers{p.Next, p.Next}
	}
	return nil
}

// enter puts a live entry into the table, with its user's number.
func (js *jobs) enter(e *entry) {
	if !e.foreign {
		e.owner = js.desk.Owner(e.job.User)
	}
	js.add(e)
}

// ownerOf returns the number of the user whose job waits; 0: it is of another site.
func (js *jobs) ownerOf(id grid.TaskID) int32 {
	if e := js.byID[id.Job]; e != nil {
		return e.owner
	}
	return 0
}

// mayCost returns what a home job may cost: its budget, if the market places it, else what it
// would cost here.
func (js *jobs) mayCost(j *grid.Job) grid.Credits {
	if j.Budget >= 0 && js.marketed(j) {
		return j.Budget
	}
	return j.CostAt(js.cfg.Rating, j.GPUs.Price(js.price(), j.Processors, js.cfg.GPUWeight), js.cfg.Cost)
}

// ConfigureUsers changes the limits of this site's users. What is placed goes on, and counts.
// The answer is a *UsersConfigured.
type ConfigureUsers struct {
	Token  uint64
	Config quota.Config
}

// UsersConfigured answers it.
type UsersConfigured struct{}

func (js *jobs) limit(_ grid.Time, in *ConfigureUsers, out *grid.Outbox) {
	if js.desk != nil {
		js.desk.Configure(in.Config)
		js.gate.Relimit()
	}
	out.Answer(in.Token, &UsersConfigured{})
}

// reprice has jobs looked at again once the price has fallen: what a user may spend goes further then.
func (js *jobs) reprice() {
	if js.desk == nil {
		return
	}
	if price := js.price(); price != js.charged {
		if price < js.charged {
			js.gate.Relimit()
		}
		js.charged = price
	}
}

// UserView is what a user of this site has and had.
type UserView struct {
	quota.Use
	Jobs int64 // that wait or run
}

// Users returns what the users of this site have and had, by name, and what asker has who may
// have nothing; nil if that is not counted.
func (s *Site) Users(now grid.Time, asker string) []UserView {
	js := s.jobs
	if js.desk == nil {
		return nil
	}
	views := map[string]UserView{asker: {Use: js.desk.Use(now, asker)}}
	for _, use := range js.desk.Users(now) {
		views[use.User] = UserView{Use: use}
	}
	for user, n := range js.users {
		views[user] = UserView{js.desk.Use(now, user), int64(n)}
	}
	list := make([]UserView, 0, len(views))
	for _, user := range slices.Sorted(maps.Keys(views)) {
		list = append(list, views[user])
	}
	return list
}
