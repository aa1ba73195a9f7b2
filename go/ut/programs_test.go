//go:build linux && (amd64 || arm64)

package ut

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/trace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// runProgram runs one of the programs that tests record: a name and numbers.
func runProgram(words string) {
	var name string
	var n, m int
	fmt.Sscan(words, &name, &n, &m)
	switch name {
	case "state":
		fmt.Println(Enabled(), Err())
		Event("event", 42)
	case "vectors":
		active.instant(0xb1b2, 0xa1a2a3a4)
		active.instant(0xffff, 0x0102030405060708)
		active.instant(0, 0xffffffff)
	case "counts":
		counts(n, m)
	case "moves":
		moves(n)
	case "events":
		event := Name("event")
		for i := range uint64(n) {
			event.Event(i << 20)
		}
	case "killed":
		killed(n)
	case "children":
		children(n, m)
	case "tasks":
		tasks(n)
	default:
		fmt.Fprintf(os.Stderr, "no program %q\n", words)
		os.Exit(2)
	}
}

// counts runs goroutines that all are there at the same time, each with nested spans and events.
func counts(goroutines, each int) {
	var ready, all sync.WaitGroup
	outer, inner, event := Name("outer"), Name("inner"), Name("event")
	ready.Add(goroutines)
	for g := range uint64(goroutines) {
		all.Go(func() {
			ready.Done()
			ready.Wait()
			for i := range uint64(each) {
				func() {
					defer outer.Begin().End()
					defer inner.Begin().End()
					event.Event(g<<32 | i)
				}()
				runtime.Gosched()
			}
		})
	}
	all.Wait()
}

// moves begins spans on one thread and ends them on another.
func moves(n int) {
	spans := make(chan Span)
	name, here := Name("moved"), Name("thread")
	var all sync.WaitGroup
	all.Go(func() {
		runtime.LockOSThread()
		here.Event(uint64(syscall.Gettid()))
		for range n {
			spans <- name.Begin()
		}
		close(spans)
	})
	all.Go(func() {
		runtime.LockOSThread()
		here.Event(uint64(syscall.Gettid()))
		for span := range spans {
			span.End()
		}
	})
	all.Wait()
}

// killed kills its process after n events, while other goroutines record.
func killed(n int) {
	before, others := Name("before"), Name("other")
	var running sync.WaitGroup
	var idle atomic.Uint64
	for g := range uint64(3) {
		running.Add(1)
		go func() {
			for i := uint64(0); ; i++ {
				others.Event(g<<32 | 1<<40 | i)
				for range 1000 { // not millions of events
					idle.Add(1)
				}
				if i == 100 {
					running.Done()
				}
			}
		}()
	}
	running.Wait()
	for i := range uint64(n) {
		before.Event(i)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// children runs programs that record, too, at the same time.
func children(processes, each int) {
	own := ownCommand()
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			defer Begin("child").End()
			command := exec.Command(own[0], own[1:]...)
			command.Env = append(os.Environ(), fmt.Sprintf("UNDERTICK_TEST_PROGRAM=counts 4 %d", each))
			if said, err := command.CombinedOutput(); err != nil {
				panic(fmt.Sprint(err, string(said)))
			}
		})
	}
	counts(4, each)
	all.Wait()
}

// tasks has tasks and regions, half of them under Go's own tracer.
func tasks(n int) {
	for round := range 2 {
		var tracer strings.Builder
		if round == 1 {
			if err := trace.Start(&tracer); err != nil {
				panic(err)
			}
		}
		for range n {
			ctx, task := NewTask(context.Background(), "request")
			WithRegion(ctx, "read", func() {})
			done := make(chan struct{})
			go func() {
				StartRegion(ctx, "write").End()
				close(done)
			}()
			<-done
			task.End()
			WithTask(ctx, "part", func(context.Context) {})
		}
		if round == 1 {
			trace.Stop()
			for _, name := range []string{"request", "read", "write", "part"} {
				if !strings.Contains(tracer.String(), name) {
					panic("not in Go's own trace: " + name)
				}
			}
		}
	}
}
