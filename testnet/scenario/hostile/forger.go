package hostile

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"

	"github.com/libp2p/go-libp2p/core/crypto"
	"google.golang.org/protobuf/proto"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/member"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario/federation"
)

// pause is about how long a hostile member waits from one forgery to the next.
const pause = 2 * grid.Second

// forger forges messages for one hostile member, which knows more than it could: all that
// hostile members have received, and every job that is away from home.
type forger struct {
	t    *town
	at   int
	rng  *rand.Rand
	liar *liar
	next int

	alone  *member.Household // a federation of its own, which nobody believes
	nobody crypto.PrivKey    // a key of no member
	list   *member.List      // of that federation: all honest members are revoked
	proof  member.Proof      // of that federation
}

// forgery is a message that is not what it seems.
type forgery struct {
	what    string
	to      grid.SiteID
	message grid.Message
}

func newForger(t *town, at int) (*forger, error) {
	f := &forger{t: t, at: at, rng: rand.New(draw.PCG(t.cfg.Seed, t.IDs[at], draw.ForFaults))}
	seed := sha256.Sum256([]byte("alone " + string(t.IDs[at])))
	key := ed25519.NewKeyFromSeed(seed[:])
	var err error
	if f.nobody, err = crypto.UnmarshalEd25519PrivateKey(key); err != nil {
		return nil, err
	}
	if f.alone, err = member.NewHousehold(rand.NewChaCha8(seed), key, "virtual", 0, 1000*grid.Day); err != nil {
		return nil, err
	}
	if f.proof, err = f.alone.Admit(key.Public().(ed25519.PublicKey), "site-1", "", member.All); err != nil {
		return nil, err
	}
	var serials []member.Serial
	for i := range t.cfg.Sites {
		if t.honest(i) {
			serials = append(serials, t.members[i].Serial)
		}
	}
	f.list, err = f.alone.Revoke(nil, grid.Hour, serials...)
	return f, err
}

// begin has forgeries leave from the first job on until the end.
func (f *forger) begin(at int) {
	when := federation.Warmup + grid.Time(f.rng.Int64N(int64(pause)))
	var again func()
	again = func() {
		if g := f.forge(); g.message != nil {
			f.t.mark(g.what, g.message)
			f.t.n.Step(at, &utter{g.to, g.message})
		}
		if next := f.t.n.Now() + pause/2 + grid.Time(f.rng.Int64N(int64(pause))); next < f.t.end() {
			f.t.n.Call(next, at, again)
		}
	}
	f.t.n.Call(when, at, again)
}

// forge returns the next forgery; one without a message if it cannot be made yet.
func (f *forger) forge() forgery {
	ways := []func() forgery{
		f.repeat, f.relay, f.completion, f.abandonment, f.cancellation, f.agreement, f.unknown, f.drawn, f.settled, f.forgedRedeem, f.stolenRedeem,
		f.takenBack, f.transfer, f.draw, f.publication, f.renamed, f.withdrawal, f.revocation, f.membership, f.page, f.resubmission,
	}
	f.next++
	return ways[f.next%len(ways)]()
}

// victim returns an honest site.
func (f *forger) victim() grid.SiteID {
	for {
		if i := f.rng.IntN(f.t.cfg.Sites); f.t.honest(i) {
			return f.t.IDs[i]
		}
	}
}

func (f *forger) bank() grid.SiteID { return f.t.IDs[f.rng.IntN(banks)] }

// overheard returns a message of a kind that some hostile member has received.
func (f *forger) overheard(kind grid.Kind) (h heard, ok bool) {
	list := f.t.seen.by[kind]
	if len(list) == 0 {
		return heard{}, false
	}
	return list[f.rng.IntN(len(list))], true
}

// away returns a job of an honest home that is at another honest site.
func (f *forger) away() (a award, ok bool) {
	list := f.t.awards
	if len(list) == 0 {
		return award{}, false
	}
	return list[f.rng.IntN(len(list))], true
}

// sign signs a document with a key of the forger's choice; that this fails is a defect.
func (f *forger) sign(key crypto.PrivKey, domain string, p proto.Message) []byte {
	payload, err := proto.Marshal(p)
	if err == nil {
		payload, err = wire.Seal(key, domain, payload)
	}
	if err != nil {
		panic(fmt.Sprintf("hostile: sign %s: %v", domain, err))
	}
	return payload
}

func (f *forger) own() crypto.PrivKey { return f.t.keys[f.at] }

// repeat sends again what it has sent before.
func (f *forger) repeat() forgery {
	if f.liar == nil || len(f.liar.sent) == 0 {
		return forgery{}
	}
	s := f.liar.sent[f.rng.IntN(len(f.liar.sent))]
	if !f.t.is(s.To) {
		return forgery{}
	}
	return forgery{"any: sent before", s.To, copyOf(s.Message)}
}

