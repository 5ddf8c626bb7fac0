package chaos

import "testing"

// BenchmarkChaos tells how much virtual time of 20 busy sites, and how many events, pass in a
// second of one processor, with all that looks on.
func BenchmarkChaos(b *testing.B) {
	for _, features := range []string{"none", "oracle"} {
		b.Run(features, func(b *testing.B) { bench(b, features) })
	}
}

func bench(b *testing.B, features string) {
	var hours, events float64
	for b.Loop() {
		cfg := Default()
		cfg.Hours, cfg.Features = 3, features
		r, err := Run(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		hours += float64(cfg.Sites) * r.VirtualSeconds.Float() / 3600
		events += float64(r.Events)
	}
	b.ReportMetric(hours/b.Elapsed().Seconds(), "site-hours/s")
	b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
}
