// Package hostile is a federation of which a share of the members is hostile: they have good
// certificates, lie as holders of the directory, and forge messages, cheques and receipts.
// What they say goes through the encoders and decoders of real nodes, signatures included, and
// honest sites are node/site as it is. It is measured which live quotes honest sites find, and
// checked that nothing that was forged changes anything, and that no money is lost.
package hostile
