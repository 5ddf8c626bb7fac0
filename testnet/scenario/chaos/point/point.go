package point

import (
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/site"
)

// Cause is why a daemon has a step.
type Cause uint8

// Causes of steps.
const (
	Input    Cause = iota // something came in
	Timer                 // something was due, or has waited for the end of the instant
	Recovery              // the daemon comes up
)

// act is what a daemon does by an order.
type act uint8

const (
	save act = iota
	forget
	send
	publish
	start
	startPilot
	kill
	killPilot
	renew
	answer
	answerCancelled // what users are told who want a job to end
	closest
	provide
	providers
	probe
	expel
	bind // a save, and then an order that carries out what it promises
)

// order is a kind of orders: of all records, messages or tasks of a kind, whatever they are about.
type order struct {
	cause   Cause
	act     act
	then    act       // of bind: what comes after the save
	message grid.Kind // of send and publish, and of bind that ends with one
	record  string    // kind of records, of save, forget and bind
}

// String names it in words.
func (o order) String() string {
	text := o.act.words(o.record, o.message)
	if o.act == bind {
		text = save.words(o.record, 0) + " and " + o.then.words("", o.message)
	}
	return text + [...]string{Input: "", Timer: ", on a timer", Recovery: ", in recovery"}[o.cause]
}

// words names an act, which is of a kind of records, or of messages, or says it all.
func (a act) words(record string, message grid.Kind) string {
	text := [...]string{
		save: "saving", forget: "forgetting", send: "sending", publish: "publishing",
		start: "starting a task", startPilot: "starting a pilot", kill: "killing a task", killPilot: "killing a pilot", renew: "renewing a task",
		answer: "answering", answerCancelled: "answering who cancels", closest: "looking for who is closest",
		provide: "providing", providers: "looking for providers", probe: "measuring a way", expel: "expelling", bind: "",
	}[a]
	switch a {
	case save, forget:
		text += " " + record
	case send, publish:
		text += " " + wire.KindName(message)
	}
	return text
}

// orderOf returns what an effect orders; ok is false if it only tells.
func orderOf(cause Cause, e grid.Effect, out *grid.Outbox) (o order, ok bool) {
	o.cause = cause
	switch e.Kind {
	case grid.EffectSave:
		o.act, o.record = save, Kind(out.Records[e.Index].RecordKey())
	case grid.EffectDelete:
		o.act, o.record = forget, Kind(out.Records[e.Index].RecordKey())
	case grid.EffectSend:
		o.act, o.message = send, out.Sends[e.Index].Message.MessageKind()
	case grid.EffectPublish:
		o.act, o.message = publish, out.Sends[e.Index].Message.MessageKind()
	case grid.EffectStart:
		o.act = start
		if _, pilot := site.IsPilot(out.Tasks[e.Index].ID); pilot {
			o.act = startPilot
		}
	case grid.EffectKill:
		o.act = kill
		if _, pilot := site.IsPilot(out.Tasks[e.Index].ID); pilot {
			o.act = killPilot
		}
	case grid.EffectRenew:
		o.act = renew
	case grid.EffectAnswer:
		o.act = answer
		if _, cancels := out.Answers[e.Index].Value.(*site.Cancelled); cancels {
			o.act = answerCancelled
		}
	case grid.EffectClosest:
		o.act = closest
	case grid.EffectProvide:
		o.act = provide
	case grid.EffectProviders:
		o.act = providers
	case grid.EffectProbe:
		o.act = probe
	case grid.EffectExpel:
		o.act = expel
	default:
		return o, false
	}
	return o, true
}
