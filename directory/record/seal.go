package record

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Domain is the domain under which records are signed.
const Domain = "site-record"

// seal signs the record with all that it says.
func (r *Record) seal(sign func(payload []byte) ([]byte, error)) error {
	payload, err := proto.Marshal(&wirepb.SiteRecord{
		Site: string(r.Site), Name: []byte(r.Name), Authority: []byte(r.Authority), Addresses: r.Addresses,
		Processors: r.Processors, Memory: r.Memory, Speed: r.Speed, Bandwidth: r.Bandwidth, Services: uint32(r.Services),
		Sequence: r.Sequence, Issued: int64(r.Issued), Lifetime: int64(r.Lifetime),
	})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if r.Sealed, err = sign(payload); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return r.Check()
}

// Open verifies a signed record and returns it, or an error wrapping wire.ErrMalformed.
// Whether it has expired is for the caller to see.
func Open(sealed []byte) (*Record, error) {
	if len(sealed) > sealedMax {
		return nil, wire.Malformed("signed site record of %d bytes, at most %d", len(sealed), sealedMax)
	}
	payload, signer, err := wire.Open(Domain, sealed)
	if err != nil {
		return nil, err
	}
	var p wirepb.SiteRecord
	if err := proto.Unmarshal(payload, &p); err != nil {
		return nil, wire.Malformed("site record: %v", err)
	}
	if p.Services >= uint32(unknown) {
		p.Services &= uint32(unknown) - 1 // what later versions do for others is nothing to this one
	}
	r := &Record{
		Site: grid.SiteID(p.Site),
		Offer: Offer{
			Name: string(p.Name), Authority: string(p.Authority), Addresses: p.Addresses,
			Resources: grid.Resources{Processors: p.Processors, Memory: p.Memory},
			Rating:    grid.Rating{Speed: p.Speed, Bandwidth: p.Bandwidth}, Services: Services(p.Services),
		},
		Sequence: p.Sequence, Issued: grid.Time(p.Issued), Lifetime: grid.Time(p.Lifetime), Sealed: sealed,
	}
	if err := r.Check(); err != nil {
		return nil, wire.Malformed("%v", err)
	}
	if r.Site != signer {
		return nil, wire.Malformed("record of %q signed by %q", r.Site, signer)
	}
	return r, nil
}
