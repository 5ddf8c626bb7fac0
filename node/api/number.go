package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
)

// The local API is HTTP with JSON over the Unix socket api.sock in the home
// directory, described in docs/api.md. Keys are stable; spans are seconds,
// instants RFC 3339, money decimal credits. The types below are its vocabulary.

// Seconds is a span; in JSON a number of seconds, exact to the microsecond.
type Seconds grid.Time

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return appendMicros(nil, int64(s)), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	n, err := parseMicros(b)
	if err != nil {
		return fmt.Errorf("a span: %w", err)
	}
	*s = Seconds(n)
	return nil
}

// Amount is money; in JSON a number of credits, exact to the micro-credit.
type Amount grid.Credits

// MarshalJSON implements json.Marshaler.
func (a Amount) MarshalJSON() ([]byte, error) { return appendMicros(nil, int64(a)), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (a *Amount) UnmarshalJSON(b []byte) error {
	n, err := parseMicros(b)
	if err != nil {
		return fmt.Errorf("an amount of credits: %w", err)
	}
	*a = Amount(n)
	return nil
}

// String prints the amount as grid.Credits does.
func (a Amount) String() string { return grid.Credits(a).String() }

// Instant is a point in time; in JSON RFC 3339, in UTC, exact to the microsecond.
// The zero value is left out and means that there is none.
type Instant grid.Time

// MarshalJSON implements json.Marshaler.
func (i Instant) MarshalJSON() ([]byte, error) {
	return i.Time().UTC().AppendFormat([]byte{'"'}, `2006-01-02T15:04:05.999999Z07:00"`), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *Instant) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("an instant: want RFC 3339 in quotes, as \"2006-01-02T15:04:05Z\": %w", err)
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("an instant: %w", err)
	}
	*i = InstantOf(t)
	return nil
}

// Time returns i as a time.Time.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)) }

// InstantOf returns t as an Instant.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMicro()) }

// appendMicros appends n millionths as a decimal number.
func appendMicros(dst []byte, n int64) []byte {
	if n < 0 {
		dst = append(dst, '-')
		n = -n
	}
	dst = strconv.AppendInt(dst, n/1e6, 10)
	if n %= 1e6; n == 0 {
		return dst
	}
	return append(dst, "."+strings.TrimRight(fmt.Sprintf("%06d", n), "0")...)
}

// parseMicros reads a JSON number as millionths. Numbers with an exponent or more
// than six decimals are rounded.
func parseMicros(b []byte) (int64, error) {
	whole, frac, _ := strings.Cut(string(b), ".")
	if len(frac) <= 6 && len(whole) <= 13 {
		n, err := strconv.ParseInt(whole+frac+"000000"[len(frac):], 10, 64)
		if err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.Abs(f) > 9e12 {
		return 0, fmt.Errorf("%s: want a number between -9e12 and 9e12", b)
	}
	return int64(math.Round(f * 1e6)), nil
}
