package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestGPUsOfSettings(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{"none", "[]"}, {"", "[]"}, {"a100=2", "[{a100-0 a100} {a100-1 a100}]"}, {"a100=1,v100=1", "[{a100-0 a100} {v100-1 v100}]"},
		{"a100", "error"}, {"a100=0", "error"}, {"=2", "error"}, {"a 100=2", "error"}, {"a=99999", "error"},
	} {
		g, err := parseGPUs(tt.value, t.TempDir())
		got := fmt.Sprint(g.devices)
		if err != nil {
			got = "error"
		}
		if got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.value, got, tt.want)
		}
	}
}

// TestGPUsOfTheMachine: by the files that drivers make.
func TestGPUsOfTheMachine(t *testing.T) {
	put := func(root, path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	none, nvidia, amd := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range []string{"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm"} {
		put(nvidia, "dev/"+name, "")
	}
	put(nvidia, "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 7\nGPU UUID: \t GPU-11aa\nDevice Minor: \t 0\n")
	put(nvidia, "proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t\t Tesla V100-SXM2-32GB\nDevice Minor: \t 10\n")
	put(amd, "dev/kfd", "")
	put(amd, "sys/class/drm/renderD128/device/vendor", "0x1002\n")
	put(amd, "sys/class/drm/renderD129/device/vendor", "0x8086\n")
	for root, want := range map[string]string{
		none: "[]", amd: "[{amd0 amd}]", nvidia: "[{nvidia0 h200} {nvidia1 nvidia} {nvidia10 v100-sxm2-32gb}]",
	} {
		if got := fmt.Sprint(foundGPUs(root).devices); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, tt := range []struct{ root, value, want string }{ // what tasks are told, and the files that they see
		{nvidia, "auto", "[{nvidia0 GPU-11aa [/dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools]} {nvidia1 1 [/dev/nvidia1 /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools]} {nvidia10 2 [/dev/nvidia10 /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools]}]"},
		{nvidia, "h=1", "[{h-0 GPU-11aa [/dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools]}]"},
		{amd, "auto", "[{amd0 0 [/dev/dri/renderD128 /dev/kfd]}]"},
		{none, "h=1", "[{h-0 0 []}]"},
	} {
		g, err := parseGPUs(tt.value, tt.root)
		if got := fmt.Sprint(g.visible); err != nil || got != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.value, got, err, tt.want)
		}
	}
}
