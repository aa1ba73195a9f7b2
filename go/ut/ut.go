package ut

import (
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

const (
	taskNew  = " task new"
	taskDone = " task done"
	// A name with the longest ending, " task cancelled", has at most 255 bytes.
	mostTaskText = 255 - len(" task cancelled")
)

// EventName is a name of spans and events, made by [Name]. Its event numbers are looked up once, so
// its methods cost less than the functions that take a string. All methods may be called from any
// goroutine. A nil EventName records nothing.
type EventName struct {
	text    string
	instant atomic.Uint32 // number of the event; 0: not made yet
	span    atomic.Uint32 // numbers of "task new" (high half) and "task done"; 0: not made yet
}

// Name returns a name for spans and events. Names of more than 255 bytes are cut, those of spans at
// 240. Keep the result in a variable:
//
//	var parse = ut.Name("parse")
//
// Numbers for names are made when they are first used, at most 16383 in a process; what has other
// names is recorded as "(other names)".
func Name(name string) *EventName { return &EventName{text: name} }

// String returns the name, empty for nil.
func (n *EventName) String() string {
	if n == nil {
		return ""
	}
	return n.text
}

// Event records an instant with a payload of the program's choice.
func (n *EventName) Event(payload uint64) {
	if s := active; s != nil && n != nil {
		s.event(n, payload)
	}
}

// Begin begins a span and returns it. The clock is read when all earlier instructions have been
// executed.
func (n *EventName) Begin() Span {
	if s := active; s != nil && n != nil {
		return s.begin(n)
	}
	return Span{}
}

// cut returns the whole characters of the first bytes of a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Span is a span that has begun. The zero Span is one that is not recorded.
type Span struct {
	number uint64 // of the task; 0: it is not recorded
	done   uint16 // event of its end
}

// End ends the span, when all its instructions have been executed. Call it once, from any goroutine.
func (span Span) End() {
	if span.number == 0 {
		return
	}
	if s := active; s != nil {
		s.end(span)
	}
}

// Enabled reports whether the program was started under a recorder and can record.
func Enabled() bool { return active != nil }

// Err returns why the program records nothing although UNDERTICK_SESSION is set; nil if it records,
// or if there is no session. With UNDERTICK_DEBUG=1 in its environment the program prints it when it
// starts.
func Err() error { return reasonNotJoined() }

// Event records an instant with that name. For names in hot code use [EventName.Event].
func Event(name string, payload uint64) {
	if s := active; s != nil {
		s.event(known.find(name), payload)
	}
}

// Begin begins a span with that name:
//
//	defer ut.Begin("parse").End()
//
// For names in hot code use [EventName.Begin].
func Begin(name string) Span {
	if s := active; s != nil {
		return s.begin(known.find(name))
	}
	return Span{}
}

// mostKnown is the number of names that have numbers of their own.
const mostKnown = 16383

var (
	known names
	other = Name("(other names)")
)

// names finds names by their text. Lookups take no lock, once the name has been seen for a while.
type names struct {
	settled atomic.Pointer[map[string]*EventName]
	lock    sync.Mutex
	all     map[string]*EventName
	misses  int
}

func (k *names) find(text string) *EventName {
	if settled := k.settled.Load(); settled != nil {
		if n, isThere := (*settled)[text]; isThere {
			return n
		}
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	n, isThere := k.all[text]
	switch {
	case isThere:
	case len(k.all) >= mostKnown:
		return other
	default:
		if k.all == nil {
			k.all = make(map[string]*EventName)
		}
		n = Name(text)
		k.all[text] = n
	}
	// A copy for lookups without the lock, made as often as the number of names grows.
	if k.misses++; k.misses >= len(k.all) {
		settled := make(map[string]*EventName, len(k.all))
		for text, n := range k.all {
			settled[text] = n
		}
		k.settled.Store(&settled)
		k.misses = 0
	}
	return n
}
