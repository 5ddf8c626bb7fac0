package market

import "fmt"

// Refusal is an asked site's "no", or Granted. Numbers travel on the wire and are
// stored: append only.
type Refusal uint8

const (
	Granted      Refusal = iota // no refusal: the site guarantees the job
	TooLate                     // cannot finish it by the deadline; the reply says when it could
	TooWide                     // has too few processors, or too little memory per processor
	NoForeign                   // runs no jobs of other sites
	Busy                        // holds too many guarantees for the asker, or its queue is full; try later
	PriceChanged                // would cost more than the asker expected; the reply has the new terms
	Superseded                  // knows of a later epoch of this job
	Unpaid                      // wants the cheque of a bank that home does not bank with
	NoModules                   // runs no modules of other sites
	ByRule                      // its owner's rules for guests do not allow it
	Debtor                      // home did not sign for several jobs lately
	NoGPUs                      // has too few GPUs, or none of the type
	refusalMax
)

var refusalNames = [refusalMax]string{"granted", "cannot finish it in time", "is too small for it",
	"runs no jobs of other sites", "is too busy to promise anything", "its price has changed", "has a later placement of this job",
	"wants to be paid by a bank that this site does not pay from", "runs no modules of other sites", "its owner's rules for guests do not allow it",
	"is owed for jobs that home did not sign for; it is forgiven a day after the last", "has too few GPUs for it"}

// String returns what the refusal means in words, with the site as the subject.
func (r Refusal) String() string {
	if r >= refusalMax {
		return fmt.Sprintf("refuses for reason %d", uint8(r))
	}
	return refusalNames[r]
}

// refusalCodes are stable words for programs.
var refusalCodes = [refusalMax]string{"granted", "too_late", "too_wide", "no_foreign", "busy", "price_changed", "superseded", "unpaid", "no_modules", "by_rule", "debtor", "no_gpus"}

// Code returns a stable word for it.
func (r Refusal) Code() string {
	if r >= refusalMax {
		return "other"
	}
	return refusalCodes[r]
}

// Answers counts answers to requests for a guarantee, by Refusal; those that this program
// does not know count as the last.
type Answers [refusalMax + 1]int64

func (a *Answers) add(r Refusal) { a[min(r, refusalMax)]++ }

// All calls yield for every kind of answer with its code.
func (a *Answers) All(yield func(code string, count int64) bool) {
	for r, n := range a {
		if !yield(Refusal(r).Code(), n) {
			return
		}
	}
}

// Reason says why a placement ended in Refused.
type Reason uint8

const (
	ReasonNoSite   Reason = iota + 1 // no site would have it
	ReasonStopped                    // Stop came first
	ReasonFull                       // this site is placing too many jobs at once
	ReasonNoAnswer                   // the directory did not answer, and home cannot do it
)
