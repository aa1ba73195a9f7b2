//go:build linux && (amd64 || arm64)

package ut

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Whole recordings with the program `undertick`. UNDERTICK_BINARY says where it is; otherwise it is
// that of a build in the repository.
func undertick(t *testing.T) string {
	t.Helper()
	path := os.Getenv("UNDERTICK_BINARY")
	if path == "" {
		target := os.Getenv("CARGO_TARGET_DIR")
		if target == "" {
			target = "../../target"
		}
		path = filepath.Join(target, "release/undertick")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: no undertick (%v): cargo build --release -p undertick-cli", err)
	}
	return path
}

// manifest has what these tests need of a trace's manifest.
type manifest struct {
	Lost  int
	Exit  struct{ Status, Signal *int }
	Clock struct{ Name string }
	Rings []struct {
		Pid, Tid, Written, Received, Dropped int
		SpansWait                            bool `json:"spans_wait"`
	}
}

// row is an event of the program in a trace.
type row struct {
	ticks   int64
	ring    int
	pid     int
	name    string
	event   int
	flag    string
	payload uint64
}

type recording struct {
	t     *testing.T
	tool  string
	trace string
	gaps  int // events lost, by the rows that say so
	manifest
}

// recordProgram records a program of this test.
func recordProgram(t *testing.T, words string, options ...string) *recording {
	t.Helper()
	r := &recording{t: t, tool: undertick(t), trace: filepath.Join(t.TempDir(), "t.ut")}
	own := ownCommand()
	arguments := append([]string{"record", "-q", "--no-calibration", "--kernel", "off", "-o", r.trace}, options...)
	arguments = append(append(arguments, "--"), own...)
	command := exec.Command(r.tool, arguments...)
	command.Env = append(os.Environ(), "UNDERTICK_TEST_PROGRAM="+words)
	if len(own) > 1 && os.Getenv("UNDERTICK_CLOCK") == "" {
		command.Env = append(command.Env, "UNDERTICK_CLOCK=monotonic") // an emulated counter is another one
	}
	said, err := command.CombinedOutput()
	text, read := os.ReadFile(filepath.Join(r.trace, "manifest.json"))
	if read != nil {
		t.Fatalf("%v, %v, it says %s", err, read, said)
	}
	if err := json.Unmarshal(text, &r.manifest); err != nil {
		t.Fatal(err)
	}
	for _, ring := range r.Rings {
		if ring.Tid != ring.Pid || !ring.SpansWait {
			t.Errorf("a ring %+v", ring)
		}
		if ring.Written != ring.Received+ring.Dropped {
			t.Errorf("a ring %+v: what was written was neither received nor dropped", ring)
		}
	}
	return r
}

// whole fails if the program failed or events were lost.
func (r *recording) whole() *recording {
	r.t.Helper()
	if r.Exit.Status == nil || *r.Exit.Status != 0 || r.Lost != 0 {
		r.t.Fatalf("exit %+v, %d lost", r.Exit, r.Lost)
	}
	return r
}

// rows returns the events of the program, ring by ring, each in its order.
func (r *recording) rows() (rows []row) {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "t.csv")
	if said, err := exec.Command(r.tool, "export", "-q", r.trace, "--to", "csv", path).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, said)
	}
	file, err := os.Open(path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		r.t.Fatal(err)
	}
	last := map[int]int64{}
	for _, line := range lines[1:] {
		if line[6] != "user" {
			continue
		}
		number := func(i int) int64 {
			n, err := strconv.ParseInt(line[i], 10, 64)
			if err != nil {
				r.t.Fatalf("%v: %v", line, err)
			}
			return n
		}
		one := row{ticks: number(1), ring: int(number(2)), pid: int(number(3)), flag: line[8],
			event: int(number(9)), name: line[10], payload: uint64(number(11))}
		if line[7] == "gap" {
			r.gaps += int(number(11))
			continue
		}
		if line[7] != "instant" || one.ticks < last[one.ring] {
			r.t.Fatalf("%v: no instant, or before the row before it", line)
		}
		last[one.ring] = one.ticks
		rows = append(rows, one)
	}
	return rows
}

