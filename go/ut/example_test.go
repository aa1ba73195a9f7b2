package ut_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/undertick/undertick/go/ut"
)

var (
	split = ut.Name("split")
	words = ut.Name("words")
)

func count(text string) int {
	defer split.Begin().End()
	n := len(strings.Fields(text))
	words.Event(uint64(n))
	return n
}

// A function as a span, and an instant with a number. Started by `undertick record -- ./program` the
// program is recorded; started by hand it does the same and records nothing.
func Example() {
	fmt.Println(count("to be or not to be"), "words")
	// Output: 6 words
}

// A request that takes two goroutines, with a part that is done by one of them.
func ExampleNewTask() {
	ctx, request := ut.NewTask(context.Background(), "request")
	lines := make(chan string)
	go func() {
		defer request.End()
		defer ut.StartRegion(ctx, "answer").End()
		lines <- "answered"
	}()
	fmt.Println(<-lines)
	// Output: answered
}

// Spans whose names are not known before they are used, and a span that another goroutine ends.
func ExampleBegin() {
	for _, table := range []string{"users", "orders"} {
		span := ut.Begin("load " + table)
		loaded := make(chan bool)
		go func() {
			span.End()
			loaded <- true
		}()
		<-loaded
	}
}
