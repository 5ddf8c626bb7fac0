// Package wire is the form messages take between sites: protobuf bodies inside a
// length-delimited envelope, signed records for what third parties store, and
// the counters by which every message is accounted for.
//
//   - Each protocol core exports one Protocol: its libp2p protocol ID and a
//     decoder per message kind. Its messages implement Message.
//   - A stream carries frames: a varint length, then an Envelope of kind and body.
//     A frame is at most FrameMax bytes; a longer one is an error before it is read.
//   - A decoder returns a valid message or an error, never a panic: every field has
//     been checked against its bounds, every signature verified.
//   - Counter counts at the envelope, by kind and direction. Both drivers use it.
//
// The generated protobuf code is in wirepb; run make proto after changing a
// .proto file.
package wire
