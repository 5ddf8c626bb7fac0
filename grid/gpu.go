package grid

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// GPUs is what a job needs of accelerators. The zero value is none.
type GPUs struct {
	Type  string // as the site calls it; empty: any
	Count int64  // 0 to GPUsMax
}

// Bounds of GPUs.
const (
	GPUsMax    = 1024
	gpuTypeMax = 32
)

// String returns it as users write it: "a100:2", or "2".
func (g GPUs) String() string {
	if g.Type == "" {
		return strconv.FormatInt(g.Count, 10)
	}
	return g.Type + ":" + strconv.FormatInt(g.Count, 10)
}

// ParseGPUs is the inverse of String. A type alone means one of them.
func ParseGPUs(text string) (GPUs, error) {
	kind, count, typed := strings.Cut(text, ":")
	if !typed {
		if _, err := strconv.Atoi(text); err == nil {
			kind, count = "", text
		} else {
			count = "1"
		}
	}
	n, err := strconv.ParseInt(count, 10, 64)
	g := GPUs{Type: kind, Count: n}
	if err != nil || n < 1 || kind == "" && (typed || text == "") || g.Check() != nil {
		return GPUs{}, fmt.Errorf("%q: want a number of GPUs, 1 to %d, such as 2, or a type and a number, such as a100:2", text, GPUsMax)
	}
	return g, nil
}

// Check returns an error that says what is out of bounds.
func (g GPUs) Check() error {
	if g.Count < 0 || g.Count > GPUsMax {
		return fmt.Errorf("%d GPUs, want 0 to %d", g.Count, GPUsMax)
	}
	if len(g.Type) > gpuTypeMax || g.Count == 0 && g.Type != "" {
		return fmt.Errorf("%d GPUs of type %.40q, at most %d bytes", g.Count, g.Type, gpuTypeMax)
	}
	for i := range len(g.Type) {
		switch c := g.Type[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return fmt.Errorf("GPUs of type %q: want letters, digits, dots, dashes and underscores", g.Type)
		}
	}
	return nil
}

// GPUWeightMax bounds how many processors a GPU may count for.
const GPUWeightMax = 10_000

// Price returns what a processor-hour costs a job that has GPUs beside so many processors, where
// one without is charged price, and a GPU counts for weight processors: price × (processors +
// count × weight) / processors, rounded up, saturating at CreditsMax. Weight is 0, for which
// GPUs cost nothing, to GPUWeightMax.
func (g GPUs) Price(price Price, processors, weight int64) Price {
	if g.Count <= 0 || weight <= 0 || price <= 0 || processors <= 0 {
		return price
	}
	hi, lo := bits.Mul64(uint64(price), uint64(g.Count*weight))
	if hi >= uint64(processors) {
		return CreditsMax
	}
	more, rest := bits.Div64(hi, lo, uint64(processors))
	if rest > 0 {
		more++
	}
	return Price(min(more, uint64(CreditsMax-min(price, CreditsMax))) + uint64(price))
}

// GPUCount is how many GPUs of one type a site has.
type GPUCount struct {
	Type  string
	Count int64 // 1 to GPUsSiteMax
	Free  int64 // that nobody has and that are promised to nobody now
	Wait  Time  // until all of them are free, as far as the site knows
}

// GPUStock is the GPUs of a site, by type, each once.
type GPUStock []GPUCount

// Bounds of a GPUStock.
const (
	GPUsSiteMax  = 4096 // of one type at one site
	GPUTypesMax  = 16
	gpuStockNone = "none"
)

// Of returns how many of a type there are, any if it is empty, how many of them are free, and
// the least wait for all of a type.
func (s GPUStock) Of(kind string) (count, free int64, wait Time) {
	wait = Never
	for i := range s {
		if c := &s[i]; kind == "" || kind == c.Type {
			count, free, wait = count+c.Count, free+c.Free, min(wait, c.Wait)
		}
	}
	return count, free, wait
}

// Has reports whether a site with them could ever meet a need.
func (s GPUStock) Has(need GPUs) bool {
	count, _, _ := s.Of(need.Type)
	return count >= need.Count
}

// String says what there is: "a100:4,v100:2"; "none".
func (s GPUStock) String() string {
	if len(s) == 0 {
		return gpuStockNone
	}
	words := make([]string, len(s))
	for i, c := range s {
		words[i] = GPUs{Type: c.Type, Count: c.Count}.String()
	}
	return strings.Join(words, ",")
}

// Check returns an error that says what is out of bounds.
func (s GPUStock) Check() error {
	if len(s) > GPUTypesMax {
		return fmt.Errorf("GPUs of %d types, want %d at most", len(s), GPUTypesMax)
	}
	for i, c := range s {
		switch {
		case c.Type == "" || GPUs{Type: c.Type, Count: 1}.Check() != nil:
			return fmt.Errorf("GPUs of type %.40q", c.Type)
		case slices.ContainsFunc(s[:i], func(other GPUCount) bool { return other.Type == c.Type }):
			return fmt.Errorf("GPUs of type %s twice", c.Type)
		case c.Count < 1 || c.Count > GPUsSiteMax || c.Free < 0 || c.Free > c.Count:
			return fmt.Errorf("%d of %d GPUs of type %s free", c.Free, c.Count, c.Type)
		case c.Wait < 0 || c.Wait > SpanMax:
			return fmt.Errorf("wait for GPUs of %d µs", int64(c.Wait))
		}
	}
	return nil
}

// SameTerms reports whether two stocks differ in their load at most.
func (s GPUStock) SameTerms(other GPUStock) bool {
	return slices.EqualFunc(s, other, func(a, b GPUCount) bool { return a.Type == b.Type && a.Count == b.Count })
}

// SameLoad reports whether two stocks have as many free, and something to wait for or not.
func (s GPUStock) SameLoad(other GPUStock) bool {
	return slices.EqualFunc(s, other, func(a, b GPUCount) bool {
		return a.Type == b.Type && a.Count == b.Count && a.Free == b.Free && (a.Wait > 0) == (b.Wait > 0)
	})
}
