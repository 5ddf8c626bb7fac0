package quota

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// job is one of a user's that may cost so much.
func job(n uint64, user string, processors int64, cost grid.Credits) *grid.Job {
	return &grid.Job{ID: grid.JobID{Lo: n}, User: user, Resources: grid.Resources{Processors: processors}, Budget: cost}
}

func newDesk(cfg Config) *Desk {
	return NewDesk(cfg, func(j *grid.Job) grid.Credits { return j.Budget })
}

func TestLimitsOfUsers(t *testing.T) {
	cfg := Config{
		Everyone: Limits{Jobs: 3, Running: 2, Processors: 4, Spend: Spend{10, grid.Day}},
		Users:    map[string]Limits{"ann": {Running: 1}, "ben": {Jobs: None, Running: None, Processors: None, Spend: Spend{Span: None}}},
	}
	for _, tt := range []struct {
		name  string
		taken []*grid.Job
		ask   *grid.Job
		live  int64
		err   bool
		want  Cause
	}{
		{"nothing yet", nil, job(9, "eve", 4, 10), 2, false, ""},
		{"one job too many", nil, job(9, "eve", 1, 0), 3, true, ""},
		{"wider than ever allowed", nil, job(9, "eve", 5, 0), 0, true, OverProcessors},
		{"dearer than ever allowed", nil, job(9, "eve", 1, 11), 0, true, OverSpend},
		{"two run", []*grid.Job{job(1, "eve", 1, 0), job(2, "eve", 1, 0)}, job(9, "eve", 1, 0), 2, false, OverRunning},
		{"of somebody else", []*grid.Job{job(1, "ivo", 4, 10), job(2, "ivo", 1, 0)}, job(9, "eve", 1, 0), 0, false, ""},
		{"three processors are taken", []*grid.Job{job(1, "eve", 3, 0)}, job(9, "eve", 2, 0), 1, false, OverProcessors},
		{"all that may be spent is held", []*grid.Job{job(1, "eve", 1, 8)}, job(9, "eve", 1, 3), 1, false, OverSpend},
		{"what is left is enough", []*grid.Job{job(1, "eve", 1, 8)}, job(9, "eve", 1, 2), 1, false, ""},
		{"her own limit", []*grid.Job{job(1, "ann", 1, 0)}, job(9, "ann", 1, 0), 1, false, OverRunning},
		{"everyone's counts where hers says nothing", nil, job(9, "ann", 5, 0), 1, true, OverProcessors},
		{"lifted for one", []*grid.Job{job(1, "ben", 9, 99), job(2, "ben", 9, 0)}, job(9, "ben", 99, 99), 50, false, ""},
	} {
		d := newDesk(cfg)
		for _, j := range tt.taken {
			d.Take(j)
			d.Take(j) // twice is once
		}
		if why := d.Why(0, tt.ask, tt.want); strings.Contains(why, "only under other limits") != d.Never(tt.ask) {
			t.Errorf("%s: why it waits: %q", tt.name, why)
		}
		if err := d.Refuses(tt.ask, tt.live); (err != nil) != tt.err || err != nil && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: refused: %v", tt.name, err)
		}
		if got := d.Full(0, tt.ask); got != tt.want || (got != "") != (d.Why(0, tt.ask, got) != "") {
			t.Errorf("%s: waits for %q (%s), want %q", tt.name, got, d.Why(0, tt.ask, got), tt.want)
		}
		for _, j := range tt.taken {
			d.Give(j)
			d.Give(j)
		}
		if use := d.Use(0, tt.ask.User); use.Running != 0 || use.Processors != 0 || use.Held != 0 {
			t.Errorf("%s: all was given back, and %+v is left", tt.name, use)
		}
	}
}

// TestPrice: what a job may cost counts as soon as it is known, and by what was known then it
// is taken back.
func TestPrice(t *testing.T) {
	d := newDesk(Config{Everyone: Limits{Spend: Spend{10, grid.Day}}})
	j := job(1, "eve", 1, 9)
	d.Take(j)
	if d.Full(0, job(2, "eve", 1, 2)) != OverSpend {
		t.Error("9 and 2 are not over 10")
	}
	d.Priced(j, 3)
	if d.Full(0, job(2, "eve", 1, 2)) != "" {
		t.Error("3 and 2 are over 10")
	}
	d.Priced(job(5, "eve", 1, 0), 100) // it was never taken
	d.Give(j)
	if use := d.Use(0, "eve"); use.Held != 0 {
		t.Errorf("%v are held for nothing", use.Held)
	}
}

