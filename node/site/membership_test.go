package site

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/member"
)

// trustPage is where the manual says who is heard.
const trustPage = "../../docs/trust.md"

// standings are the columns of the table there, after the messages and the right.
var standings = []string{"stranger", "expired", "revoked", "without it", "with it"}

// rule is a cell of that table for a kind of messages: what its sender must have, and
// whether one of some standing is heard.
type rule struct {
	right string
	heard map[string]bool
}

// manualRules reads the table.
func manualRules(t *testing.T) map[string]rule {
	t.Helper()
	text, err := os.ReadFile(trustPage)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]rule{}
	header := "| message | right | " + strings.Join(standings, " | ") + " |"
	_, table, found := strings.Cut(string(text), header+"\n")
	if !found {
		t.Fatalf("%s has no table %q", trustPage, header)
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != len(standings)+4 {
			break
		}
		protocol, names, ok := strings.Cut(strings.TrimSpace(cells[1]), ": ")
		if !ok {
			continue // the rule below the header
		}
		r := rule{right: strings.TrimSpace(cells[2]), heard: map[string]bool{}}
		for i, who := range standings {
			switch said := strings.TrimSpace(cells[i+3]); said {
			case "yes", "no":
				r.heard[who] = said == "yes"
			default:
				t.Fatalf("%s: %q", trustPage, line)
			}
		}
		for name := range strings.SplitSeq(names, ", ") {
			kind := strings.Trim(protocol, "`") + "." + name
			if _, twice := rules[kind]; twice {
				t.Errorf("%s has %s twice", trustPage, kind)
			}
			rules[kind] = r
		}
	}
	return rules
}

// letter is a message of any kind.
type letter grid.Kind

func (l letter) MessageKind() grid.Kind { return grid.Kind(l) }

// town is a federation and a site of it, which has met sites of every standing.
type town struct {
	t     *testing.T
	b     *bench
	fed   *member.Federation
	root  *member.Root
	sites map[string]grid.SiteID // by standing and rights
}

