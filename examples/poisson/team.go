package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// team is the tasks of one run, as one of them sees it: it speaks to the task before
// it and to the one behind it.
type team struct {
	rank, size   int
	above, below *neighbour // nil at the ends
}

// neighbour is a connection to another task.
type neighbour struct {
	c net.Conn
	r *bufio.Reader
	b []byte
}

// joinMax is how long the tasks have to find each other.
const joinMax = 2 * time.Minute

// joinFromEnvironment joins the team that GRIDNODE_RANK and GRIDNODE_PEERS
// tell of: the addresses of all tasks by rank, the task's own among them. Without
// them it is a team of one.
func joinFromEnvironment(ctx context.Context) (*team, error) {
	peers := os.Getenv("GRIDNODE_PEERS")
	if peers == "" {
		return &team{size: 1}, nil
	}
	addresses := strings.Split(peers, ",")
	rank, err := strconv.Atoi(os.Getenv("GRIDNODE_RANK"))
	if err != nil || rank < 0 || rank >= len(addresses) {
		return nil, fmt.Errorf("GRIDNODE_RANK=%q: want 0 to %d, as GRIDNODE_PEERS has %d addresses", os.Getenv("GRIDNODE_RANK"), len(addresses)-1, len(addresses))
	}
	return join(ctx, rank, addresses)
}

// join listens for the task behind, connects to the one before, and waits for both.
func join(ctx context.Context, rank int, addresses []string) (*team, error) {
	ctx, cancel := context.WithTimeout(ctx, joinMax)
	defer cancel()
	t := &team{rank: rank, size: len(addresses)}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addresses[rank])
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if rank > 0 {
		c, err := dial(ctx, addresses[rank-1])
		if err != nil {
			return nil, fmt.Errorf("task %d: %w", rank-1, err)
		}
		t.above = newNeighbour(c)
	}
	if rank < t.size-1 {
		if deadline, ok := ctx.Deadline(); ok {
			l.(*net.TCPListener).SetDeadline(deadline)
		}
		c, err := l.Accept()
		if err != nil {
			t.close()
			return nil, fmt.Errorf("task %d: %w", rank+1, err)
		}
		t.below = newNeighbour(c)
	}
	return t, nil
}

// dial connects to a task that may not listen yet.
func dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return c, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

func newNeighbour(c net.Conn) *neighbour {
	return &neighbour{c: c, r: bufio.NewReaderSize(c, 1<<16)}
}

func (t *team) close() {
	for _, n := range []*neighbour{t.above, t.below} {
		if n != nil {
			n.c.Close()
		}
	}
}

// send and receive carry a row of values.
func (n *neighbour) send(row []float64) error {
	n.b = n.b[:0]
	for _, v := range row {
		n.b = binary.BigEndian.AppendUint64(n.b, math.Float64bits(v))
	}
	_, err := n.c.Write(n.b)
	return err
}

func (n *neighbour) receive(row []float64) error {
	var b [8]byte
	for i := range row {
		if _, err := io.ReadFull(n.r, b[:]); err != nil {
			return err
		}
		row[i] = math.Float64frombits(binary.BigEndian.Uint64(b[:]))
	}
	return nil
}

// exchange gives the neighbours the outermost own rows and gets theirs.
func (t *team) exchange(rows [][]float64) error {
	last := len(rows) - 1
	if t.above != nil {
		if err := t.above.send(rows[1]); err != nil {
			return err
		}
	}
	if t.below != nil {
		if err := t.below.send(rows[last-1]); err != nil {
			return err
		}
		if err := t.below.receive(rows[last]); err != nil {
			return err
		}
	}
	if t.above != nil {
		return t.above.receive(rows[0])
	}
	return nil
}

// reduce combines a value of every task, up to task 0 and back down to all.
func (t *team) reduce(v float64, combine func(a, b float64) float64) (float64, error) {
	row := []float64{v}
	if t.below != nil {
		if err := t.below.receive(row); err != nil {
			return 0, err
		}
		row[0] = combine(v, row[0])
	}
	if t.above != nil {
		if err := t.above.send(row); err != nil {
			return 0, err
		}
		if err := t.above.receive(row); err != nil {
			return 0, err
		}
	}
	if t.below != nil {
		return row[0], t.below.send(row)
	}
	return row[0], nil
}
