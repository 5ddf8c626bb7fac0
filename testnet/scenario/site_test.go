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
	a, b := in.Submit(nil, 1, nil), in.Submit(nil, 2, nil)
	if a == b {
		t.Error("two submissions are one input")
	}
	if c := in.Submit(a, 3, nil); c != a || *a.(*site.Submit) != (site.Submit{Token: 3}) {
		t.Errorf("a used input is not taken again, or not as a new one: %+v", c)
	}
	if a, b := in.Adopted(grid.TaskID{}, 1), in.Adopted(grid.TaskID{}, 2); a == b {
		t.Error("two adopted executions are one input")
	}
}