// relay sends what another site has said.
func (f *forger) relay() forgery {
	kind := grid.Kind(1 + f.rng.IntN(wire.KindMax-1))
	h, ok := f.overheard(kind)
	if !ok || f.t.codec[kind] == nil {
		return forgery{}
	}
	return forgery{"any: of another site", f.victim(), copyOf(h.message)}
}

// copied is a message that is told from the one that it is a copy of.
type copied struct{ wire.Message }

func copyOf(m grid.Message) grid.Message {
	w, ok := m.(wire.Message)
	if !ok {
		return nil
	}
	return &copied{w}
}

// completion says that a job of another site is done, and what it costs.
func (f *forger) completion() forgery {
	a, ok := f.away()
	if !ok {
		return forgery{}
	}
	m := &market.JobCompletion{Task: a.task, Run: grid.Hour, Cost: grid.CreditsMax / 1000}
	m.Claim = f.receipt(a, f.t.IDs[f.at], f.t.IDs[f.at], m.Cost)
	return forgery{"market.job-completion: of another's job", a.home, m}
}

// receipt returns one that this member has signed.
func (f *forger) receipt(a award, payee, signer grid.SiteID, amount grid.Credits) *bank.Receipt {
	p := &wirepb.BankReceipt{
		Bank: string(f.t.bankOf(f.t.index[a.home]).Bank), Payer: string(a.home), Payee: string(payee), Job: wire.JobBytes(a.task.Job), Epoch: a.task.Epoch,
		Amount: int64(amount), Signer: string(signer),
	}
	return &bank.Receipt{Sealed: f.sign(f.own(), bank.ReceiptDomain, p)}
}

// cheque returns one that this member has signed in the name of a bank.
func (f *forger) cheque(a award, of, payee grid.SiteID, ceiling grid.Credits) *bank.Cheque {
	p := &wirepb.BankCheque{
		Bank: string(of), Payer: string(a.home), Payee: string(payee), Job: wire.JobBytes(a.task.Job), Epoch: a.task.Epoch,
		Ceiling: int64(ceiling), Expires: int64(f.t.n.Now() + 20*grid.Day),
	}
	return &bank.Cheque{Task: a.task, Payer: a.home, Sealed: f.sign(f.own(), bank.ChequeDomain, p)}
}

func (f *forger) abandonment() forgery {
	a, ok := f.away()
	if !ok {
		return forgery{}
	}
	return forgery{"market.job-completion: of another's job, given up", a.home, &market.JobCompletion{Task: a.task, Abandoned: true}}
}

func (f *forger) cancellation() forgery {
	a, ok := f.away()
	if !ok {
		return forgery{}
	}
	return forgery{"market.cancel: of another's job", a.site, &market.Cancel{Task: a.task, Hold: uint64(1 + f.rng.IntN(20)), Cause: "none"}}
}

// agreement signs for the payer of a job.
func (f *forger) agreement() forgery {
	a, ok := f.away()
	if !ok {
		return forgery{}
	}
	m := &market.Acknowledge{Task: a.task, Of: wire.MarketJobCompletion, Agreement: f.receipt(a, a.site, a.home, 0)}
	return forgery{"market.acknowledge: receipt for another", a.site, m}
}

func (f *forger) unknown() forgery {
	a, ok := f.away()
	if !ok {
		return forgery{}
	}
	m := &market.Acknowledge{Task: a.task, Of: wire.MarketJobSubmission, Hold: uint64(1 + f.rng.IntN(20)), Unknown: true}
	return forgery{"market.acknowledge: another's job is not known", a.home, m}
}

// resubmission sends somebody's job once more, as its own or as it was.
func (f *forger) resubmission() forgery {
	h, ok := f.overheard(wire.MarketJobSubmission)
	if !ok {
		return forgery{}
	}
	m := *h.message.(*market.JobSubmission)
	job := *m.Job
	m.Job = &job
	if f.rng.IntN(2) == 0 {
		job.Home = f.t.IDs[f.at]
	}
	return forgery{"market.job-submission: of another's job", f.victim(), &m}
}

// drawn says that a bank writes no cheque, or a forged one.
func (f *forger) drawn() forgery {
	a, ok := f.away()
	if !ok {
		return forgery{}
	}
	m := &bank.Drawn{Task: a.task, Refusal: bank.NoFunds}
	if f.rng.IntN(2) == 0 {
		m.Refusal, m.Cheque = bank.Done, f.cheque(a, f.bank(), a.site, grid.Credit)
	}
	return forgery{"bank.drawn: of no bank", a.home, m}
}

