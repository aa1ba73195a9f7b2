package ut

import (
	"context"
	"runtime/trace"
)

// Task is an operation of the program, such as a request, which may take several goroutines. Its
// span lasts from [NewTask] to [Task.End].
type Task struct {
	span  Span
	trace *trace.Task // nil: Go's own tracer was off
}

// NewTask begins a task and returns it with a context for its parts. If Go's own tracer is on
// (runtime/trace), the task is in that trace, too, and the context is that of trace.NewTask.
func NewTask(ctx context.Context, name string) (context.Context, *Task) {
	task := new(Task)
	if trace.IsEnabled() {
		ctx, task.trace = trace.NewTask(ctx, name)
	}
	task.span = Begin(name)
	return ctx, task
}

// End ends the task. Call it once, from any goroutine.
func (t *Task) End() {
	t.span.End()
	if t.trace != nil {
		t.trace.End()
	}
}

// WithTask calls fn as a task with that name.
func WithTask(ctx context.Context, name string, fn func(context.Context)) {
	ctx, task := NewTask(ctx, name)
	defer task.End()
	fn(ctx)
}

// Region is a part of a task that one goroutine does.
type Region struct {
	span  Span
	trace *trace.Region
}

// StartRegion begins a region. If Go's own tracer is on, the region is in that trace, too, and must
// end in the goroutine in which it began:
//
//	defer ut.StartRegion(ctx, "read").End()
func StartRegion(ctx context.Context, name string) Region {
	var region Region
	if trace.IsEnabled() {
		region.trace = trace.StartRegion(ctx, name)
	}
	region.span = Begin(name)
	return region
}

// End ends the region.
func (r Region) End() {
	r.span.End()
	if r.trace != nil {
		r.trace.End()
	}
}

// WithRegion calls fn as a region with that name.
func WithRegion(ctx context.Context, name string, fn func()) {
	defer StartRegion(ctx, name).End()
	fn()
}
