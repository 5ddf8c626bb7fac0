package api

// TrailerError is the trailer that says why a stream of output ended early: a code
// of Error, a blank, and a message.
const TrailerError = "Gridnode-Error"
