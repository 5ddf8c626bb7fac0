package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// FrameMax bounds a frame on a stream, without its length prefix.
const FrameMax = 64 << 10

// ErrMalformed is wrapped by every error that says a peer sent bytes that are no
// valid message. The stream is to be reset, the counter raised, nothing else.
var ErrMalformed = errors.New("malformed message")

// Malformed returns an error wrapping ErrMalformed, for decoders.
func Malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Message is a grid.Message that can travel.
type Message interface {
	grid.Message
	// Proto returns the wire form.
	Proto() proto.Message
}

// Decoder turns a body into a message from a site, or returns an error wrapping
// ErrMalformed. It must check every field: nothing after it does.
type Decoder func(from grid.SiteID, body []byte) (grid.Message, error)

// Protocol is how one core speaks over libp2p.
type Protocol struct {
	ID       string // "/gridnode/market/1.0.0"
	Decoders map[grid.Kind]Decoder
}

// Encode returns the frame of message, length prefix included.
func Encode(message Message) ([]byte, error) { return EncodeTraced(message, 0) }

// EncodeTraced is Encode of a message that names the sender's span of its job's trace; 0: the
// job is not traced.
func EncodeTraced(message Message, span uint64) ([]byte, error) {
	body, err := proto.Marshal(message.Proto())
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", KindName(message.MessageKind()), err)
	}
	envelope, err := proto.Marshal(&wirepb.Envelope{Kind: uint32(message.MessageKind()), Body: body, Span: span})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", KindName(message.MessageKind()), err)
	}
	if len(envelope) > FrameMax {
		return nil, fmt.Errorf("encode %s: %d bytes, at most %d fit a frame", KindName(message.MessageKind()), len(envelope), FrameMax)
	}
	frame := binary.AppendUvarint(make([]byte, 0, len(envelope)+binary.MaxVarintLen32), uint64(len(envelope)))
	return append(frame, envelope...), nil
}

// ReadFrame reads one frame and returns it without its length prefix. It returns
// io.EOF at a clean end and an error wrapping ErrMalformed for a bad length; if reading
// failed, that error, too.
func ReadFrame(r interface {
	io.Reader
	io.ByteReader
}) ([]byte, error) {
	size, err := binary.ReadUvarint(r)
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: frame length: %w", ErrMalformed, err)
	}
	if size == 0 || size > FrameMax {
		return nil, Malformed("frame of %d bytes, want 1 to %d", size, FrameMax)
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, fmt.Errorf("%w: frame cut short: %w", ErrMalformed, err)
	}
	return frame, nil
}

// WriteFrame writes bytes behind their length, in one write.
func WriteFrame(w io.Writer, b []byte) error {
	_, err := w.Write(append(binary.AppendUvarint(make([]byte, 0, len(b)+binary.MaxVarintLen32), uint64(len(b))), b...))
	return err
}

// WriteProto writes one message behind its length, in one write.
func WriteProto(w io.Writer, m proto.Message) error {
	size := proto.Size(m)
	frame, err := proto.MarshalOptions{}.MarshalAppend(binary.AppendUvarint(make([]byte, 0, size+binary.MaxVarintLen32), uint64(size)), m)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = w.Write(frame)
	return err
}

// ReadProto reads one, as ReadFrame reads a frame. The error wraps ErrMalformed if it is none.
func ReadProto(r interface {
	io.Reader
	io.ByteReader
}, m proto.Message) error {
	frame, err := ReadFrame(r)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(frame, m); err != nil {
		return Malformed("%v", err)
	}
	return nil
}

// Decode turns a frame without its length prefix into a message of this protocol.
func (p *Protocol) Decode(from grid.SiteID, frame []byte) (grid.Message, error) {
	message, _, err := p.DecodeTraced(from, frame)
	return message, err
}

// KindOf returns what an encoded envelope says first, the kind of its message; 0 if it begins
// with anything else. Nothing of it was checked.
func KindOf(frame []byte) grid.Kind {
	const field = 1 << 3 // number 1, and type 0: a varint
	if len(frame) == 0 || frame[0] != field {
		return 0
	}
	kind, n := binary.Uvarint(frame[1:])
	if n <= 0 || kind >= KindMax {
		return 0
	}
	return grid.Kind(kind)
}

// DecodeTraced is Decode, and returns the sender's span of the trace of the job that the
// message is about, 0 if it names none. Any number may come; it says nothing but whose child a
// span is.
func (p *Protocol) DecodeTraced(from grid.SiteID, frame []byte) (message grid.Message, span uint64, err error) {
	var envelope wirepb.Envelope
	if err := proto.Unmarshal(frame, &envelope); err != nil {
		return nil, 0, Malformed("envelope: %v", err)
	}
	if envelope.Kind >= KindMax {
		return nil, 0, Malformed("kind %d", envelope.Kind)
	}
	decode := p.Decoders[grid.Kind(envelope.Kind)]
	if decode == nil {
		return nil, 0, Malformed("kind %d is not spoken on %s", envelope.Kind, p.ID)
	}
	message, err = decode(from, envelope.Body)
	return message, envelope.Span, err
}