func (f *forger) settled() forgery {
	a, ok := f.away()
	if !ok {
		return forgery{}
	}
	if f.rng.IntN(2) == 0 {
		return forgery{"bank.settled: of no bank", a.home, &bank.Settled{Task: a.task}}
	}
	return forgery{"bank.redeemed: of no bank", a.site, &bank.Redeemed{Payer: a.home, Task: a.task}}
}

// forgedRedeem presents a cheque that no bank has signed.
func (f *forger) forgedRedeem() forgery {
	a, ok := f.away()
	if !ok {
		return forgery{}
	}
	self, of := f.t.IDs[f.at], f.bank()
	m := &bank.Redeem{Cheque: f.cheque(a, of, self, 1000*grid.Credit), Claim: f.receipt(a, self, self, 1000*grid.Credit), Agreement: f.receipt(a, self, a.home, 1000*grid.Credit)}
	return forgery{"bank.redeem: forged cheque", of, m}
}

// paidJob returns a submission that was overheard and came with a cheque; nil if there is none.
func (f *forger) paidJob() *market.JobSubmission {
	if h, ok := f.overheard(wire.MarketJobSubmission); ok {
		if s := h.message.(*market.JobSubmission); s.Cheque != nil {
			return s
		}
	}
	return nil
}

// stolenRedeem presents a good cheque, which another member was given or which it has
// redeemed, with a receipt of its own.
func (f *forger) stolenRedeem() forgery {
	s := f.paidJob()
	if s == nil {
		return forgery{}
	}
	a := award{task: grid.TaskID{Job: s.Job.ID, Epoch: s.Epoch}, home: s.Job.Home}
	self := f.t.IDs[f.at]
	m := &bank.Redeem{Cheque: s.Cheque, Claim: f.receipt(a, self, self, s.Cheque.Ceiling)}
	if f.rng.IntN(2) == 0 {
		m.Agreement = f.receipt(a, self, a.home, s.Cheque.Ceiling)
	}
	return forgery{"bank.redeem: another's cheque, or its own once more", s.Cheque.Bank, m}
}

// takenBack asks for a cheque that it was given.
func (f *forger) takenBack() forgery {
	s := f.paidJob()
	if s == nil {
		return forgery{}
	}
	return forgery{"bank.return: another's cheque", f.victim(), &bank.Return{Cheque: s.Cheque}}
}

// transfer moves less than nothing, or more than there is.
func (f *forger) transfer() forgery {
	amounts := []grid.Credits{-1, -grid.CreditsMax, grid.CreditsMax, 0}
	m := &bank.TransferRequest{ID: grid.JobID{Hi: f.rng.Uint64(), Lo: 1}, To: f.victim(), Amount: amounts[f.rng.IntN(len(amounts))]}
	return forgery{"bank.transfer: of what there is not", f.bank(), m}
}

// draw wants cheques for less than nothing, or more than there is, or a second one.
func (f *forger) draw() forgery {
	a, ok := f.away()
	if !ok {
		return forgery{}
	}
	amounts := []grid.Credits{-1, 0, grid.CreditsMax}
	m := &bank.Draw{Task: a.task, Payee: f.victim(), Ceiling: amounts[f.rng.IntN(len(amounts))], Lifetime: grid.Day}
	return forgery{"bank.draw: of what there is not", f.bank(), m}
}

// reseal returns what a quote says, signed by this member.
func (f *forger) reseal(q *directory.Quote) []byte {
	payload, _, err := wire.Open(directory.Domain, q.Sealed)
	p := new(wirepb.Quote)
	if err == nil {
		err = proto.Unmarshal(payload, p)
	}
	if err != nil {
		panic(fmt.Sprintf("hostile: a quote of %s: %v", q.Site, err))
	}
	p.Site, p.Name, p.Price, p.Sequence, p.Issued = string(q.Site), []byte(q.Name), int64(q.Price), q.Sequence, int64(q.Issued)
	return f.sign(f.own(), directory.Domain, p)
}

// stranger returns a quote of a site that is no member, whose signature is good, at a price
// that is on the page.
func (f *forger) stranger(p *directory.Page) *directory.Quote {
	id, err := wire.SiteOf(f.raw())
	if err != nil {
		panic(err)
	}
	now := f.t.n.Now()
	q := &wirepb.Quote{
		Site: string(id), Name: []byte("site-1"), Processors: 64, Speed: 1000, Bandwidth: 1000, Price: 1, Free: 64, Widest: 64, Foreign: true,
		Sequence: uint64(now), Issued: int64(now), Lifetime: int64(10 * grid.Minute),
	}
	if len(p.Quotes) > 0 {
		q.Price = int64(p.Quotes[0].Price)
	}
	return &directory.Quote{Site: id, Price: grid.Price(q.Price), Sealed: f.sign(f.nobody, directory.Domain, q)}
}