// TestSpendingAgainstNaive: by the desk never more is spent within a span than by looking at
// all that was spent, and it forgets nothing later than a 32nd of the span, restarts included.
func TestSpendingAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := grid.Time(rapid.Int64Range(int64(grid.Minute), int64(60*grid.Day)).Draw(t, "span"))
		cfg := Config{Users: map[string]Limits{"eve": {Spend: Spend{100, span}}}}
		d, now := newDesk(cfg), grid.Time(0)
		type payment struct {
			at   grid.Time
			cost grid.Credits
		}
		var all []payment
		var total grid.Credits
		since := func(at grid.Time) (sum grid.Credits) {
			for _, p := range all {
				if p.at > at {
					sum += p.cost
				}
			}
			return sum
		}
		for range rapid.IntRange(1, 200).Draw(t, "payments") {
			now += grid.Time(rapid.Int64Range(0, int64(span)/8).Draw(t, "pause"))
			cost := grid.Credits(rapid.Int64Range(1, 50).Draw(t, "cost"))
			var out grid.Outbox
			d.Spent(now, "eve", cost, &out)
			all, total = append(all, payment{now, cost}), total+cost
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				d = newDesk(cfg)
				if err := d.Recover(out.Records[0].RecordKey(), out.Records[0].AppendRecord(nil)); err != nil {
					t.Fatal(err)
				}
			}
			low, high := since(now-span), since(now-span-span/slicesOfSpan-1)
			use := d.Use(now, "eve")
			if use.Spent < low || use.Spent > high || use.Total != total {
				t.Fatalf("%d spent of %d, want %d to %d of %d", use.Spent, use.Total, low, high, total)
			}
			if at := d.Renews(now, "eve"); at <= now || at > now+span {
				t.Fatalf("at %v it comes back at %v", now, at)
			}
		}
		if use := d.Use(now+span, "eve"); use.Spent != 0 {
			t.Fatalf("a span later %d are spent", use.Spent)
		}
	})
}

func TestSpendingIsReadAgain(t *testing.T) {
	for _, bad := range []string{"", "[]", `{"slices":3}`} {
		if newDesk(Config{}).Recover(Prefix+"eve", []byte(bad)) == nil {
			t.Errorf("%q is taken for what somebody has spent", bad)
		}
	}
	var out grid.Outbox
	d := newDesk(Config{})
	d.Spent(5, "eve", 0, &out)
	(*Desk)(nil).Spent(5, "eve", 7, &out)
	if len(out.Records) != 0 {
		t.Error("nothing was spent, and something is saved")
	}
}

// TestUseCountsHalf after a half-life: at most 6 % more than by the exponential, never less,
// and never more than before.
func TestUseCountsHalf(t *testing.T) {
	u := usage{sum: 1 << 50, at: 100}
	half, last := grid.Hour, grid.Time(1<<50)
	for i := range grid.Time(2000) {
		got := u.to(100+i*grid.Minute/3, half)
		exact := math.Exp2(50 - float64(i)/180)
		if got > last || float64(got) < exact*0.999999 || float64(got) > exact*1.062 {
			t.Fatalf("after %d thirds of a minute %d, by the exponential %f, before %d", i, got, exact, last)
		}
		last = got
	}
	if got := u.to(grid.Never/2, half); got != 0 {
		t.Errorf("%d are left for ever", got)
	}
}

// TestStandingOfUsers: what runs counts, shares divide it, and it is stored with the end.
func TestStandingOfUsers(t *testing.T) {
	d := newDesk(Config{HalfLife: grid.Hour, Users: map[string]Limits{"ben": {Share: 2}}})
	ann, ben := d.Owner("ann"), d.Owner("ben")
	now := 1_800_000_000 * grid.Second // live instants are large
	d.Began(job(1, "ann", 3_000_000, 0), now)
	d.Began(job(2, "ben", 4_500_000, 0), now)
	compare := d.Favours(now)
	if compare(ann, ben) != 0 {
		t.Error("at the start they differ")
	}
	if compare = d.Favours(now + grid.Minute); compare(ann, ben) <= 0 || compare(0, ben) >= 0 {
		t.Error("a half of 4.5 is not less than 3")
	}
	d.Ended(now+grid.Minute, job(1, "ann", 3_000_000, 0))
	d.Ended(now+grid.Minute, job(1, "ann", 3_000_000, 0)) // told twice
	if got, want := d.Use(now+grid.Minute, "ann").Lately, grid.Minute*3_000_000; got != want {
		t.Errorf("at the end %d count, want %d", got, want)
	}
	var out grid.Outbox
	d.Spent(now+grid.Minute, "ann", 0, &out)
	d.Spent(now+grid.Minute, "ann", 0, &out) // nothing is new
	if len(out.Records) != 1 {
		t.Fatalf("%d records", len(out.Records))
	}
	again := newDesk(Config{HalfLife: grid.Hour})
	if err := again.Recover(out.Records[0].RecordKey(), out.Records[0].AppendRecord(nil)); err != nil {
		t.Fatal(err)
	}
	if got, want := again.Use(now+grid.Minute+grid.Hour, "ann").Lately, grid.Minute*1_500_000; got != want {
		t.Errorf("an hour later %d count, want %d", got, want)
	}
}

