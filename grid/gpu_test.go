package grid

import "testing"

// TestPriceWithGPUs: GPUs cost as much as the processors that they count for.
func TestPriceWithGPUs(t *testing.T) {
	for _, tt := range []struct {
		price              Price
		processors, weight int64
		gpus               int64
		want               Price
	}{
		{price: 9, processors: 1, weight: 3, gpus: 2, want: 63},
		{price: 9, processors: 6, weight: 3, gpus: 2, want: 18},
		{price: 10, processors: 3, weight: 1, gpus: 1, want: 14}, // rounded up
		{price: 9, processors: 4, weight: 0, gpus: 2, want: 9},
		{price: 9, processors: 4, weight: 3, gpus: 0, want: 9},
		{price: 0, processors: 4, weight: 3, gpus: 1, want: 0},
		{price: CreditsMax, processors: 1 << 24, weight: 1, gpus: 1, want: CreditsMax},
		{price: CreditsMax, processors: 1, weight: GPUWeightMax, gpus: GPUsMax, want: CreditsMax},
		{price: CreditsMax / 2, processors: 1, weight: 1, gpus: 2, want: CreditsMax},
	} {
		if got := (GPUs{Count: tt.gpus}).Price(tt.price, tt.processors, tt.weight); got != tt.want {
			t.Errorf("%+v: %d", tt, int64(got))
		}
	}
}
