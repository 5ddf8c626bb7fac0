package grid

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Credits is an amount of money in integer micro-credits.
type Credits int64

// Credit is one credit.
const Credit Credits = 1_000_000

// CreditsMax bounds every amount a user or a peer may name; sums of a thousand
// of them still fit.
const CreditsMax Credits = math.MaxInt64 / 1024

// Price is what a site charges, in micro-credits per hour: per processor-hour
// under CostProcessorTime, per hour of the whole job under CostPaper.
// Zero is a legal price (a site that gives its time away).
type Price = Credits

// CostModel says what a price is multiplied with.
type CostModel uint8

const (
	// CostProcessorTime charges price × processors × time; the default of real sites.
	CostProcessorTime CostModel = iota
	// CostPaper charges price × time whatever the width (Grid-Federation, eq. 3).
	CostPaper
)

// String returns the name used in configuration files.
func (m CostModel) String() string {
	if m == CostPaper {
		return "paper"
	}
	return "processor-time"
}

// ParseCostModel is the inverse of String.
func ParseCostModel(s string) (CostModel, error) {
	for m := CostProcessorTime; m <= CostPaper; m++ {
		if s == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("cost model %q: want paper or processor-time", s)
}

// Cost returns what span on processors costs at price, rounded to the nearest
// micro-credit, saturating at CreditsMax.
func (m CostModel) Cost(price Price, processors int64, span Time) Credits {
	if m == CostPaper {
		processors = 1
	}
	if price <= 0 || processors <= 0 || span <= 0 {
		return 0
	}
	// The product may have 192 bits; what is beyond 128 is beyond CreditsMax too.
	high, low := bits.Mul64(uint64(price), uint64(processors))
	over, high := bits.Mul64(high, uint64(span))
	hi, lo := bits.Mul64(low, uint64(span))
	lo, carry := bits.Add64(lo, uint64(Hour)/2, 0)
	hi, carry = bits.Add64(hi, high, carry)
	if over+carry > 0 || hi >= uint64(Hour) {
		return CreditsMax
	}
	cost, _ := bits.Div64(hi, lo, uint64(Hour))
	return Credits(min(cost, uint64(CreditsMax)))
}

// String prints credits with as many decimals as needed ("2.5").
func (c Credits) String() string {
	sign := ""
	u := uint64(c)
	if c < 0 {
		sign, u = "-", -u
	}
	whole, frac := u/uint64(Credit), u%uint64(Credit)
	if frac == 0 {
		return sign + strconv.FormatUint(whole, 10)
	}
	return sign + strconv.FormatUint(whole, 10) + "." + strings.TrimRight(fmt.Sprintf("%06d", frac), "0")
}

// Float returns c in credits, for reports only: no decision may use it.
func (c Credits) Float() float64 { return float64(c) / float64(Credit) }

// ErrCredits is wrapped by ParseCredits' errors.
var ErrCredits = errors.New("not an amount of credits")

// ParseCredits reads a non-negative decimal number with at most six decimals.
func ParseCredits(s string) (Credits, error) {
	whole, frac, dotted := strings.Cut(s, ".")
	if whole == "" && frac == "" || dotted && frac == "" || len(frac) > 6 {
		return 0, fmt.Errorf("%q: %w: want a number like 12.5 with at most six decimals", s, ErrCredits)
	}
	if whole == "" {
		whole = "0"
	}
	w, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || w > uint64(CreditsMax/Credit) {
		return 0, fmt.Errorf("%q: %w: want 0 to %d", s, ErrCredits, CreditsMax/Credit)
	}
	f, err := strconv.ParseUint((frac + "000000")[:6], 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q: %w: want a number like 12.5", s, ErrCredits)
	}
	return Credits(w)*Credit + Credits(f), nil
}
