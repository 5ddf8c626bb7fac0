package api

import (
	"context"
	"errors"
	"net"
	"time"
)

// Pauses between two attempts to have a daemon back.
const (
	retryLeast = 100 * time.Millisecond
	retryMost  = 2 * time.Second
)

// persist calls once, which makes a connection and returns when that has ended, until the end is
// another than that of a connection that broke, or the daemon has been away for patience; 0: once
// only. been says whether the daemon has been there before: who never was is not waited for. once
// also returns whether it was there until now.
func persist(ctx context.Context, patience time.Duration, been bool, once func() (there bool, err error)) error {
	pause, away := retryLeast, time.Now()
	for {
		there, err := once()
		if there {
			been, pause, away = true, retryLeast, time.Now()
		}
		if !again(err, been) || ctx.Err() != nil || time.Since(away)+pause > patience {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, retryMost)
	}
}

// again reports whether a connection that has ended so is to be made again.
func again(err error, been bool) bool {
	var failure *Error
	var unreachable net.Error
	switch {
	case errors.Is(err, ErrBroken):
		return true
	case errors.Is(err, ErrNoDaemon), errors.As(err, &unreachable):
		return been
	case errors.As(err, &failure):
		return been && (failure.Code == CodeUnavailable || failure.Code == CodeBusy)
	}
	return false
}
