//go:build !client

package main

import (
	"cmp"
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

func (g *gpus) add(kind string, as engine.GPU) {
	g.devices = append(g.devices, gpu.Device{Name: as.Name, Type: kind})
	g.visible = append(g.visible, as)
}

// parseGPUs reads site.gpus: auto, none, or types and numbers as a100=4,v100=2. Drivers
// number them in this order. What there is lies below root.
func parseGPUs(v, root string) (g gpus, err error) {
	if v == "" || v == "none" {
		return g, nil
	}
	found := foundGPUs(root)
	if v == auto {
		return found, nil
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
			as := engine.GPU{Name: kind + "-" + at, Visible: at}
			if i := len(g.devices); i < len(found.visible) {
				as.Visible, as.Nodes = found.visible[i].Visible, found.visible[i].Nodes
			}
			g.add(kind, as)
		}
	}
	if _, err := gpu.New(g.devices); err != nil {
		return g, fmt.Errorf("%q: %w", v, err)
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
		m := models[minor(path)]
		as := engine.GPU{Name: filepath.Base(path), Visible: cmp.Or(m.uuid, strconv.Itoa(len(g.devices)))}
		as.Nodes = append([]string{"/dev/" + as.Name}, nvidiaNodes...)
		g.add(cmp.Or(m.kind, "nvidia"), as)
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
			node := filepath.Base(filepath.Dir(filepath.Dir(path)))
			g.add("amd", engine.GPU{Name: "amd" + at, Visible: at, Nodes: []string{"/dev/dri/" + node, "/dev/kfd"}})
		}
	}
	return g
}

// nvidiaNodes are the device files of NVIDIA's driver, which every task needs that has one of
// its GPUs.
var nvidiaNodes = []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}

// nvidiaModel is what the driver says of a GPU.
type nvidiaModel struct {
	kind string
	uuid string // it is the same for whoever sees it
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

// nvidiaModels returns what the driver says of each GPU, by the number of its device.
func nvidiaModels(root string) map[int]nvidiaModel {
	models := make(map[int]nvidiaModel)
	infos, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	for _, path := range infos {
		text, _ := os.ReadFile(path)
		var model nvidiaModel
		number := -1
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			switch strings.TrimSpace(name) {
			case "Model":
				model.kind = typeName(value)
			case "GPU UUID":
				if uuid := strings.TrimSpace(value); strings.HasPrefix(uuid, "GPU-") && !strings.Contains(uuid, "?") {
					model.uuid = uuid
				}
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
