package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

func positionProto(p trie.Position) *wirepb.Position { return &wirepb.Position{Hi: p.Hi, Lo: p.Lo} }

func openPosition(p *wirepb.Position) trie.Position {
	return trie.Position{Hi: p.GetHi(), Lo: p.GetLo()}
}

// optional returns the wire form of a prefix that is there only if ok.
func optional(x trie.Prefix, ok bool) *wirepb.Prefix {
	if !ok {
		return nil
	}
	return prefixProto(x)
}

func prefixProto(x trie.Prefix) *wirepb.Prefix {
	return &wirepb.Prefix{Hi: x.Bits.Hi, Lo: x.Bits.Lo, Length: uint32(x.Length)}
}

func openPrefix(p *wirepb.Prefix) (trie.Prefix, error) {
	if p.GetLength() > 128 {
		return trie.Prefix{}, wire.Malformed("prefix of %d bits", p.GetLength())
	}
	x := trie.Prefix{Bits: trie.Position{Hi: p.GetHi(), Lo: p.GetLo()}, Length: uint8(p.GetLength())}
	if !x.Valid() {
		return trie.Prefix{}, wire.Malformed("prefix with bits behind its %d", x.Length)
	}
	return x, nil
}

func prefixProtos(list []trie.Prefix) []*wirepb.Prefix {
	var protos []*wirepb.Prefix
	for _, x := range list {
		protos = append(protos, prefixProto(x))
	}
	return protos
}

// openFences opens a list of fences of x, which must be in order.
func openFences(x trie.Prefix, protos []*wirepb.Prefix) ([]trie.Prefix, error) {
	if len(protos) > trie.FencesMax {
		return nil, wire.Malformed("%d fences, at most %d", len(protos), trie.FencesMax)
	}
	var list []trie.Prefix
	for _, p := range protos {
		f, err := openPrefix(p)
		if err != nil {
			return nil, err
		}
		if n := len(list); !x.Covers(f) || n > 0 && list[n-1].Compare(f) >= 0 {
			return nil, wire.Malformed("fence %v is out of order or not in %v", f, x)
		}
		list = append(list, f)
	}
	return list, nil
}

func summaryProto(s *trie.Summary) *wirepb.Summary {
	return &wirepb.Summary{Processors: s.Processors, Free: s.Free, Speed: s.Speed, Price: int64(s.Price)}
}

// openSummary opens a summary; its numbers are only compared, so any will do.
func openSummary(p *wirepb.Summary) *trie.Summary {
	return &trie.Summary{Processors: p.GetProcessors(), Free: p.GetFree(), Speed: p.GetSpeed(), Price: grid.Price(p.GetPrice())}
}

func (c cell) proto() *wirepb.Cell {
	return &wirepb.Cell{Attribute: uint32(c.attribute), Prefix: prefixProto(c.Prefix)}
}

func openCell(p *wirepb.Cell) (cell, error) {
	if p.GetAttribute() >= attributes {
		return cell{}, wire.Malformed("cell of %v", Attribute(min(p.GetAttribute(), 255)))
	}
	x, err := openPrefix(p.GetPrefix())
	return cell{Attribute(p.GetAttribute()), x}, err
}

func siteTexts(sites []grid.SiteID) (texts []string) {
	for _, s := range sites {
		texts = append(texts, string(s))
	}
	return texts
}

// openHolders opens a list of a cell's holders: each site once.
func openHolders(texts []string) (sites []grid.SiteID, err error) {
	if len(texts) > replicasMax {
		return nil, wire.Malformed("%d holders, at most %d", len(texts), replicasMax)
	}
	for _, s := range texts {
		if len(s) == 0 || len(s) > siteMax || slices.Contains(sites, grid.SiteID(s)) {
			return nil, wire.Malformed("holder %q: want 1 to %d bytes, each once", s, siteMax)
		}
		sites = append(sites, grid.SiteID(s))
	}
	return sites, nil
}
