//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package ut

import "unsafe"

const (
	wideBytes = 2 * recordBytes
	// tasksOfAWriter is how many numbers of tasks a writer takes at a time.
	tasksOfAWriter = 1024
	// Numbers of tasks have as many bits as programs that read JSON as floating-point numbers keep. A
	// process counts from a random begin, so that two processes hardly ever have the same numbers.
	tasksBits = 53
	tasksMask = 1<<tasksBits - 1
)

// nextTask returns a number that no other living task of the process has. It is never 0.
func (w *writer) nextTask(s *session) uint64 {
	if w.task == w.tasks {
		w.tasks = s.tasks.Add(tasksOfAWriter)
		w.task = w.tasks - tasksOfAWriter
	}
	number := w.task & tasksMask
	w.task++
	if number == 0 {
		return w.nextTask(s)
	}
	return number
}

// begin records the begin of a span.
func (s *session) begin(n *EventName) Span {
	numbers := n.span.Load()
	if numbers == 0 {
		numbers = s.spanNumbers(cut(n.text, mostTaskText))
		n.span.Store(numbers)
	}
	event := numbers >> 16
	if !s.isOn(event) {
		return Span{}
	}
	p := procPin()
	w := s.ready(p, wideBytes)
	if w == nil {
		if w, _ = s.acquire(p, event, wideBytes); w == nil {
			return Span{}
		}
	}
	number := w.nextTask(s)
	record := unsafe.Add(w.segment, w.cursor)
	if s.isCounter {
		// The reading is the last step, so that little of this lies in the span.
		w.put(0, number, event, 0)
		w.putContinuation(number, continuesAsWide, event)
		stampAndPublish(record, unsafe.Add(w.head, headPublished), w.base+uint64(w.cursor))
	} else {
		ticks, tail := s.now()
		w.putWide(ticks, number, event, tail)
	}
	w.leave()
	return Span{number: number, done: uint16(numbers)}
}

// end records the end of a span.
func (s *session) end(span Span) {
	event := uint32(span.done)
	if !s.isOn(event) {
		return
	}
	// The reading comes first, so that little of this lies in the span. It belongs to the P: records
	// of a ring are in the order of time.
	p := procPin()
	ticks, tail := s.now()
	w := s.ready(p, wideBytes)
	if w == nil {
		var wasUnpinned bool
		if w, wasUnpinned = s.acquire(p, event, wideBytes); w == nil {
			return
		}
		if wasUnpinned {
			ticks, tail = s.now()
		}
	}
	w.putWide(ticks, span.number, event, tail)
	w.leave()
}

// event records an instant.
func (s *session) event(n *EventName, payload uint64) {
	number := n.instant.Load()
	if number == 0 {
		number = uint32(s.number(n.text))
		n.instant.Store(number)
	}
	s.instant(number, payload)
}

func (s *session) instant(event uint32, payload uint64) {
	if !s.isOn(event) {
		return
	}
	bytes := uint32(recordBytes)
	if payload>>32 != 0 {
		bytes = wideBytes
	}
	p := procPin()
	w := s.ready(p, bytes)
	if w == nil {
		if w, _ = s.acquire(p, event, bytes); w == nil {
			return
		}
	}
	ticks, tail := uint64(0), uint64(tailInstant)
	if s.isCounter {
		ticks = counter()
	} else {
		ticks = s.nanoseconds()
	}
	if bytes == recordBytes {
		w.put(ticks, payload, event, tail)
		w.publish()
	} else {
		w.putWide(ticks, payload, event, tail)
	}
	w.leave()
}

// putWide stores an event with a payload of 64 bits and publishes both records at once.
func (w *writer) putWide(ticks, payload uint64, event uint32, tail uint64) {
	w.put(ticks, payload, event, tail)
	w.putContinuation(payload, continuesAsWide, event)
	w.publish()
}