func newTown(t *testing.T) *town {
	key := func(n byte) ed25519.PrivateKey {
		return ed25519.NewKeyFromSeed(slices.Repeat([]byte{n}, ed25519.SeedSize))
	}
	w := &town{t: t, sites: map[string]grid.SiteID{}}
	start := 1000 * grid.Second
	var err error
	if w.root, err = member.NewRoot(rand.Reader, key(1), "physics", 1, start); err != nil {
		t.Fatal(err)
	}
	if w.fed, err = member.NewFederation([]*x509.Certificate{w.root.Certificate}); err != nil {
		t.Fatal(err)
	}
	w.b = newBench(t, func(c *Config) {
		c.Parts |= Membership
		c.Members = member.RollConfig{Self: "here", Name: "here", Federation: w.fed}
	})
	meet := func(n byte, name string, rights member.Rights, span grid.Time) *member.Member {
		public := key(n).Public().(ed25519.PublicKey)
		der, err := w.root.Issue(rand.Reader, member.Grant{Key: public, Name: name, Rights: rights, From: start, Expires: start + span})
		if err != nil {
			t.Fatal(err)
		}
		site, err := wire.SiteOf(public)
		if err != nil {
			t.Fatal(err)
		}
		m, err := w.fed.Verify(member.Proof(der), site, start)
		if err != nil {
			t.Fatal(err)
		}
		w.b.step(&member.Introduce{Token: uint64(n), Member: m})
		if answer := w.b.answers[uint64(n)].(*member.Introduced); answer.Err != nil {
			t.Fatalf("%s: %v", name, answer.Err)
		}
		w.sites[name] = site
		return m
	}
	w.sites["stranger"] = "nobody has met this one"
	meet(2, "expired", member.All, grid.Hour)
	gone := meet(3, "revoked", member.All, grid.Day)
	n := byte(10)
	for i := range 6 {
		right := member.Rights(1 << i)
		meet(n, "with-"+right.String(), right, grid.Day)
		meet(n+1, "without-"+right.String(), member.All&^right, grid.Day)
		n += 2
	}
	meet(n, "with-none", 0, grid.Day)
	signed, err := w.root.Revoke(rand.Reader, nil, start, gone.Serial)
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.fed.OpenList(signed, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.b.step(&member.Learn{Token: 99, List: list})
	w.b.now += 2 * grid.Hour
	w.b.step()
	return w
}

// certificate returns the proof of a site that the town's roots certify, and its ID.
func (w *town) certificate(n byte, name string, rights member.Rights) (member.Proof, grid.SiteID) {
	w.t.Helper()
	public := ed25519.NewKeyFromSeed(slices.Repeat([]byte{n}, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	der, err := w.root.Issue(rand.Reader, member.Grant{Key: public, Name: name, Rights: rights, From: w.b.now, Expires: w.b.now + grid.Day})
	if err != nil {
		w.t.Fatal(err)
	}
	site, err := wire.SiteOf(public)
	if err != nil {
		w.t.Fatal(err)
	}
	return der, site
}

// TestQuotesOfOthersNeedProof: a page that a holder sends names sites that this one has never
// met. It counts as far as the holder shows, once, that they are members who may offer and
// are called what they say; then without a question.
func TestQuotesOfOthersNeedProof(t *testing.T) {
	w := newTown(t)
	m := w.b.site.membership
	holder := w.sites["with-hold"]
	good, goodSite := w.certificate(60, "good", member.Usual)
	mute, muteSite := w.certificate(61, "mute", member.MaySubmit)
	posing, posingSite := w.certificate(62, "posing", member.Usual)
	revoked, revokedSite := w.certificate(64, "gone", member.Usual)
	other, err := member.NewRoot(rand.Reader, ed25519.NewKeyFromSeed(slices.Repeat([]byte{99}, ed25519.SeedSize)), "physics", 1, w.b.now)
	if err != nil {
		t.Fatal(err)
	}
	ours := w.root
	w.root = other
	forged, forgedSite := w.certificate(63, "forged", member.Usual)
	w.root = ours
	gone, err := w.fed.Verify(revoked, revokedSite, w.b.now)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := w.root.Revoke(rand.Reader, m.roll.Revoked().Of(&w.root.Issuer), w.b.now, gone.Serial)
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.fed.OpenList(signed, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.b.step(&member.Learn{Token: 100, List: list})

	quote := func(site grid.SiteID, name string) *directory.Quote { return &directory.Quote{Site: site, Name: name} }
	page := &directory.Page{Token: 7, Mature: true, Quotes: []*directory.Quote{
		quote(goodSite, "good"), quote(muteSite, "mute"), quote(posingSite, "here"), quote(forgedSite, "forged"),
		quote(revokedSite, "gone"), quote("nobody at all", "nobody"), quote(w.sites["with-offer"], "with-offer"),
	}}
	var out grid.Outbox
	delivery := &grid.Delivery{From: holder, Message: page}
	if got := m.vet(w.b.now, delivery, &out); got != nil {
		t.Fatalf("a page about unknown sites is taken at once: %+v", got)
	}
	if len(out.Sends) != 1 || out.Sends[0].To != holder || len(out.Sends[0].Message.(*member.Inquire).Sites) != 6 {
		t.Fatalf("asks %+v", out.Sends)
	}
	if m.nextTimer() > w.b.now+heldSpan {
		t.Error("the page waits for ever")
	}
	held := m.held[0]
	m.proven(w.b.now, &grid.Delivery{From: holder, Message: &member.Inform{Proofs: []member.Proof{good, mute, posing, forged, revoked}}}, &out)
	if len(m.held) != 0 {
		t.Fatal("the page still waits")
	}
	cut := m.cleared(w.b.now, &grid.Delivery{From: holder, Message: held.message}).Message.(*directory.Page)
	var names []string
	for _, q := range cut.Quotes {
		names = append(names, q.Name)
	}
	if !slices.Equal(names, []string{"good", "with-offer"}) || cut.Mature || cut.Token != 7 {
		t.Errorf("taken: %q, mature %v", names, cut.Mature)
	}
	if len(page.Quotes) != 7 || !page.Mature {
		t.Error("the message itself was changed")
	}

	// Once shown it is known: no question, and the page is believed as it is.
	out.Reset()
	page = &directory.Page{Mature: true, Quotes: []*directory.Quote{quote(goodSite, "good")}}
	if d, ok := m.vet(w.b.now, &grid.Delivery{From: holder, Message: page}, &out).(*grid.Delivery); !ok || d.Message != grid.Message(page) || len(out.Sends) > 0 {
		t.Errorf("a known site is asked about: %+v", out.Sends)
	}
	// What nobody had asked for is not looked at: it would cost the check of its signatures.
	_, late := w.certificate(65, "late", member.Usual)
	proof, _ := w.certificate(65, "late", member.Usual)
	m.proven(w.b.now, &grid.Delivery{From: holder, Message: &member.Inform{Proofs: []member.Proof{proof}}}, &out)
	if m.roll.Known(late, w.b.now) != nil {
		t.Error("a proof was taken that nobody had asked for")
	}
	// Who shows nothing is waited for a second.
	out.Reset()
	m.vet(w.b.now, &grid.Delivery{From: holder, Message: &directory.Page{Quotes: []*directory.Quote{quote("x", "x")}}}, &out)
	m.tick(w.b.now+heldSpan, &out)
	if len(m.held) != 0 {
		t.Error("a page waits longer than its holder has time to answer")
	}
	for range 2 * heldMax {
		m.vet(w.b.now, &grid.Delivery{From: holder, Message: &directory.Page{Quotes: []*directory.Quote{quote("x", "x")}}}, &out)
	}
	if len(m.held) > heldMax {
		t.Errorf("%d pages wait", len(m.held))
	}

	// A site's own quote comes under its own name only.
	for name, want := range map[string]bool{"with-offer": true, "here": false} {
		d := &grid.Delivery{From: w.sites["with-offer"], Message: &directory.Publish{Quote: quote(w.sites["with-offer"], name)}}
		if got := m.vet(w.b.now, d, &out) != nil; got != want {
			t.Errorf("a quote of with-offer as %s is taken: %v", name, got)
		}
	}

	// Revoked, its quotes vanish here, though it was never met.
	before := m.roll.Revoked().Of(&w.root.Issuer)
	again, err := w.fed.Verify(good, goodSite, w.b.now)
	if err != nil {
		t.Fatal(err)
	}
	if signed, err = w.root.Revoke(rand.Reader, before, w.b.now, again.Serial); err != nil {
		t.Fatal(err)
	}
	if list, err = w.fed.OpenList(signed, nil); err != nil {
		t.Fatal(err)
	}
	m.step(w.b.now, &grid.Delivery{From: holder, Message: &member.Revocations{List: list}}, &out)
	if m.roll.Known(goodSite, w.b.now) != nil {
		t.Error("a revoked site is still known")
	}
}

// sender returns a site of a standing, as far as a right is concerned; empty if there is
// none: nobody is without what everybody has.
func (w *town) sender(standing, right string) grid.SiteID {
	if right == "any" {
		right = "none"
	}
	switch standing {
	case "with it":
		return w.sites["with-"+right]
	case "without it":
		return w.sites["without-"+right]
	}
	return w.sites[standing]
}

// TestWhoIsHeard: every kind of message is heard from whom the manual says, and from
// nobody else. That nothing is read from who is no member node.TestWhoMayOpenStreams shows,
// and that its connection ends node.TestStrangersAreDisconnected.
func TestWhoIsHeard(t *testing.T) {
	rules := manualRules(t)
	w := newTown(t)
	s := w.b.site
	checked := 0
	for kind := range grid.Kind(wire.KindMax + 8) {
		name := wire.KindName(kind)
		r, listed := rules[name]
		delete(rules, name)
		if name == "" {
			for who, site := range w.sites {
				if s.membership.hears(w.b.now, &grid.Delivery{From: site, Message: letter(kind)}) {
					t.Errorf("kind %d, which nobody speaks, is heard from %s", kind, who)
				}
			}
			continue
		}
		if !listed {
			t.Errorf("%s does not say who may send %s", trustPage, name)
			continue
		}
		for _, standing := range standings {
			site := w.sender(standing, r.right)
			if site == "" {
				if r.right != "any" || !r.heard[standing] {
					t.Errorf("%s: nobody is without the right %q", name, r.right)
				}
				continue
			}
			d := &grid.Delivery{From: site, Message: letter(kind)}
			refused := s.membership.refused
			heard := s.membership.hears(w.b.now, d)
			if got := heard && s.Roll().May(site, 0, w.b.now); got != r.heard[standing] { // the gate lets only members in
				t.Errorf("%s of a site that is %s (%s): heard is %v, the manual says %v", name, standing, r.right, got, r.heard[standing])
			}
			if counted := s.membership.refused > refused; counted == heard {
				t.Errorf("%s of a site that is %s: counted as refused is %v", name, standing, counted)
			}
			checked++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		t.Errorf("%s says who may send %s, which nobody speaks", trustPage, name)
	}
	if checked < 200 {
		t.Errorf("only %d of the table's cells were checked", checked)
	}
	t.Logf("%d cells of the table hold", checked)
}

// TestRefusedMessagesChangeNothing: what is not heard leaves no trace but the count.
func TestRefusedMessagesChangeNothing(t *testing.T) {
	w := newTown(t)
	for _, standing := range []string{"stranger", "expired", "revoked", "with-none"} {
		for kind := range grid.Kind(wire.KindMax) {
			d := &grid.Delivery{From: w.sites[standing], Message: letter(kind)}
			if w.b.site.membership.hears(w.b.now, d) {
				continue // the part that takes it would want the message itself
			}
			var out grid.Outbox
			w.b.site.Step(w.b.now, d, &out)
			if len(out.Effects) > 0 || len(out.Locals) > 0 {
				t.Errorf("%s of a site that is %s: %d effects", wire.KindName(kind), standing, len(out.Effects))
			}
		}
	}
}

// TestExpiredMembersAreTakenOut: a certificate that ends ends the connection, too.
func TestExpiredMembersAreTakenOut(t *testing.T) {
	w := newTown(t)
	for name, want := range map[string]bool{"expired": false, "revoked": false, "with-none": true, "with-offer": true} {
		if got := w.b.site.Roll().Member(w.sites[name]) != nil; got != want {
			t.Errorf("%s is a member: %v, want %v", name, got, want)
		}
	}
}

// neighbours are a site that runs jobs of others, a bank and a home, members all.
type neighbours struct {
	*bench
	root       *member.Root
	home, bank grid.SiteID
	keeper     *member.Member // of bank
	serial     member.Serial  // of home
	list       *member.List
}

func newNeighbours(t *testing.T) *neighbours {
	key := func(n byte) ed25519.PrivateKey {
		return ed25519.NewKeyFromSeed(slices.Repeat([]byte{n}, ed25519.SeedSize))
	}
	root, err := member.NewRoot(rand.Reader, key(1), "physics", 1, 1000*grid.Second)
	if err != nil {
		t.Fatal(err)
	}
	fed, err := member.NewFederation([]*x509.Certificate{root.Certificate})
	if err != nil {
		t.Fatal(err)
	}
	n := &neighbours{root: root}
	n.bench = newBench(t, func(c *Config) {
		c.Parts, c.Foreign = Everything|Membership, true
		c.Directory = directory.Config{Federation: "test"}
		c.Members = member.RollConfig{Self: "here", Name: "here", Federation: fed}
	})
	for i, name := range []string{"home", "bank"} {
		public := key(byte(2 + i)).Public().(ed25519.PublicKey)
		der, err := root.Issue(rand.Reader, member.Grant{Key: public, Name: name, Rights: member.All, From: n.now, Expires: n.now + 30*grid.Day})
		if err != nil {
			t.Fatal(err)
		}
		id, err := wire.SiteOf(public)
		if err != nil {
			t.Fatal(err)
		}
		m, err := fed.Verify(member.Proof(der), id, n.now)
		if err != nil {
			t.Fatal(err)
		}
		n.step(&member.Introduce{Token: uint64(i + 1), Member: m})
		if name == "home" {
			n.home, n.serial = id, m.Serial
		} else {
			n.bank, n.keeper = id, m
		}
	}
	signed, err := root.Revoke(rand.Reader, nil, n.now, n.serial)
	if err != nil {
		t.Fatal(err)
	}
	if n.list, err = fed.OpenList(signed, nil); err != nil {
		t.Fatal(err)
	}
	return n
}

// guest has a job of home's run here, for a cheque.
func (n *neighbours) guest(number uint64) grid.TaskID {
	n.t.Helper()
	task := grid.TaskID{Job: grid.JobID{Lo: number}, Epoch: 1}
	p := payer{n.bench}
	p.step(&grid.Delivery{From: n.home, Message: &market.Negotiate{
		Task: task, Request: number, Validity: grid.Minute, Processors: 1,
		Work: grid.WorkOf(grid.Hour, 0, n.cfg.Rating), Deadline: grid.Never, CostMax: grid.CreditsMax, Bank: n.bank,
	}})
	reply, ok := sent[*market.Reply](p, n.home)
	if !ok || reply.Refusal != market.Granted {
		n.t.Fatalf("%+v", reply)
	}
	job := &grid.Job{
		ID: task.Job, Home: n.home, Resources: grid.Resources{Processors: 1}, Tasks: 1,
		Estimate: grid.Hour, Work: grid.WorkOf(grid.Hour, 0, n.cfg.Rating), Deadline: grid.Never, Budget: grid.NoBudget,
	}
	p.step(&grid.Delivery{From: n.home, Message: &market.JobSubmission{
		Job: job, Epoch: 1, Hold: reply.Hold, Price: reply.Price, Cost: reply.Cost, Deadline: grid.Never,
		Cheque: &bank.Cheque{Bank: n.bank, Payer: n.home, Payee: "here", Task: task, Ceiling: reply.Cost, Expires: n.now + 30*grid.Day},
	}})
	if k, ok := sent[*market.Acknowledge](p, n.home); !ok || k.Unknown {
		n.t.Fatalf("the job is not taken: %+v", k)
	}
	return task
}

// ends has a task end that began with the job.
func (n *neighbours) ends(task grid.TaskID, after grid.Time) {
	begin := n.now
	n.now += after
	n.step(&grid.TaskEnded{ID: task, Result: grid.Result{Start: begin, End: n.now}})
}

// TestGuestsOfAnOutcastArePaid: what the job of a home has used that is a member no longer is
// claimed from its cheque without its receipt, and the site is rid of the job.
func TestGuestsOfAnOutcastArePaid(t *testing.T) {
	const half = 30 * grid.Minute
	for name, play := range map[string]func(n *neighbours, task grid.TaskID, out func()){
		"ended before": func(n *neighbours, task grid.TaskID, out func()) {
			n.ends(task, half)
			out()
		},
		"ended before, and restarted": func(n *neighbours, task grid.TaskID, out func()) {
			n.ends(task, half)
			n.crash()
			out()
		},
		"restarted after": func(n *neighbours, task grid.TaskID, out func()) {
			out()
			n.crash(&Adopted{ID: task, Start: n.now})
			n.ends(task, half)
		},
		"ends later": func(n *neighbours, task grid.TaskID, out func()) {
			out()
			n.ends(task, half)
		},
		"its lease ends": func(n *neighbours, task grid.TaskID, out func()) {
			out()
			begin := n.now
			n.now += half
			n.step(&grid.TaskEnded{ID: task, Lapsed: true, Result: grid.Result{Start: begin, End: n.now, ExitCode: 1, Reason: "its lease ended"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNeighbours(t)
			task := n.guest(7)
			play(n, task, func() { n.step(&member.Learn{Token: 9, List: n.list}) })
			m, ok := sent[*bank.Redeem](payer{n.bench}, n.bank)
			if !ok || m.Agreement != nil || m.Claim.Amount != grid.Credits(n.cfg.Price)/2 {
				t.Fatalf("presents %+v", m)
			}
			if v, there := n.site.Glance(task.Job); there {
				t.Errorf("the job is %v still", v.State)
			}
			for id, tenant := range n.site.Tenants() {
				t.Errorf("%s has %+v", id, tenant)
			}
			n.step(&member.Introduce{Token: 10, Member: n.keeper}) // it greets again after a restart
			n.step(&grid.Delivery{From: n.bank, Message: &bank.Redeemed{Payer: n.home, Task: task, Paid: m.Claim.Amount}})
			for key := range n.records {
				if strings.HasPrefix(key, "bank/") || strings.HasPrefix(key, "job/") {
					t.Errorf("record %s is left", key)
				}
			}
		})
	}
}

// TestAuditOfOutcasts: a part of the site that takes somebody for an outcast who is none, or does not take
// one for it, is told.
func TestAuditOfOutcasts(t *testing.T) {
	n := newNeighbours(t)
	n.step(&member.Learn{Token: 9, List: n.list})
	m := n.site.membership
	if err := m.audit(n.now); err != nil || !m.outcast(n.home) {
		t.Fatalf("%v, is an outcast: %t", err, m.outcast(n.home))
	}
	for name, spoil := range map[string]func(out *grid.Outbox){
		"an outcast is waited for": func(*grid.Outbox) { m.agent.TakeIn(n.home) },
		"a member is not": func(out *grid.Outbox) {
			m.agent.CastOut(n.now, n.home, out)
			m.agent.CastOut(n.now, n.bank, out)
		},
		"an outcast's word counts":   func(*grid.Outbox) { m.payment.desk.Outcasts().Remove(n.home) },
		"a member's word is nothing": func(out *grid.Outbox) { m.payment.desk.Outcasts().Add(n.now, n.bank, out) },
	} {
		if spoil(&grid.Outbox{}); m.audit(n.now) == nil {
			t.Errorf("%s, which is not found", name)
		}
		m.agent.TakeIn(n.bank)
		m.agent.CastOut(n.now, n.home, &grid.Outbox{})
		m.payment.desk.Outcasts().Remove(n.bank)
		m.payment.desk.Outcasts().Add(n.now, n.home, &grid.Outbox{})
	}
}

// TestWaitingGuestsOfAnOutcastCostNothing: a job that waits as its home is cast out is dropped,
// and the cheque given back.
func TestWaitingGuestsOfAnOutcastCostNothing(t *testing.T) {
	n := newNeighbours(t)
	for i := range uint64(4) { // all processors
		n.guest(i + 1)
	}
	waits := n.guest(5)
	if v, _ := n.site.Glance(waits.Job); v.State != Queued {
		t.Fatalf("it is %v", v.State)
	}
	n.step(&member.Learn{Token: 9, List: n.list})
	m, ok := sent[*bank.Redeem](payer{n.bench}, n.bank)
	if !ok || m.Cheque.Task != waits || m.Claim.Amount != 0 {
		t.Errorf("presents %+v", m)
	}
	if v, there := n.site.Glance(waits.Job); there {
		t.Errorf("it is %v still", v.State)
	}
}

// TestJobsThatNameAnOutcastEnd: a job that has to run at a certain site, too, waits for that
// one until it is an outcast, and not longer.
func TestJobsThatNameAnOutcastEnd(t *testing.T) {
	n := newNeighbours(t)
	j := n.job(1, 2)
	j.Tasks = 2
	j.Coallocate = &grid.Coallocation{CCR: -1, Components: "1@here,1@" + string(n.home)}
	n.step(&Submit{Token: 1, Job: j})
	other := n.job(2, 2)
	other.Tasks = 2
	other.Coallocate = &grid.Coallocation{CCR: -1, Components: "1@here,1@" + string(n.bank)}
	n.step(&Submit{Token: 2, Job: other})
	for _, number := range []uint64{1, 2} {
		if a := n.answers[number].(*Submitted); a.Err != nil {
			t.Fatal(a.Err)
		}
		if v, _ := n.site.Glance(n.job(number, 2).ID); v.State != Placing && v.State != Queued {
			t.Fatalf("job %d is %v: %s", number, v.State, v.Reason)
		}
	}
	n.step(&member.Learn{Token: 9, List: n.list})
	if v := n.want(1, CancelledByUser); !strings.Contains(v.Reason, string(n.home)) {
		t.Errorf("it has ended because %q", v.Reason)
	}
	if dir := n.site.quotes.dir; !dir.Barred(n.home) || dir.Barred(n.bank) {
		t.Errorf("what is said of an outcast is taken: %v, of a member: %v", !dir.Barred(n.home), !dir.Barred(n.bank))
	}
	if v, _ := n.site.Glance(other.ID); v.State.Terminal() {
		t.Errorf("one that names a member is %v: %s", v.State, v.Reason)
	}
}
