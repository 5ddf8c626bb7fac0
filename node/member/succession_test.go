package member

import (
	"crypto/rand"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
)

// vouchers are what roots say of the next ones.
func vouchers(t *testing.T, next *Federation, by ...*Root) (all []*x509.Certificate) {
	t.Helper()
	for _, r := range by {
		v, err := r.Vouch(rand.Reader, next, start)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// TestSuccession: of three roots, two of which must agree, one is stolen and another takes
// its place. What the two others have certified stays good, what the thief does is not.
func TestSuccession(t *testing.T) {
	a, b, stolen, fresh := newRoot(t, 1, 2), newRoot(t, 2, 2), newRoot(t, 3, 2), newRoot(t, 4, 2)
	f, next := federationOf(t, a, b, stolen), federationOf(t, a, b, fresh)
	evil := federationOf(t, stolen, newRoot(t, 5, 2))
	for _, tt := range []struct {
		name     string
		next     *Federation
		vouchers []*x509.Certificate
		want     string
	}{
		{"two agree", next, vouchers(t, next, a, b), ""},
		{"one agrees", next, vouchers(t, next, a), "1 of the 3 roots"},
		{"one agrees twice", next, vouchers(t, next, a, a), "1 of the 3 roots"},
		{"nobody agrees", next, nil, "0 of the 3 roots"},
		{"a new root vouches for itself", next, vouchers(t, next, a, fresh), "1 of the 3 roots"},
		{"a thief of one key", evil, vouchers(t, evil, stolen, newRoot(t, 5, 2)), "1 of the 3 roots"},
		{"vouchers for other roots", evil, vouchers(t, next, a, b), "0 of the 3 roots"},
	} {
		err := f.Succeed(tt.next, tt.vouchers)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrStranger) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}

	alpha := newKey(10)
	own := NewProof(certify(t, &a.Issuer, alpha, "alpha", All), certify(t, &b.Issuer, alpha, "alpha", All))
	if _, err := next.Verify(own, idOf(t, alpha), start); err != nil {
		t.Errorf("whom the two others have certified: %v", err)
	}
	thief := newKey(11)
	theirs := NewProof(certify(t, &stolen.Issuer, thief, "thief", All), certify(t, &a.Issuer, thief, "thief", All))
	if _, err := f.Verify(theirs, idOf(t, thief), start); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Verify(theirs, idOf(t, thief), start); !errors.Is(err, ErrStranger) {
		t.Errorf("whom the stolen key has certified: %v", err)
	}

	// A voucher makes nobody a member, not even a root whose key it has.
	v := vouchers(t, next, a, b)
	if !IsVoucher(v[0]) || IsVoucher(a.Certificate) {
		t.Error("vouchers are not told from other certificates")
	}
	if m, err := f.Verify(NewProof(v...), idOf(t, newKey(1)), start); !errors.Is(err, ErrStranger) {
		t.Errorf("a voucher as a proof: %+v, %v", m, err)
	}
}
