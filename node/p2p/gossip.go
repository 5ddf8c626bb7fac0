package p2p

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/node/p2p/allowance"
)

// topic is a gossip topic this node takes part in.
type topic struct {
	Topic
	joined *pubsub.Topic

	mu      sync.Mutex
	authors map[peer.ID]*allowance.Bucket
}

// startGossip joins every topic of the configuration.
func (n *Network) startGossip() error {
	if len(n.cfg.Topics) == 0 {
		return nil
	}
	params := pubsub.DefaultGossipSubParams()
	// Load reports are small and soon replaced: a thin mesh and few announcements
	// halve their cost (1.5 instead of 2.3 KB a delivery measured) and lose none.
	params.D, params.Dlo, params.Dhi, params.Dout, params.Dlazy = 4, 3, 8, 1, 3
	params.GossipFactor = 0.05
	params.Connectors = 1 // they dial whom the mesh recommends, which nobody here does
	sizeMax := 0
	for _, t := range n.cfg.Topics {
		sizeMax = max(sizeMax, t.SizeMax)
	}
	gossip, err := pubsub.NewGossipSub(n.ctx, &meteredHost{n.host, n, allowance.Topics},
		pubsub.WithMessageSignaturePolicy(pubsub.StrictSign),
		pubsub.WithGossipSubParams(params),
		pubsub.WithValidateQueueSize(gossipQueue),
		pubsub.WithMaxMessageSize(sizeMax*16+4096)) // of an RPC, which holds several messages
	if err != nil {
		return err
	}
	for _, t := range n.cfg.Topics {
		if err := n.joinTopic(gossip, t); err != nil {
			return fmt.Errorf("topic %s: %w", t.Name, err)
		}
	}
	return nil
}

func (n *Network) joinTopic(gossip *pubsub.PubSub, of Topic) error {
	name := "/gridnode/" + n.cfg.Federation + "/" + of.Name
	t := &topic{Topic: of, authors: make(map[peer.ID]*allowance.Bucket)}
	if err := gossip.RegisterTopicValidator(name, n.validator(t), pubsub.WithValidatorInline(true)); err != nil {
		return err
	}
	var err error
	if t.joined, err = gossip.Join(name); err != nil {
		return err
	}
	sub, err := t.joined.Subscribe(pubsub.WithBufferSize(256))
	if err != nil {
		return err
	}
	n.topics[of.Name] = t
	n.wg.Go(func() { n.listenTo(sub) })
	return nil
}

// validator decides which messages are forwarded: those of at most SizeMax bytes
// that decode and whose author is within its rate. pubsub has verified that the
// author signed the message. What decoded travels on as validator data.
func (n *Network) validator(t *topic) pubsub.ValidatorEx {
	return func(_ context.Context, _ peer.ID, m *pubsub.Message) pubsub.ValidationResult {
		author := m.GetFrom()
		if len(m.Data) > t.SizeMax {
			n.stats.gossip.Add(1)
			return pubsub.ValidationReject
		}
		decoded, err := t.Protocol.Decode(grid.SiteID(author.String()), m.Data)
		if err != nil {
			n.stats.gossip.Add(1)
			n.stats.malformed()
			n.log.Debug("malformed gossip", "author", author, "topic", t.Name, "error", err)
			return pubsub.ValidationReject
		}
		if !t.within(author, time.Now()) {
			n.stats.gossip.Add(1)
			return pubsub.ValidationIgnore
		}
		m.ValidatorData = decoded
		return pubsub.ValidationAccept
	}
}

// within takes a token of author's rate.
func (t *topic) within(author peer.ID, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.authors[author]
	if b == nil {
		if len(t.authors) >= peersMax {
			for id, old := range t.authors {
				if old.Full(now) {
					delete(t.authors, id)
				}
			}
		}
		if len(t.authors) >= peersMax {
			return false
		}
		full := allowance.NewBucket(now, gossipRate, gossipBurst)
		b = &full
		t.authors[author] = b
	}
	return b.Try(now, 1)
}

// listenTo delivers what others publish. Gossip is soft: what finds no room is dropped.
func (n *Network) listenTo(sub *pubsub.Subscription) {
	defer sub.Cancel()
	for {
		m, err := sub.Next(n.ctx)
		if err != nil {
			return
		}
		message, ok := m.ValidatorData.(grid.Message)
		if !ok || m.GetFrom() == n.host.ID() {
			continue
		}
		n.stats.received(message.MessageKind(), len(m.Data))
		if !n.cfg.Deliver(&grid.Delivery{From: grid.SiteID(m.GetFrom().String()), Message: message}) {
			n.stats.gossip.Add(1)
		}
	}
}

// Publish gossips a message on a topic of the configuration. It does not block;
// delivery is not certain.
func (n *Network) Publish(name string, message grid.Message) {
	t := n.topics[name]
	if t == nil {
		n.log.Error("nobody listens to a topic", "topic", name)
		return
	}
	frame, err := encode(message, 0)
	if err != nil {
		n.log.Error("gossip cannot be encoded", "topic", name, "error", err)
		return
	}
	_, prefix := binary.Uvarint(frame)
	data := frame[prefix:]
	if len(data) > t.SizeMax {
		n.log.Error("gossip is too long", "topic", name, "bytes", len(data), "most", t.SizeMax)
		return
	}
	if err := t.joined.Publish(n.ctx, data); err != nil {
		n.log.Debug("gossip failed", "topic", name, "error", err)
		return
	}
	n.stats.sent([]grid.Message{message}, []int{len(data)})
}
