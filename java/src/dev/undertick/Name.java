package dev.undertick;

/** A name of spans, events and tasks, from {@link Undertick#name}. Store it in a static final field. */
public final class Name {
    /** A name is cut here, so that names of tasks have room for their ends in 255 bytes. */
    private static final int MOST_BYTES = 240;

    private final String text;
    private final int number;
    private final Span onThread;

    /** The event numbers of tasks of a name, which it gets when the first one is recorded. */
    static final class TaskNumbers {
        final int poll;
        final int created;
        final int polled;
        final int woken;
        final int done;
        final int cancelled;

        TaskNumbers(String name, int poll) {
            this.poll = poll;
            created = Native.numberOf(name + " task new");
            polled = Native.numberOf(name + " task polled");
            woken = Native.numberOf(name + " task woken");
            done = Native.numberOf(name + " task done");
            cancelled = Native.numberOf(name + " task cancelled");
        }
    }

    private volatile TaskNumbers taskNumbers;

    Name(String name) {
        text = Native.shortened(name, MOST_BYTES);
        number = Native.numberOf(text);
        onThread = new Span(number, false, 0);
    }

    /**
     * Begins a span, which {@link Span#close} ends in the same thread; spans nest. In a virtual thread,
     * which may change its carrier, the span is a task without polls.
     */
    public Span span() {
        if (!Native.isOn()) {
            return Span.NONE;
        }
        if (Native.isVirtual()) {
            TaskNumbers numbers = taskNumbers();
            return new Span(numbers.done, true, Native.newTask(numbers.created));
        }
        Native.begin(number);
        return onThread;
    }

    /** Records a point in time. */
    public void event() {
        event(0);
    }

    /** Records a point in time with a payload of 64 bits; one below 0 is recorded as its bits. */
    public void event(long payload) {
        if (!Native.isOn()) {
            return;
        }
        if (payload >>> 32 == 0) {
            Native.event(number, (int) payload);
        } else {
            Native.wideEvent(number, payload);
        }
    }

    /** Begins a task, which any thread may end. */
    public Task task() {
        return Native.isOn() ? new Task(taskNumbers()) : Task.NONE;
    }

    /** Returns the name as it is in the trace. */
    @Override
    public String toString() {
        return text;
    }

    private TaskNumbers taskNumbers() {
        TaskNumbers numbers = taskNumbers;
        if (numbers == null) {
            // Threads that ask at the same time get the same numbers.
            numbers = new TaskNumbers(text, number);
            taskNumbers = numbers;
        }
        return numbers;
    }
}
