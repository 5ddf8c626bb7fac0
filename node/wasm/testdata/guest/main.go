// Command guest is a module that behaves badly, in the way that its first argument names.
package main

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	do := map[string]func([]string) error{
		"say": say, "exit": exit, "loop": loop, "sleep": sleep, "memory": memory, "escape": escape, "output": output,
		"files": files, "fill": fill, "hide": hide, "links": links, "net": dial, "clock": clock, "work": work,
	}[os.Args[1]]
	if err := do(os.Args[2:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func say(args []string) error {
	fmt.Println(strings.Join(os.Args, " "))
	fmt.Println(strings.Join(os.Environ(), " "))
	return nil
}

func exit(args []string) error {
	code, err := strconv.Atoi(args[0])
	if err == nil {
		os.Exit(code)
	}
	return err
}

func loop([]string) error {
	fmt.Println("looping")
	for i := uint64(1); i != 0; i += 2 { // without end
	}
	return nil
}

func sleep([]string) error {
	fmt.Println("sleeping")
	time.Sleep(time.Hour)
	return nil
}

// memory takes memory until there is none.
func memory([]string) error {
	var all [][]byte
	for {
		b := make([]byte, 4<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
}

// escape tries to reach the file that its argument names, which lies beside its directory.
func escape(args []string) error {
	secret, name := args[0], args[0][strings.LastIndexByte(args[0], '/')+1:]
	paths := []string{
		secret, "../" + name, "/../" + name, "../../../../../../../.." + secret, "a/../../" + name, "./.././" + name, "/proc/self/root" + secret,
		"/etc/passwd", "../../../../../../etc/passwd", "//etc/passwd",
	}
	for i, target := range []string{secret, "../" + name, "/", "..", "../..", "/proc/self/root", "loop0"} {
		link := fmt.Sprint("link", i)
		if err := os.Symlink(target, link); err != nil {
			continue // then nobody follows it
		}
		paths = append(paths, link, link+"/"+name, link+secret, link+"/etc/passwd")
	}
	_ = os.Symlink("loop1", "loop0")
	_ = os.Symlink("loop0", "loop1")
	_ = os.Mkdir("sub", 0o755)
	_ = os.Symlink("../..", "sub/up")
	paths = append(paths, "sub/up/"+name, "sub/up/etc/passwd", "loop0")
	for _, path := range paths {
		if b, err := os.ReadFile(path); err == nil && string(b) != "mine" {
			return fmt.Errorf("read %d bytes of %s", len(b), path)
		}
		if _, err := os.ReadDir(path); err == nil && path != "sub" {
			return fmt.Errorf("listed %s", path)
		}
		_ = os.WriteFile(path, []byte("mine"), 0o644) // who watches it sees where
		_ = os.Remove(path)
		_ = os.Rename(path, "got")
		_ = os.Link(path, "got")
		if b, err := os.ReadFile("got"); err == nil && string(b) != "mine" {
			return fmt.Errorf("moved %s here", path)
		}
	}
	fmt.Println("held")
	return nil
}

func output(args []string) error {
	block := []byte(strings.Repeat("x", 1<<20))
	for range 100 {
		if _, err := os.Stdout.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// files opens files until it may not, or there are 100 000.
func files([]string) error {
	var all []*os.File
	for i := range 100_000 {
		f, err := os.Create(fmt.Sprint("f", i))
		if err != nil {
			break
		}
		all = append(all, f)
	}
	fmt.Println(len(all))
	return nil
}

// fill writes until it may not, and says how much it wrote.
func fill([]string) error {
	sum, block := 0, make([]byte, 64<<10)
	for i := 0; sum < 1<<30; i++ {
		f, err := os.Create(fmt.Sprint("fill", i))
		if err != nil {
			break
		}
		n := 0
		for range 16 {
			if n, err = f.Write(block); err != nil {
				break
			}
			sum += n
		}
		if f.Close(); err != nil {
			break
		}
	}
	fmt.Println(sum)
	return nil
}

// hide writes files that have no name any more, and sparse ones, and says how much.
func hide([]string) error {
	sum, block := 0, make([]byte, 64<<10)
	for i := range 1000 {
		f, err := os.Create("hidden")
		if err != nil {
			break
		}
		n, err := f.Write(block)
		if sum += n; err != nil {
			break
		}
		if i%2 == 0 {
			err = os.Remove("hidden")
		} else if err = os.WriteFile("other", nil, 0o644); err == nil {
			err = os.Rename("other", "hidden")
		}
		if err != nil {
			break
		}
	}
	f, err := os.Create("sparse")
	if err == nil {
		if err = f.Truncate(1 << 30); err == nil {
			return fmt.Errorf("made a file of 1 GiB")
		}
		if _, err = f.WriteAt([]byte("x"), 1<<30); err == nil {
			return fmt.Errorf("wrote at 1 GiB")
		}
	}
	fmt.Println(sum)
	return nil
}

// links makes links and directories until it may not.
func links([]string) error {
	n := 0
	for ; n < 100_000; n++ {
		if os.Symlink("x", fmt.Sprint("l", n)) != nil || os.Mkdir(fmt.Sprint("d", n), 0o755) != nil {
			break
		}
	}
	fmt.Println(n)
	return nil
}

// dial connects to an address. What Go calls a network here lies within the module.
func dial(args []string) error {
	c, err := net.Dial("tcp", args[0])
	if err == nil {
		_, err = c.Write([]byte("hello"))
	}
	fmt.Println("tried", err)
	return nil
}

// clock says the smallest step of the clocks, and shows that random bits differ.
func clock([]string) error {
	least := time.Hour
	before := time.Now()
	for end := before.Add(200 * time.Millisecond); before.Before(end); {
		now := time.Now()
		if step := now.Sub(before); step > 0 {
			least = min(least, step)
		}
		before = now
	}
	a, b := make([]byte, 16), make([]byte, 16)
	_, _ = rand.Read(a)
	_, _ = rand.Read(b)
	if string(a) == string(b) {
		return fmt.Errorf("random bits are the same")
	}
	fmt.Println(least.Nanoseconds())
	return nil
}

// work uses its directory as programs do.
func work([]string) error {
	steps := []func() error{
		func() error { return os.MkdirAll("a/b", 0o755) },
		func() error { return os.WriteFile("a/b/one", []byte("hello"), 0o644) },
		func() error {
			f, err := os.OpenFile("a/b/one", os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(" world")
			return err
		},
		func() error { return want("a/b/one", "hello world") },
		func() error { return os.Rename("a/b/one", "two") },
		func() error { return want("two", "hello world") },
		func() error { return os.Truncate("two", 5) },
		func() error { return os.Symlink("../two", "a/three") },
		func() error { return want("a/three", "hello") },
		func() error {
			list, err := os.ReadDir("a")
			if err != nil || len(list) != 2 || list[0].Name() != "b" || !list[0].IsDir() {
				return fmt.Errorf("a has %v: %v", list, err)
			}
			return nil
		},
		func() error { return os.Chtimes("two", time.Unix(1, 0), time.Unix(2, 0)) },
		func() error {
			info, err := os.Stat("two")
			if err != nil || info.Size() != 5 || info.ModTime().Unix() != 2 {
				return fmt.Errorf("two: %+v, %v", info, err)
			}
			return nil
		},
		func() error {
			f, err := os.OpenFile("two", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if err == nil {
				f.Close()
				return fmt.Errorf("two was made again")
			}
			return nil
		},
		func() error { return os.RemoveAll("a") },
		func() error { return os.Remove("two") },
		func() error {
			list, err := os.ReadDir("/")
			if err != nil || len(list) != 0 {
				return fmt.Errorf("left are %v: %v", list, err)
			}
			return nil
		},
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	fmt.Println("done")
	return nil
}

func want(path, text string) error {
	b, err := os.ReadFile(path)
	if err == nil && string(b) != text {
		err = fmt.Errorf("%s holds %q, want %q", path, b, text)
	}
	return err
}
