package chaos

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"gridnode/coalloc/dataset"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/member"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// frameWatch has some of what sites say travel in frames, as between real nodes, and looks at what
// arrives. Quotes, receipts and whatever else has a seal have none here, and are left out:
//
//   - it is taken, and the same as what was said;
//   - it has nothing of a job that only its home is to know.
type frameWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	codec  scenario.Codec
	said   [wire.KindMax]int64 // messages, by kind
}

// frameEvery is of how many messages of a kind one travels in a frame, the first one included.
const frameEvery = 64

func watchFrames(n *testnet.Network, c *testnet.Checker, f *member.Federation) {
	w := &frameWatch{n: n, checks: c, codec: scenario.NewCodec(f)}
	unsealed := []string{market.Protocol.ID, lease.Protocol.ID, sibling.Protocol.ID, dataset.Protocol.ID, member.NewProtocol(f).ID}
	for kind, p := range w.codec {
		if !slices.Contains(unsealed, p.ID) {
			delete(w.codec, kind)
		}
	}
	n.Observe(testnet.Observer{Send: w.send})
}

// send takes what is said.
func (w *frameWatch) send(_ grid.Time, from int, to grid.SiteID, m grid.Message) {
	kind := m.MessageKind()
	if w.codec[kind] == nil {
		return
	}
	if w.said[kind]++; w.said[kind]%frameEvery != 1 {
		return
	}
	arrived, err := w.codec.Travel(w.n.ID(from), m)
	if err != nil {
		w.checks.Violated("%s says to %s what does not arrive, %s: %w", w.n.ID(from), to, wire.KindName(kind), err)
		return
	}
	if !proto.Equal(m.(wire.Message).Proto(), arrived.(wire.Message).Proto()) {
		w.checks.Violated("%s says to %s %+v, and what arrives is %+v", w.n.ID(from), to, m, arrived)
	}
	if s, yes := arrived.(*market.JobSubmission); yes && s.Job.Terms != nil && s.Job.Terms.Notify != "" {
		w.checks.Violated("%s tells %s of job %s what to run at home as it ends: %s", w.n.ID(from), to, s.Job.ID, s.Job.Terms.Notify)
	}
}
