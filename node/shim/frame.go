package shim

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"gridnode/grid"
)

// version of the protocol. A daemon may meet the shim of the version before it.
const version = 1

// A frame is its length (4 bytes big-endian, the kind included), a kind and a body.
type kind byte

const (
	kindHello   kind = 1  // to the shim, first: version
	kindWelcome kind = 2  // from the shim, first: version and process number
	kindTask    kind = 3  // from the shim, behind the welcome: a Task
	kindReady   kind = 4  // from the shim: that was the last task
	kindStart   kind = 5  // to the shim: a Spec
	kindKill    kind = 6  // to the shim: id and reason
	kindAck     kind = 7  // to the shim: id
	kindRetire  kind = 8  // to the shim: end as soon as nothing runs
	kindEnded   kind = 9  // from the shim: an Ended
	kindExtend  kind = 10 // to the shim: id and span
	kindExpire  kind = 11 // to the shim: span until it ends with all it runs
	kindConsole kind = 12 // to the shim, instead of hello: version, id and a console.Request; then frames of package console
	kindRenew   kind = 13 // to the shim: id and span
	kindReach   kind = 14 // to the shim: number and id
)

// appendFrame appends a frame whose body is what body appends.
func appendFrame(dst []byte, k kind, body func([]byte) []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, byte(k))
	if body != nil {
		dst = body(dst)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// readFrame returns the next frame; body is valid until buf is used again.
func readFrame(r *bufio.Reader, buf *[]byte) (k kind, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:4])
	if size < 1 || size > frameMax {
		return 0, nil, fmt.Errorf("%w: frame of %d bytes, want 1 to %d", errEncoding, size, frameMax)
	}
	if cap(*buf) < int(size) {
		*buf = make([]byte, size)
	}
	body = (*buf)[:size-1]
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, fmt.Errorf("%w: frame cut short: %v", errEncoding, err)
	}
	return kind(head[4]), body, nil
}

// frameWaits reports whether a whole frame can be read without waiting.
func frameWaits(r *bufio.Reader) bool {
	const head = 4
	if r.Buffered() < head {
		return false
	}
	b, err := r.Peek(head)
	return err == nil && uint64(r.Buffered()) >= head+uint64(binary.BigEndian.Uint32(b))
}

// Bodies of hello and welcome: the version, and in the welcome the process number.

func helloBody(b []byte) []byte { return binary.AppendUvarint(b, version) }

func welcomeBody(b []byte) []byte {
	return append(binary.AppendUvarint(helloBody(b), uint64(os.Getpid())), withLeases, withLogs, withOutputs, withPeers)
}

// At the end of a welcome a shim says that it keeps leases, and that it reads Spec.Log,
// Spec.Outputs and Spec.Peers. Earlier ones say nothing there.
const (
	withLeases  = 1
	withLogs    = 1
	withOutputs = 1
	withPeers   = 1
)

// checkVersion reads the version from d.
func checkVersion(d *decoder) error {
	switch v := d.uint(); {
	case d.bad:
		return errEncoding
	case v != version:
		return fmt.Errorf("the other side speaks version %d of the shim's protocol, this program %d", v, version)
	}
	return nil
}

// Body of a kill: task and reason.

func appendKill(dst []byte, id, reason string) []byte {
	return appendString(appendString(dst, id), reason)
}

// Body of an extension: task and span from now.

func appendExtend(dst []byte, id string, span grid.Time) []byte {
	return binary.AppendUvarint(appendString(dst, id), uint64(span))
}

func decodeExtend(body []byte) (id string, span grid.Time, err error) {
	d := decoder{rest: body}
	id, span = d.string(), grid.Time(d.int(int64(grid.SpanMax)))
	return id, span, d.end()
}

// Body of an expiry: span from now, 0 for never.

func appendExpire(dst []byte, span grid.Time) []byte { return binary.AppendUvarint(dst, uint64(span)) }

func decodeExpire(body []byte) (span grid.Time, err error) {
	d := decoder{rest: body}
	span = grid.Time(d.int(int64(grid.SpanMax)))
	return span, d.end()
}

// Body of a reach: number of the request, and task.

func appendReach(dst []byte, number uint64, id string) []byte {
	return appendString(binary.AppendUvarint(dst, number), id)
}

func decodeReach(body []byte) (number uint64, id string, err error) {
	d := decoder{rest: body}
	number, id = d.uint(), d.string()
	return number, id, d.end()
}

func decodeKill(body []byte) (id, reason string, err error) {
	d := decoder{rest: body}
	id, reason = d.string(), d.string()
	if len(reason) > reasonMax {
		d.bad = true
	}
	return id, reason, d.end()
}
