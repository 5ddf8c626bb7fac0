package scenario

import (
	"testing"

	"gridnode/grid"
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

// TestInputsAreNotShared: sites of several lanes take theirs at the same time.
func TestInputsAreNotShared(t *testing.T) {
	in := Inputs()
	if a, b := in.Submit(1, nil), in.Submit(2, nil); a == b {
		t.Error("two submissions are one input")
	}
	if a, b := in.Adopted(grid.TaskID{}, 1), in.Adopted(grid.TaskID{}, 2); a == b {
		t.Error("two adopted executions are one input")
	}
}
