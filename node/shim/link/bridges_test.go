package link

import (
	"errors"
	"io"
	"testing"
)

// TestBridgesAreBounded: what is too much is reset and not dialled for, and there is room again
// once another has ended, however that was.
func TestBridgesAreBounded(t *testing.T) {
	b := NewBridges()
	b.most = 1
	near, plain := pair(t, false)
	far, wrapped := pair(t, true)
	dialled, done := make(chan struct{}), make(chan struct{})
	go func() {
		b.Join(t.Context(), plain, func() (End, error) { close(dialled); return wrapped, nil })
		close(done)
	}()
	<-dialled
	extra, other := pair(t, false)
	b.Join(t.Context(), other, func() (End, error) {
		t.Error("dialled for one too many")
		return nil, io.ErrClosedPipe
	})
	if got, err := io.ReadAll(extra); err == nil {
		t.Errorf("one too many reads %q and then its end", got)
	}
	extra.Close()
	if near.CloseWrite() != nil || far.CloseWrite() != nil {
		t.Error("one that there was room for has ended")
	}
	<-done
	near.Close()
	far.Close()
	for range 2 {
		extra, other := pair(t, false)
		tried := false
		b.Join(t.Context(), other, func() (End, error) { tried = true; return nil, errors.New("nobody listens") })
		if got, err := io.ReadAll(extra); err == nil || !tried {
			t.Errorf("dialled: %v; nobody listens: %q and then its end", tried, got)
		}
		extra.Close()
	}
}