// tasks returns the numbers of tasks that a report shows without a table, and fails at tasks that did
// not end.
func (r *recording) tasks() map[string]int {
	r.t.Helper()
	text, err := exec.Command(r.tool, "report", "-q", r.trace, "--json").Output()
	if err != nil {
		r.t.Fatalf("%v: %s", err, text)
	}
	var report struct {
		Tasks struct {
			Rows []struct {
				Name                     string
				Tasks, Done, Live, Polls int
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		r.t.Fatal(err)
	}
	tasks := map[string]int{}
	for _, row := range report.Tasks.Rows {
		if row.Done != row.Tasks || row.Polls != 0 {
			r.t.Errorf("%+v", row)
		}
		tasks[row.Name] = row.Tasks
	}
	return tasks
}

// calls returns the number of calls of spans in the report, and fails at ends without a partner.
func (r *recording) calls(names ...string) map[string]int {
	r.t.Helper()
	table := ""
	for _, name := range names {
		table += fmt.Sprintf("[[interval]]\nname = %q\nstart = %q\nend = %q\nmatch = \"message\"\n",
			name, name+" task new", name+" task done")
	}
	path := filepath.Join(r.t.TempDir(), "table.toml")
	if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
		r.t.Fatal(err)
	}
	text, err := exec.Command(r.tool, "report", "-q", r.trace, "--table", path, "--json").Output()
	if err != nil {
		r.t.Fatalf("%v: %s", err, text)
	}
	var report struct {
		Intervals []struct {
			Name             string
			Count, Unmatched int
			Min              float64
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		r.t.Fatal(err)
	}
	calls := map[string]int{}
	for _, interval := range report.Intervals {
		if interval.Unmatched != 0 || interval.Min < 0 {
			r.t.Errorf("%+v", interval)
		}
		calls[interval.Name] = interval.Count
	}
	return calls
}

func TestTheRecorderReadsTheSharedVectors(t *testing.T) {
	r := recordProgram(t, "vectors").whole()
	want := []row{{event: 0xb1b2, payload: 0xa1a2a3a4}, {event: 0xffff, payload: 0x0102030405060708}, {event: 0, payload: 0xffffffff}}
	rows := r.rows()
	if len(rows) != len(want) {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows {
		if row.event != want[i].event || row.payload != want[i].payload || row.flag != "-1" {
			t.Errorf("row %d is %+v", i, row)
		}
	}
}

func TestExactCountsOfGoroutines(t *testing.T) {
	for _, test := range []struct{ goroutines, each int }{{1, 30_000}, {8, 3000}, {10_000, 5}} {
		t.Run(fmt.Sprint(test.goroutines), func(t *testing.T) {
			r := recordProgram(t, fmt.Sprintf("counts %d %d", test.goroutines, test.each)).whole()
			n := test.goroutines * test.each
			seen := map[uint64]bool{}
			count := map[string]int{}
			for _, row := range r.rows() {
				count[row.name]++
				if row.name == "event" {
					seen[row.payload] = true
				}
			}
			for _, name := range []string{"event", "outer task new", "outer task done", "inner task new", "inner task done"} {
				if count[name] != n {
					t.Errorf("%d of %q, not %d", count[name], name, n)
				}
			}
			for g := range uint64(test.goroutines) {
				for i := range uint64(test.each) {
					if !seen[g<<32|i] {
						t.Fatalf("event %d of goroutine %d is not there", i, g)
					}
				}
			}
			calls := r.calls("outer", "inner")
			if calls["outer"] != n || calls["inner"] != n {
				t.Errorf("the report has %v calls, not %d", calls, n)
			}
		})
	}
}

func TestSpansThatMoveToAnotherThread(t *testing.T) {
	r := recordProgram(t, "moves 2000").whole()
	threads := map[uint64]bool{}
	for _, row := range r.rows() {
		if row.name == "thread" {
			threads[row.payload] = true
		}
	}
	if len(threads) != 2 {
		t.Errorf("threads %v: begins and ends are to be on two", threads)
	}
	if calls := r.calls("moved"); calls["moved"] != 2000 {
		t.Errorf("%v", calls)
	}
}

func TestARecordingOfManySegments(t *testing.T) {
	const n = 300_000 // wide events: 74 segments
	r := recordProgram(t, fmt.Sprint("events ", n), "--ring", "256KiB").whole()
	next := map[int]uint64{}
	total := uint64(0)
	for _, row := range r.rows() {
		if before, isThere := next[row.ring]; isThere && row.payload < before {
			t.Fatalf("event %d comes after event %d", row.payload>>20, before>>20)
		}
		next[row.ring] = row.payload
		total += row.payload >> 20
	}
	written := 0
	for _, ring := range r.Rings {
		written += ring.Written
	}
	if written != n || total != n*(n-1)/2 {
		t.Errorf("%d events with sum %d", written, total)
	}
}

func TestEveryEventIsReceivedOrCounted(t *testing.T) {
	const n = 1_000_000
	r := recordProgram(t, fmt.Sprint("events ", n), "--overflow", "drop", "--ring", "256KiB")
	written := 0
	for _, ring := range r.Rings {
		written += ring.Written
	}
	received := len(r.rows())
	// A gap at the very end has no event after it that could tell.
	if written != n || received+r.Lost != n || r.gaps > r.Lost {
		t.Errorf("%d written, %d received, %d lost, gaps of %d, of %d", written, received, r.Lost, r.gaps, n)
	}
}

func TestBlockingLosesNothing(t *testing.T) {
	r := recordProgram(t, "events 300000", "--overflow", "block", "--ring", "256KiB").whole()
	if n := len(r.rows()); n != 300_000 {
		t.Errorf("%d events", n)
	}
}

func TestAKilledProgramLosesNothing(t *testing.T) {
	const n = 20_000
	r := recordProgram(t, fmt.Sprint("killed ", n))
	if r.Exit.Signal == nil || *r.Exit.Signal != int(syscall.SIGKILL) || r.Lost != 0 {
		t.Fatalf("exit %+v, %d lost", r.Exit, r.Lost)
	}
	before := map[uint64]int{}
	others := map[uint64]map[uint64]bool{}
	for _, row := range r.rows() {
		switch row.name {
		case "before":
			before[row.payload]++
		case "other":
			g := row.payload >> 32 & 0xff
			if others[g] == nil {
				others[g] = map[uint64]bool{}
			}
			others[g][row.payload&0xffffffff] = true
		default:
			t.Fatalf("an event %+v", row)
		}
	}
	for i := range uint64(n) {
		if before[i] != 1 {
			t.Fatalf("event %d is there %d times", i, before[i])
		}
	}
	// Of the other goroutines, what is there has no holes.
	if len(others) != 3 {
		t.Errorf("events of %d other goroutines", len(others))
	}
	for g, seen := range others {
		for i := range uint64(len(seen)) {
			if !seen[i] {
				t.Fatalf("event %d of goroutine %d is not there, but %d are", i, g, len(seen))
			}
		}
	}
}

func TestChildrenThatRecord(t *testing.T) {
	r := recordProgram(t, "children 3 500").whole()
	pids := map[int]int{}
	tasks := map[string]bool{}
	for _, row := range r.rows() {
		if row.name == "event" {
			pids[row.pid]++
		}
		if strings.HasSuffix(row.name, " task new") {
			key := fmt.Sprint(row.name, row.payload)
			if tasks[key] {
				t.Fatalf("two tasks %s", key)
			}
			tasks[key] = true
		}
	}
	if len(pids) != 4 {
		t.Errorf("events by process: %v", pids)
	}
	for pid, n := range pids {
		if n != 2000 {
			t.Errorf("process %d has %d events, not 2000", pid, n)
		}
	}
	calls := r.calls("outer", "inner", "child")
	if calls["outer"] != 8000 || calls["inner"] != 8000 || calls["child"] != 3 {
		t.Errorf("%v", calls)
	}
}

func TestTasksAndRegions(t *testing.T) {
	r := recordProgram(t, "tasks 50").whole()
	calls := r.calls("request", "read", "write", "part")
	tasks := r.tasks()
	for name, n := range calls {
		if n != 100 || tasks[name] != 100 {
			t.Errorf("%s: %d calls and %d tasks, not 100", name, n, tasks[name])
		}
	}
	if len(calls) != 4 {
		t.Errorf("%v", calls)
	}
}

func TestTheMonotonicClocks(t *testing.T) {
	for _, clock := range []string{"monotonic", "monotonic_raw"} {
		t.Setenv("UNDERTICK_CLOCK", clock)
		r := recordProgram(t, "counts 4 200").whole()
		if calls := r.calls("outer"); calls["outer"] != 800 || r.Clock.Name != clock {
			t.Errorf("%s, recorded with %s: %v", clock, r.Clock.Name, calls)
		}
	}
}