// TestRecordsStaySmall: what is stored with the end of every job has few slices for users who
// have no limit, and never more than a bound.
func TestRecordsStaySmall(t *testing.T) {
	for _, tt := range []struct {
		limit Spend
		most  int
	}{{Spend{}, 10}, {Spend{1, grid.Hour}, slicesMax}, {Spend{1, 300 * grid.Day}, slicesOfSpan + 2}} {
		d, longest := newDesk(Config{Everyone: Limits{Spend: tt.limit}}), 0
		for i := range grid.Time(20_000) {
			var out grid.Outbox
			d.Spent(i*grid.Hour/2, "eve", 1, &out)
			longest = max(longest, len(d.users["eve"].spent.slices))
		}
		if longest > tt.most || longest < 2 {
			t.Errorf("%v: %d slices, want at most %d", tt.limit, longest, tt.most)
		}
		if use := d.Use(20_000*grid.Hour/2, "eve"); use.Total != 20_000 {
			t.Errorf("%v: %+v", tt.limit, use)
		}
	}
}

// TestRenews: a user may spend again once what was spent first does not count any more.
func TestRenews(t *testing.T) {
	d := newDesk(Config{Everyone: Limits{Spend: Spend{10, grid.Day}}})
	if at := d.Renews(0, "eve"); at != grid.Never {
		t.Errorf("who has spent nothing may spend more from %v on", at)
	}
	for _, at := range []grid.Time{grid.Hour, 10 * grid.Hour} {
		d.Spent(at, "eve", 3, new(grid.Outbox))
	}
	for _, tt := range [][2]grid.Time{{11 * grid.Hour, 25 * grid.Hour}, {25 * grid.Hour, 34 * grid.Hour}, {34 * grid.Hour, grid.Never}} {
		if at := d.Renews(tt[0], "eve"); at != tt[1] {
			t.Errorf("at %v: may spend more from %v on, want %v", tt[0], at, tt[1])
		}
	}
}

// TestRenewsThoughTheClockWentBack: what was spent while it was ahead does not hide what ends before.
func TestRenewsThoughTheClockWentBack(t *testing.T) {
	d := newDesk(Config{Everyone: Limits{Spend: Spend{10, grid.Day}}})
	for _, at := range []grid.Time{49 * grid.Hour, 52 * grid.Hour, 30 * grid.Hour, 33 * grid.Hour} {
		d.Spent(at, "eve", 3, new(grid.Outbox))
	}
	for _, tt := range [][2]grid.Time{{33 * grid.Hour, 54 * grid.Hour}, {54 * grid.Hour, 57 * grid.Hour}, {57 * grid.Hour, grid.Never}} {
		if at := d.Renews(tt[0], "eve"); at != tt[1] {
			t.Errorf("at %v: may spend more from %v on, want %v", tt[0], at, tt[1])
		}
	}
}

// TestAuditRecords: what a user has spent and is not stored as it is is found.
func TestAuditRecords(t *testing.T) {
	d, stored := newDesk(Config{}), make(map[string][]byte)
	spend := func(save bool) {
		var out grid.Outbox
		d.Spent(grid.Hour, "ann", 3, &out)
		for _, r := range out.Records {
			if save {
				stored[r.RecordKey()] = r.AppendRecord(nil)
			}
		}
	}
	if spend(true); d.AuditRecords(stored) != nil {
		t.Errorf("what was saved: %v", d.AuditRecords(stored))
	}
	if spend(false); d.AuditRecords(stored) == nil {
		t.Error("what was not saved is in order")
	}
}

// TestAudit: what is counted as placed, and what is placed, is the same.
func TestAudit(t *testing.T) {
	d := newDesk(Config{Everyone: Limits{Running: 5}})
	one, two := job(1, "ann", 2, 3), job(2, "ann", 1, 1)
	d.Take(one)
	placed := map[grid.JobID]*grid.Job{one.ID: one}
	if err := d.Audit(placed); err != nil {
		t.Errorf("one of one: %v", err)
	}
	if d.Audit(map[grid.JobID]*grid.Job{two.ID: two}) == nil {
		t.Error("another one counts than is placed, and the audit does not say so")
	}
	if placed[two.ID] = two; d.Audit(placed) == nil {
		t.Error("one is placed that does not count, and the audit does not say so")
	}
	if d.Audit(nil) == nil {
		t.Error("one counts that is not placed, and the audit does not say so")
	}
}

// TestWhySpending: a user is told what he has spent, and what runs may cost if anything does.
func TestWhySpending(t *testing.T) {
	d := newDesk(Config{Everyone: Limits{Spend: Spend{10, grid.Day}}})
	d.Spent(grid.Hour, "ann", 4, new(grid.Outbox))
	waits := job(2, "ann", 1, 7)
	if text := d.Why(2*grid.Hour, waits, OverSpend); !strings.Contains(text, "has spent") || strings.Contains(text, "what runs") {
		t.Errorf("nothing runs: %s", text)
	}
	d.Take(job(1, "ann", 1, 5))
	if text := d.Why(2*grid.Hour, waits, OverSpend); !strings.Contains(text, "what runs may cost 0.000005") {
		t.Errorf("something runs: %s", text)
	}
}
