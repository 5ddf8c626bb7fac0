package directory

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Domain is the domain under which quotes are signed.
const Domain = "quote"

// seal signs the quote with all that it says.
func (q *Quote) seal(sign func(payload []byte) ([]byte, error)) error {
	payload, err := proto.Marshal(q.proto())
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if q.Sealed, err = sign(payload); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return q.Check()
}

func (q *Quote) proto() *wirepb.Quote {
	var gpus []*wirepb.GPUs
	for _, g := range q.GPUs {
		gpus = append(gpus, &wirepb.GPUs{Type: g.Type, Count: g.Count, Free: g.Free, Wait: int64(g.Wait)})
	}
	return &wirepb.Quote{
		Site: string(q.Site), Name: []byte(q.Name), Processors: q.Processors, Memory: q.Memory,
		Speed: q.Speed, Bandwidth: q.Bandwidth, Price: int64(q.Price), Cost: uint32(q.Cost),
		Free: q.Free, Widest: q.Widest, Wait: int64(q.Wait), Foreign: q.Foreign,
		Sequence: q.Sequence, Issued: int64(q.Issued), Lifetime: int64(q.Lifetime), Withdrawn: q.Withdrawn, Modules: q.Modules,
		Gpus: gpus, GpuWeight: q.GPUWeight,
	}
}

// OpenQuote verifies a signed quote and returns it, or an error wrapping
// wire.ErrMalformed. Whether it has expired is for the caller to see.
func OpenQuote(sealed []byte) (*Quote, error) {
	if len(sealed) > quoteBytesMax {
		return nil, wire.Malformed("signed quote of %d bytes, at most %d", len(sealed), quoteBytesMax)
	}
	payload, signer, err := wire.Open(Domain, sealed)
	if err != nil {
		return nil, err
	}
	var p wirepb.Quote
	if err := proto.Unmarshal(payload, &p); err != nil {
		return nil, wire.Malformed("quote: %v", err)
	}
	if p.Cost > uint32(grid.CostPaper) {
		return nil, wire.Malformed("quote with cost model %d", p.Cost)
	}
	q := &Quote{
		Site: grid.SiteID(p.Site), Name: string(p.Name),
		Resources: grid.Resources{Processors: p.Processors, Memory: p.Memory},
		Rating:    grid.Rating{Speed: p.Speed, Bandwidth: p.Bandwidth},
		Price:     grid.Price(p.Price), Cost: grid.CostModel(p.Cost),
		Free: p.Free, Widest: p.Widest, Wait: grid.Time(p.Wait), Foreign: p.Foreign,
		Sequence: p.Sequence, Issued: grid.Time(p.Issued), Lifetime: grid.Time(p.Lifetime), Withdrawn: p.Withdrawn, Modules: p.Modules,
		GPUWeight: p.GpuWeight, Sealed: sealed,
	}
	for _, g := range p.Gpus {
		q.GPUs = append(q.GPUs, grid.GPUCount{Type: g.GetType(), Count: g.GetCount(), Free: g.GetFree(), Wait: grid.Time(g.GetWait())})
	}
	if err := q.Check(); err != nil {
		return nil, wire.Malformed("%v", err)
	}
	if q.Site != signer {
		return nil, wire.Malformed("quote of %q signed by %q", q.Site, signer)
	}
	q.spread = spreadOf(q.Site)
	return q, nil
}

// opener opens signed quotes as OpenQuote does.
type opener func(sealed []byte) (*Quote, error)

// own opens a quote that only its own site may send.
func (open opener) own(from grid.SiteID, sealed []byte) (*Quote, error) {
	q, err := open(sealed)
	if err == nil && q.Site != from {
		return nil, wire.Malformed("quote of %q sent by %q", q.Site, from)
	}
	return q, err
}
