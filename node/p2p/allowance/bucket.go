package allowance

import "time"

// Bucket limits a rate: tokens refill with time up to a burst, and an event waits until
// its tokens are there. It is not safe for concurrent use.
type Bucket struct {
	rate, burst float64 // tokens a second; tokens
	level       float64 // negative: already promised to events that wait
	at          time.Time

	strict bool // who empties it is given less until it has let it fill again
	empty  bool // strict, and that is so
}

// NewBucket returns a full one.
func NewBucket(now time.Time, rate, burst float64) Bucket {
	return Bucket{rate: rate, burst: burst, level: burst, at: now}
}

// Pace returns the bucket that a sender keeps to.
func (l Line) Pace(now time.Time) Bucket {
	return NewBucket(now, paceRate*l.Rate, paceBurst*l.Burst)
}

// Draw takes tokens and returns how long to wait until they are there.
func (b *Bucket) Draw(now time.Time, tokens float64) time.Duration {
	b.refill(now)
	b.level -= tokens
	if b.level >= 0 {
		return 0
	}
	b.empty = b.strict
	return time.Duration(-b.level / b.speed() * float64(time.Second))
}

// Try takes tokens if they are there.
func (b *Bucket) Try(now time.Time, tokens float64) bool {
	b.refill(now)
	if b.level < tokens {
		return false
	}
	b.level -= tokens
	return true
}

// Full reports whether the bucket is as a new one would be.
func (b *Bucket) Full(now time.Time) bool {
	b.refill(now)
	return b.level >= b.burst
}

func (b *Bucket) refill(now time.Time) {
	passed := now.Sub(b.at).Seconds()
	b.at = now
	if b.empty {
		slow := (b.burst*emptyUntil - b.level) / b.speed()
		if passed < slow {
			b.level += passed * b.speed()
			return
		}
		b.level, b.empty = b.burst*emptyUntil, false
		passed -= slow
	}
	b.level = min(b.burst, b.level+passed*b.rate)
}

// speed returns the tokens a second.
func (b *Bucket) speed() float64 {
	if b.empty {
		return b.rate * emptyRate
	}
	return b.rate
}
