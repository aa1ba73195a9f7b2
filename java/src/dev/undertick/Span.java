package dev.undertick;

/** A span that has begun, for a {@code try} with resources. Close it once, in the thread that began it. */
public final class Span implements AutoCloseable {
    /** What is returned while nothing is recorded. */
    static final Span NONE = new Span(0, false, 0);

    private final int event;
    private final boolean isTask;
    private final int task;

    /** The event that ends it; of a virtual thread, the number of its task. */
    Span(int event, boolean isTask, int task) {
        this.event = event;
        this.isTask = isTask;
        this.task = task;
    }

    /** Ends the span. */
    @Override
    public void close() {
        if (isTask) {
            Native.taskEvent(event, task);
        } else if (this != NONE) {
            Native.end(event);
        }
    }
}
