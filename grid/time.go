package grid

import (
	"math"
	"time"
)

// Time is an instant or a span in integer microseconds. As an instant it counts
// from the driver's epoch: the Unix epoch in production, the start of the run
// (or of the trace) in virtual time. Spans are never negative unless said so.
type Time int64

// Units of Time.
const (
	Microsecond Time = 1
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
	Minute           = 60 * Second
	Hour             = 60 * Minute
	Day              = 24 * Hour
)

// Never is later than every instant. NextTimer returns it when no tick is needed.
const Never Time = math.MaxInt64

// SpanMax bounds every span a peer or a user may name (about 285 years), so that
// adding two of them to an instant cannot overflow.
const SpanMax Time = math.MaxInt64 / 4 / 256

// FromDuration converts d, dropping what is below a microsecond.
func FromDuration(d time.Duration) Time { return Time(d / time.Microsecond) }

// Duration converts a span; spans beyond 292 years saturate.
func (t Time) Duration() time.Duration {
	const limit = Time(math.MaxInt64 / int64(time.Microsecond))
	switch {
	case t > limit:
		return math.MaxInt64
	case t < -limit:
		return math.MinInt64
	}
	return time.Duration(t) * time.Microsecond
}

// Seconds returns t in seconds, for reports only: no decision may use it.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// String prints t as a duration ("1h2m3s"), and Never as "never".
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	return t.Duration().String()
}

// Add returns t+span, or Never if the sum does not fit.
func (t Time) Add(span Time) Time {
	if span > 0 && t > Never-span {
		return Never
	}
	return t + span
}
