package directory

import (
	"google.golang.org/protobuf/proto"

	"gridnode/directory/trie"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Protocol is how directories speak to each other. Its decoders verify every
// signature, and that each quote was signed by the site it speaks of.
var Protocol = *NewProtocol(OpenQuote)

// NewProtocol returns Protocol with decoders that open signed quotes by a function
// which gives what OpenQuote gives, and may remember it: a quote comes with every
// page that has it. It is called concurrently.
func NewProtocol(open func(sealed []byte) (*Quote, error)) *wire.Protocol {
	o := opener(open)
	return &wire.Protocol{
		ID: "/gridnode/directory/1.0.0",
		Decoders: map[grid.Kind]wire.Decoder{
			wire.DirectoryPublish:   o.decodePublish,
			wire.DirectoryPublished: decodePublished,
			wire.DirectoryWithdraw:  o.decodeWithdraw,
			wire.DirectoryScan:      decodeScan,
			wire.DirectoryPage:      o.decodePage,
			wire.DirectoryReport:    decodeReport,
			wire.DirectoryReported:  decodeReported,
		},
	}
}

// Proto returns the wire form. A quote that was not signed cannot travel.
func (m *Publish) Proto() proto.Message {
	p := &wirepb.Publish{Quote: m.Quote.Sealed}
	for i := range m.Copies {
		c := &m.Copies[i]
		p.Copies = append(p.Copies, &wirepb.Copy{Cell: c.Cell.proto(), Quiet: c.Quiet, Skip: optional(c.Skip, c.Spare), Safe: c.Safe, Ring: c.Ring})
	}
	return p
}

func (open opener) decodePublish(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.Publish
	if err := wire.Unmarshal(body, &p, wire.DirectoryPublish); err != nil {
		return nil, err
	}
	if len(p.Copies) == 0 || len(p.Copies) > CopiesMax {
		return nil, wire.Malformed("quote for %d cells, want 1 to %d", len(p.Copies), CopiesMax)
	}
	m := &Publish{Copies: make([]Copy, len(p.Copies))}
	var err error
	for i, c := range p.Copies {
		m.Copies[i] = Copy{Quiet: c.GetQuiet(), Spare: c.GetSkip() != nil, Safe: c.GetSafe(), Ring: c.GetRing()}
		if m.Copies[i].Cell, err = openCell(c.GetCell()); err != nil {
			return nil, err
		}
		if m.Copies[i].Skip, err = openPrefix(c.GetSkip()); err != nil {
			return nil, err
		}
	}
	m.Quote, err = open.own(from, p.Quote)
	return m, err
}

// Proto returns the wire form.
func (m *Published) Proto() proto.Message {
	p := &wirepb.Published{Sequence: m.Sequence}
	for i := range m.Receipts {
		r := &m.Receipts[i]
		p.Receipts = append(p.Receipts, &wirepb.Receipt{
			Cell: r.Cell.proto(), Gone: r.Gone, Refused: r.Refused, Closing: r.Closing, Closed: r.Closed,
			Moved: optional(r.To, r.Moved), Absent: r.Absent, Fences: prefixProtos(r.Fences), Ring: r.Ring, Holders: siteTexts(r.Holders),
		})
	}
	return p
}

func decodePublished(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.Published
	if err := wire.Unmarshal(body, &p, wire.DirectoryPublished); err != nil {
		return nil, err
	}
	if len(p.Receipts) == 0 || len(p.Receipts) > CopiesMax {
		return nil, wire.Malformed("answer about %d cells, want 1 to %d", len(p.Receipts), CopiesMax)
	}
	m := &Published{Sequence: p.Sequence, Receipts: make([]Receipt, len(p.Receipts))}
	for i := range p.Receipts {
		if err := m.Receipts[i].open(p.Receipts[i]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (r *Receipt) open(p *wirepb.Receipt) (err error) {
	*r = Receipt{
		Gone: p.GetGone(), Refused: p.GetRefused(), Closing: p.GetClosing(), Closed: p.GetClosed(),
		Moved: p.GetMoved() != nil, Absent: p.GetAbsent(), Ring: p.GetRing(),
	}
	if r.Cell, err = openCell(p.GetCell()); err != nil {
		return err
	}
	if r.To, err = openPrefix(p.GetMoved()); err != nil {
		return err
	}
	if r.Holders, err = openHolders(p.GetHolders()); err != nil {
		return err
	}
	r.Fences, err = openFences(r.Cell.Prefix, p.GetFences())
	return err
}

// Proto returns the wire form.
func (m *Withdraw) Proto() proto.Message {
	return &wirepb.Withdraw{Cell: m.Cell.proto(), Quote: m.Quote.Sealed, Moved: optional(m.To, m.Moved)}
}

func (open opener) decodeWithdraw(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.Withdraw
	if err := wire.Unmarshal(body, &p, wire.DirectoryWithdraw); err != nil {
		return nil, err
	}
	m := &Withdraw{Moved: p.Moved != nil}
	var err error
	if m.Cell, err = openCell(p.Cell); err != nil {
		return nil, err
	}
	if m.To, err = openPrefix(p.Moved); err != nil {
		return nil, err
	}
	m.Quote, err = open.own(from, p.Quote)
	return m, err
}

// Proto returns the wire form.
func (m *Scan) Proto() proto.Message {
	return &wirepb.Scan{
		Token: m.Token, Cell: m.Cell.proto(), At: positionProto(m.At), Descending: m.Descending, Limit: uint32(m.Limit),
		Filter: &wirepb.Filter{
			PriceMax: int64(m.Filter.PriceMax), SpeedMin: m.Filter.SpeedMin, FreeMin: m.Filter.FreeMin,
			ProcessorsMin: m.Filter.ProcessorsMin, ForeignOnly: m.Filter.ForeignOnly,
			Gpus: m.Filter.GPUs.Count, GpuType: m.Filter.GPUs.Type,
		},
		Fences: m.Fences, Ring: m.Ring, Via: string(m.Via), Copy: m.Image, Answered: uint32(m.Answered),
	}
}

func decodeScan(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.Scan
	if err := wire.Unmarshal(body, &p, wire.DirectoryScan); err != nil {
		return nil, err
	}
	if p.Limit > PageMax {
		return nil, wire.Malformed("scan for %d quotes, at most %d", p.Limit, PageMax)
	}
	f := p.Filter
	m := &Scan{
		Token: p.Token, At: openPosition(p.At), Descending: p.Descending, Limit: int32(p.Limit),
		Filter: Filter{
			PriceMax: grid.Price(f.GetPriceMax()), SpeedMin: f.GetSpeedMin(), FreeMin: f.GetFreeMin(),
			ProcessorsMin: f.GetProcessorsMin(), ForeignOnly: f.GetForeignOnly(),
			GPUs: grid.GPUs{Count: f.GetGpus(), Type: f.GetGpuType()},
		},
		Fences: p.Fences, Ring: p.Ring, Via: grid.SiteID(p.Via), Image: p.Copy, Answered: int32(p.Answered),
	}
	if p.Answered > mirroredScansMax || p.Answered > 0 && !p.Copy {
		return nil, wire.Malformed("scan of a mirror that has answered %d, at most %d, and with copies only", p.Answered, mirroredScansMax)
	}
	if len(m.Via) > siteMax {
		return nil, wire.Malformed("scan in the stead of a site with an ID of %d bytes, at most %d", len(m.Via), siteMax)
	}
	if err := m.Filter.check(); err != nil {
		return nil, wire.Malformed("scan: %v", err)
	}
	var err error
	m.Cell, err = openCell(p.Cell)
	return m, err
}

// Proto returns the wire form.
func (m *Page) Proto() proto.Message {
	p := &wirepb.Page{
		Token: m.Token, Cell: m.Cell.proto(), More: m.More, Held: m.Held, Mature: m.Mature,
		Count: uint32(m.Count), Sum: m.Sum, HasFences: m.HasFences, Fences: prefixProtos(m.Fences), Ring: m.Ring,
	}
	for _, q := range m.Quotes {
		p.Quotes = append(p.Quotes, q.Sealed)
	}
	p.Barren, p.Mirrors, p.Holders = prefixProtos(m.Barren), siteTexts(m.Mirrors), siteTexts(m.Holders)
	for _, s := range m.Summaries {
		if s == nil {
			p.Summaries = append(p.Summaries, &wirepb.Summary{Unknown: true})
		} else {
			p.Summaries = append(p.Summaries, summaryProto(s))
		}
	}
	for _, h := range m.Hints {
		p.Hints = append(p.Hints, &wirepb.Hint{Cell: prefixProto(h.Cell), Holders: siteTexts(h.Holders)})
	}
	return p
}

func (open opener) decodePage(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.Page
	if err := wire.Unmarshal(body, &p, wire.DirectoryPage); err != nil {
		return nil, err
	}
	if len(p.Quotes) > imagePageMax || p.Count > recordsMax {
		return nil, wire.Malformed("page of %d quotes, at most %d, from a cell of %d, at most %d", len(p.Quotes), imagePageMax, p.Count, recordsMax)
	}
	m := &Page{
		Token: p.Token, More: p.More, Held: p.Held, Mature: p.Mature,
		Count: int32(p.Count), Sum: p.Sum, HasFences: p.HasFences, Ring: p.Ring,
	}
	var err error
	if m.Cell, err = openCell(p.Cell); err != nil {
		return nil, err
	}
	if m.Fences, err = openFences(m.Cell.Prefix, p.Fences); err != nil {
		return nil, err
	}
	if m.Hints, err = openHints(m.Cell, &p); err != nil {
		return nil, err
	}
	if m.Mirrors, err = openHolders(p.Mirrors); err != nil {
		return nil, err
	}
	if m.Holders, err = openHolders(p.Holders); err != nil {
		return nil, err
	}
	if m.Summaries, err = openSummaries(&p); err != nil {
		return nil, err
	}
	if m.Barren, err = openBarren(m.Cell, p.Barren); err != nil {
		return nil, err
	}
	for _, sealed := range p.Quotes {
		q, err := open(sealed)
		if err != nil {
			return nil, err
		}
		m.Quotes = append(m.Quotes, q)
	}
	return m, nil
}

// openHints opens what a page of a cell says of the holders of cells below.
func openHints(c cell, p *wirepb.Page) (hints []Hint, err error) {
	if len(p.Hints) > 2*HintsMax || len(p.Hints) > 0 && !p.HasFences {
		return nil, wire.Malformed("page with %d hints, at most %d, and with fences only", len(p.Hints), 2*HintsMax)
	}
	for _, hint := range p.Hints {
		var h Hint
		if h.Cell, err = openPrefix(hint.GetCell()); err != nil {
			return nil, err
		}
		if h.Holders, err = openHolders(hint.GetHolders()); err != nil {
			return nil, err
		}
		if !c.Covers(h.Cell) || len(h.Holders) == 0 {
			return nil, wire.Malformed("hint of %d holders of %v in a page of %v", len(h.Holders), h.Cell, c)
		}
		hints = append(hints, h)
	}
	return hints, nil
}

// openSummaries opens the summaries of a page, one for each fence or none.
func openSummaries(p *wirepb.Page) (list []*trie.Summary, err error) {
	if len(p.Summaries) > 0 && len(p.Summaries) != len(p.Fences) {
		return nil, wire.Malformed("page with %d summaries of %d fences", len(p.Summaries), len(p.Fences))
	}
	for _, s := range p.Summaries {
		if s.GetUnknown() {
			list = append(list, nil)
		} else {
			list = append(list, openSummary(s))
		}
	}
	return list, nil
}

// openBarren opens what a page of a cell says of cells that have nothing.
func openBarren(c cell, protos []*wirepb.Prefix) (list []trie.Prefix, err error) {
	if len(protos) > barrenMax {
		return nil, wire.Malformed("page with %d cells that have nothing, at most %d", len(protos), barrenMax)
	}
	for _, p := range protos {
		x, err := openPrefix(p)
		if err != nil {
			return nil, err
		}
		if !c.Covers(x) {
			return nil, wire.Malformed("page of %v says that %v has nothing", c, x)
		}
		list = append(list, x)
	}
	return list, nil
}

// Proto returns the wire form.
func (m *Report) Proto() proto.Message {
	p := &wirepb.Report{Token: m.Token, Cell: m.Cell.proto(), Child: prefixProto(m.Child), Holders: siteTexts(m.Holders)}
	if s := m.Summary; s != nil {
		p.Summary = summaryProto(s)
	}
	return p
}

func decodeReport(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.Report
	if err := wire.Unmarshal(body, &p, wire.DirectoryReport); err != nil {
		return nil, err
	}
	m := &Report{Token: p.Token}
	var err error
	if m.Cell, err = openCell(p.Cell); err != nil {
		return nil, err
	}
	if m.Child, err = openPrefix(p.Child); err != nil {
		return nil, err
	}
	if m.Holders, err = openHolders(p.Holders); err != nil {
		return nil, err
	}
	if s := p.Summary; s != nil {
		m.Summary = openSummary(s)
	}
	if !m.Cell.Covers(m.Child) {
		return nil, wire.Malformed("report of %v, which %v does not cover", m.Child, m.Cell)
	}
	return m, nil
}

// Proto returns the wire form.
func (m *Reported) Proto() proto.Message {
	return &wirepb.Reported{
		Token: m.Token, Moved: optional(m.To, m.Moved), Strays: uint32(m.Strays), Fences: prefixProtos(m.Fences), Ring: m.Ring,
		Holders: siteTexts(m.Holders),
	}
}

func decodeReported(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.Reported
	if err := wire.Unmarshal(body, &p, wire.DirectoryReported); err != nil {
		return nil, err
	}
	if p.Strays > recordsMax {
		return nil, wire.Malformed("%d strays", p.Strays)
	}
	m := &Reported{Token: p.Token, Moved: p.Moved != nil, Strays: int32(p.Strays), Ring: p.Ring}
	var err error
	if m.To, err = openPrefix(p.Moved); err != nil {
		return nil, err
	}
	if m.Holders, err = openHolders(p.Holders); err != nil {
		return nil, err
	}
	m.Fences, err = openFences(trie.Prefix{}, p.Fences)
	return m, err
}
