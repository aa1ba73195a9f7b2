//go:build linux && (amd64 || arm64)

package ut

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain runs one of the programs that other tests record, if one is asked for.
func TestMain(m *testing.M) {
	if program := os.Getenv("UNDERTICK_TEST_PROGRAM"); program != "" {
		runProgram(program)
		os.Exit(0)
	}
	// Programs under the race detector would wait for a second when they end.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

func TestSessionsThatDoNotFitAreRefused(t *testing.T) {
	for _, test := range []struct {
		name, want string
		spoil      func(s *simulated)
	}{
		{"magic", "no control page", func(s *simulated) { s.control[7] = '2' }},
		{"version", "version 3 of the format, this package version 2", func(s *simulated) { set32(s.control, 8, 3) }},
		{"segment size", "segments of 65536 bytes", func(s *simulated) { set32(s.control, 12, 65536) }},
		{"clock", "clock 4", func(s *simulated) { set32(s.control, 16, 4) }},
		{"length", "no control page", func(s *simulated) { _ = os.Truncate(s.file("control"), 12287) }},
		{"missing", "cannot be opened", func(s *simulated) { _ = os.Remove(s.file("control")) }},
		{"link", "cannot be opened", func(s *simulated) {
			_ = os.Rename(s.file("control"), s.file("other"))
			_ = os.Symlink("other", s.file("control"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := simulate(t, settings{})
			if _, err := join(s.dir); err != nil {
				t.Fatalf("the session is refused before it is spoilt: %v", err)
			}
			test.spoil(s)
			_, err := join(s.dir)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, without %q", err, test.want)
			}
		})
	}
	for dir, want := range map[string]string{
		"": "not an absolute path", "relative": "not an absolute path",
		"/" + strings.Repeat("x", 199): "at most 199",
	} {
		if _, err := join(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, without %q", dir, err, want)
		}
	}
}

func TestAPoolThatDoesNotFitIsNotUsed(t *testing.T) {
	for name, spoil := range map[string]func(s *simulated){
		"magic":    func(s *simulated) { s.pool[0] = 'X' },
		"version":  func(s *simulated) { set32(s.pool, 8, 1) },
		"heads":    func(s *simulated) { set32(s.pool, 16, 7) },
		"segments": func(s *simulated) { set32(s.pool, 20, 63) },
		"control":  func(s *simulated) { set32(s.control, 44, 8193) },
		"length":   func(s *simulated) { _ = os.Truncate(s.file("pool"), int64(len(s.pool)-1)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := simulate(t, settings{})
			spoil(s)
			s.join()
			Name("event").Event(1)
			Name("span").Begin().End()
			if lost := le64(s.control, 72); lost != 2 {
				t.Errorf("%d events are counted as lost, not the event and the begin", lost)
			}
		})
	}
}

// ownCommand returns the words that run this test's own file. UNDERTICK_TEST_EMULATOR says what
// emulates its processor, if something does.
func ownCommand() []string {
	own, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append(strings.Fields(os.Getenv("UNDERTICK_TEST_EMULATOR")), own)
}

// program returns the command that runs a program of this test in a process of its own.
func program(t testing.TB, name string, environment ...string) *exec.Cmd {
	t.Helper()
	own := ownCommand()
	command := exec.Command(own[0], own[1:]...)
	command.Env = append(os.Environ(), "UNDERTICK_TEST_PROGRAM="+name)
	command.Env = append(command.Env, environment...)
	return command
}

func TestAProgramWithoutASessionRunsAndIsSilent(t *testing.T) {
	said, err := program(t, "state", "UNDERTICK_DEBUG=1").CombinedOutput()
	if err != nil || string(said) != "false <nil>\n" {
		t.Errorf("%v, it says %q", err, said)
	}
}

func TestAProgramOfAnotherVersionRunsAndSaysWhyIfAsked(t *testing.T) {
	s := simulate(t, settings{})
	set32(s.control, 8, 1)
	const why = "the recorder writes version 1 of the format, this package version 2: " +
		"use versions of both that belong together"
	silent, err := program(t, "state", "UNDERTICK_SESSION="+s.dir).CombinedOutput()
	if err != nil || string(silent) != "false "+why+"\n" {
		t.Errorf("%v, it says %q", err, silent)
	}
	said, err := program(t, "state", "UNDERTICK_SESSION="+s.dir, "UNDERTICK_DEBUG=1").CombinedOutput()
	if err != nil || string(said) != "undertick: nothing is recorded: "+why+"\nfalse "+why+"\n" {
		t.Errorf("%v, it says %q", err, said)
	}
	if log := s.names(); len(log) != 0 {
		t.Errorf("it wrote names: %v", log)
	}
}

func TestAProgramIsRecordedInTheSessionOfItsEnvironment(t *testing.T) {
	s := simulate(t, settings{})
	said, err := program(t, "state", "UNDERTICK_SESSION="+s.dir).CombinedOutput()
	if err != nil || string(said) != "true <nil>\n" {
		t.Fatalf("%v, it says %q", err, said)
	}
	events := s.drain()
	if len(events) != 1 || events[0].payload != 42 {
		t.Errorf("the events are %+v", events)
	}
}

func TestSwitches(t *testing.T) {
	s := simulate(t, settings{})
	s.join()
	event, span := Name("event"), Name("span")
	event.Event(1) // 1 record
	set32(s.control, 32, 0)
	event.Event(2)
	span.Begin().End()
	set32(s.control, 32, 1)
	span.Begin().End() // 2 events
	numbers := map[string]int{}
	for _, name := range s.names() {
		numbers[name.text] = name.event
	}
	off := numbers["span task new"]
	s.control[4096+off/8] |= 1 << (off % 8)
	span.Begin().End() // switches do not count yet: 2 events
	set32(s.control, 32, 2)
	span.Begin().End() // its begin is off, so it has no end
	event.Event(3)     // 1 record
	off = numbers["span task done"]
	open := span.Begin()
	if open != (Span{}) {
		t.Error("a span that is switched off has begun")
	}
	s.control[4096+numbers["span task new"]/8] = 0
	open = span.Begin() // 1 record
	set32(s.control, 32, 0)
	open.End() // nothing is recorded now
	var got []int
	for _, r := range s.drain() {
		got = append(got, r.event)
	}
	begin, end, instant := numbers["span task new"], numbers["span task done"], numbers["event"]
	want := []int{instant, begin, end, begin, end, instant, begin}
	if len(got) != len(want) {
		t.Fatalf("events %v, not %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("events %v, not %v", got, want)
		}
	}
}
