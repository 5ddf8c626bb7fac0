package workload_test

import (
	"fmt"
	"io"
	"strings"

	"gridnode/grid"
	"gridnode/testnet/workload"
)

const log = `; Computer: IBM SP2
; Acknowledge: Lars Malinowsky
; MaxProcs: 100
1   0 10  600  4 -1 -1  4  900 -1 1 12 12 -1 -1 -1 -1 -1
2  30  0    0  8 -1 -1  8  900 -1 0 13 13 -1 -1 -1 -1 -1
3  45  5 1200 25 -1 -1 25  900 -1 1 12 12 -1 -1 -1 -1 -1
`

func ExampleReader() {
	r, err := workload.NewReader(strings.NewReader(log), "log.swf", workload.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	thanks, _ := r.Header().Get("Acknowledge")
	fmt.Println(r.Format(), r.Header().MaxProcs(), "processors, thanks to", thanks)
	for {
		record, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(record.Number, record.Submit, record.RunTime, record.ProcessorsRequested)
	}
	// Output:
	// SWF 100 processors, thanks to Lars Malinowsky
	// 1 0s 10m0s 4
	// 2 30s 0s 8
	// 3 45s 20m0s 25
}

func ExampleTrace() {
	r, err := workload.NewReader(strings.NewReader(log), "log.swf", workload.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	trace := workload.NewTrace(r, workload.Filter{Processors: 100})
	var job workload.Job
	for {
		ok, err := trace.Next(&job)
		if err != nil {
			fmt.Println(err)
			return
		}
		if !ok {
			break
		}
		fmt.Println(job.Number, job.User, job.Processors, job.RunTime, "of", job.Estimate)
	}
	counts := trace.Counts()
	fmt.Println(&counts)
	// Output:
	// 1 user12 4 10m0s of 15m0s
	// 3 user12 25 15m0s of 15m0s
	// 2 kept, 1 no run time
}

func ExampleGenerator() {
	model := workload.Lublin(128)
	model.Shape = workload.Shape{JobsPerDay: 600, Load: 0.7}
	g, err := workload.NewGenerator(model, workload.Rand(1, 0))
	if err != nil {
		fmt.Println(err)
		return
	}
	var job workload.Job
	for range 3 {
		if _, err := g.Next(&job); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(job.Number, job.Submit, job.RunTime, job.Processors)
	}
	// Output:
	// 1 58s 1s 1
	// 2 7m42s 11s 1
	// 3 9m16s 24m49s 2
}

func ExampleQoS() {
	site := workload.Table1()[0]
	home := workload.Home{ID: "ctc", Rating: site.Rating, Price: site.Price, Cost: grid.CostPaper}
	job := workload.Job{Number: 1, Submit: grid.Hour, RunTime: 1000 * grid.Second, Estimate: grid.Hour, Processors: 16}
	var j grid.Job
	workload.PaperQoS.Job(&job, &home, &j)
	fmt.Println("done by", j.Deadline, "for at most", j.Budget, "credits")
	// Output:
	// done by 1h33m20s for at most 8712 credits
}

func ExampleEmbedded() {
	sites := workload.Sites(12)
	jobs, err := workload.Embedded(sites, workload.EmbeddedSeed)
	if err != nil {
		fmt.Println(err)
		return
	}
	var job workload.Job
	for range 3 {
		if _, err := jobs.Next(&job); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(job.Submit, sites[job.Site].Name, job.Processors)
	}
	// Output:
	// 0s NASA iPSC 1
	// 5m15s LANL Origin 2 4
	// 5m40s LANL Origin 2 128
}