// raw returns the key of no member.
func (f *forger) raw() ed25519.PublicKey {
	b, err := f.nobody.GetPublic().Raw()
	if err != nil {
		panic(err)
	}
	return b
}

// published returns a quote of an honest site that a hostile holder was given, and where.
func (f *forger) published() (q *directory.Quote, copies []directory.Copy, ok bool) {
	h, ok := f.overheard(wire.DirectoryPublish)
	if !ok {
		return nil, nil, false
	}
	m := h.message.(*directory.Publish)
	return m.Quote, m.Copies, f.t.is(m.Quote.Site)
}

// publication publishes for another site, what that has said or a lower price.
func (f *forger) publication() forgery {
	q, copies, ok := f.published()
	if !ok {
		return forgery{}
	}
	cheap := *q
	if f.rng.IntN(2) == 0 {
		cheap.Price, cheap.Sequence = 1, q.Sequence+1
		cheap.Sealed = f.reseal(&cheap)
	}
	return forgery{"directory.publish: for another", f.victim(), &directory.Publish{Quote: &cheap, Copies: copies}}
}

// renamed publishes its own quote under the name of another site.
func (f *forger) renamed() forgery {
	q, copies, ok := f.published()
	if !ok {
		return forgery{}
	}
	own := *q
	own.Site, own.Price, own.Sequence, own.Issued = f.t.IDs[f.at], 1, q.Sequence+1, f.t.n.Now()
	own.Sealed = f.reseal(&own)
	return forgery{"directory.publish: under another's name", f.victim(), &directory.Publish{Quote: &own, Copies: copies}}
}

func (f *forger) withdrawal() forgery {
	q, copies, ok := f.published()
	if !ok || len(copies) == 0 {
		return forgery{}
	}
	return forgery{"directory.withdraw: for another", f.victim(), &directory.Withdraw{Cell: copies[0].Cell, Quote: q}}
}

// page answers what nobody has asked.
func (f *forger) page() forgery {
	q, copies, ok := f.published()
	if !ok || len(copies) == 0 {
		return forgery{}
	}
	m := &directory.Page{Token: uint64(f.rng.IntN(1 << 12)), Cell: copies[0].Cell, Held: true, Mature: true, Quotes: []*directory.Quote{q}}
	return forgery{"directory.page: without a question", f.victim(), m}
}

// revocation takes back what honest members have, in the name of roots that are none.
func (f *forger) revocation() forgery {
	return forgery{"member.revoked: by no root", f.victim(), &member.Revocations{List: f.list}}
}

// membership shows proofs that nobody has asked for, of roots that are none.
func (f *forger) membership() forgery {
	return forgery{"member.inform: of another federation", f.victim(), &member.Inform{Proofs: []member.Proof{f.proof}}}
}

// beside sends forged cheques ahead of a job that is paid for.
func (f *forger) beside(to grid.SiteID, m *market.JobSubmission, out *grid.Outbox) {
	if m.Cheque == nil || f.rng.IntN(2) == 0 {
		return
	}
	a := award{task: grid.TaskID{Job: m.Job.ID, Epoch: m.Epoch}, home: f.t.IDs[f.at]}
	forged := *m
	what := "market.job-submission: cheque that no bank has signed"
	forged.Cheque = f.cheque(a, m.Cheque.Bank, to, m.Cost)
	if f.rng.IntN(2) == 0 {
		what = "market.job-submission: cheque of no bank that is accepted"
		forged.Cheque = f.cheque(a, f.t.IDs[f.at], to, m.Cost)
	}
	f.t.mark(what, &forged)
	out.Send(to, &forged)
}

// overcharge returns a completion that wants more than was agreed.
func (f *forger) overcharge(m *market.JobCompletion) grid.Message {
	if m.Claim == nil || m.Abandoned {
		return m
	}
	much := *m
	much.Cost = min(1000*m.Cost+grid.Credit, grid.CreditsMax)
	p := &wirepb.BankReceipt{
		Bank: string(m.Claim.Bank), Payer: string(m.Claim.Payer), Payee: string(m.Claim.Payee), Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch,
		Amount: int64(much.Cost), Signer: string(m.Claim.Signer),
	}
	much.Claim = &bank.Receipt{Sealed: f.sign(f.own(), bank.ReceiptDomain, p)}
	f.t.mark("market.job-completion: more than was agreed", &much)
	return &much
}
