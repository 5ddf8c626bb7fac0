//go:build !client

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
	"gridnode/internal/lrms/gpu"
	engine "gridnode/node/run" // run is what main does
)

// gpus is what a site has of GPUs: as its core shares them out, and as tasks are told.
type gpus struct {
	devices []gpu.Device
	visible []engine.GPU
}

// gpusMax bounds the GPUs of one site.
const gpusMax = 4096

func (g *gpus) add(kind, name, visible string) {
	g.devices = append(g.devices, gpu.Device{Name: name, Type: kind})
	g.visible = append(g.visible, engine.GPU{Name: name, Visible: visible})
}

// parseGPUs reads site.gpus: auto, none, or types and numbers as a100=4,v100=2. Drivers
// number them in this order.
func parseGPUs(v string) (g gpus, err error) {
	switch v {
	case auto:
		return foundGPUs("/"), nil
	case "", "none":
		return g, nil
	}
	for _, word := range strings.Split(v, ",") {
		kind, count, _ := strings.Cut(strings.TrimSpace(word), "=")
		n, err := strconv.ParseInt(count, 10, 64)
		need := grid.GPUs{Type: kind, Count: n}
		if err != nil || n < 1 || kind == "" || need.Check() != nil || len(g.devices)+int(n) > gpusMax {
			return g, fmt.Errorf("%q: want auto, none, or types and numbers such as a100=4, %d GPUs at most", v, gpusMax)
		}
		for range n {
			at := strconv.Itoa(len(g.devices))
			g.add(kind, kind+"-"+at, at)
		}
	}
	return g, nil
}

// foundGPUs looks for the device files of GPUs below root: those of NVIDIA, whose drivers say
// what model each is, and those of AMD.
func foundGPUs(root string) (g gpus) {
	found, _ := filepath.Glob(filepath.Join(root, "dev/nvidia[0-9]*")) // a bad pattern: none
	slices.SortFunc(found, func(a, b string) int { return minor(a) - minor(b) })
	models := nvidiaModels(root)
	for _, path := range found {
		kind := models[minor(path)]
		if kind == "" {
			kind = "nvidia"
		}
		g.add(kind, filepath.Base(path), strconv.Itoa(len(g.devices)))
	}
	if len(g.devices) > 0 {
		return g
	}
	if _, err := os.Stat(filepath.Join(root, "dev/kfd")); err != nil {
		return g
	}
	vendors, _ := filepath.Glob(filepath.Join(root, "sys/class/drm/renderD*/device/vendor"))
	for _, path := range vendors { // in the order of their numbers
		if vendor, _ := os.ReadFile(path); strings.TrimSpace(string(vendor)) == "0x1002" {
			at := strconv.Itoa(len(g.devices))
			g.add("amd", "amd"+at, at)
		}
	}
	return g
}

// minor returns the number that a path of a device ends in.
func minor(path string) int {
	digits := strings.TrimLeft(filepath.Base(path), "abcdefghijklmnopqrstuvwxyz")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

// nvidiaModels returns what the driver calls each GPU, by the number of its device.
func nvidiaModels(root string) map[int]string {
	models := make(map[int]string)
	infos, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	for _, path := range infos {
		text, _ := os.ReadFile(path)
		model, number := "", -1
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			switch strings.TrimSpace(name) {
			case "Model":
				model = typeName(value)
			case "Device Minor":
				if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
					number = n
				}
			}
		}
		if number >= 0 {
			models[number] = model
		}
	}
	return models
}

// typeName turns the name of a model into a type: the word with a digit in it, in small letters.
func typeName(model string) string {
	for word := range strings.FieldsSeq(strings.ToLower(model)) {
		kind := grid.GPUs{Type: word, Count: 1}
		if strings.ContainsAny(word, "0123456789") && kind.Check() == nil {
			return word
		}
	}
	return ""
}
