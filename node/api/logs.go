package api

// trailerError is the trailer that says why a stream of output ended early: a code
// of APIError, a blank, and a message.
const TrailerError = "Gridnode-Error"
