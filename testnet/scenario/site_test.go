package scenario

import (
	"testing"

	"gridnode/node/site"
)

func TestSubmission(t *testing.T) {
	if _, is, err := Submission(&site.Submitted{Err: site.ErrFull}); !is || err == nil {
		t.Error("a refused submission counts as acknowledged")
	}
	if _, is, _ := Submission(&site.Cancelled{}); is {
		t.Error("the answer to a cancellation counts as one to a submission")
	}
}
