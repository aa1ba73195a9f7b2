package dev.undertick;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Work that threads do in parts, or one after the other: from {@link Name#task} until one of them calls
 * {@link #close} or {@link #cancelled}. A task without polls is a span that may end in another thread.
 */
public final class Task implements AutoCloseable {
    /** What is returned while nothing is recorded. */
    static final Task NONE = new Task();

    private static final VarHandle OVER;

    static {
        try {
            OVER = MethodHandles.lookup().findVarHandle(Task.class, "isOver", boolean.class);
        } catch (ReflectiveOperationException never) {
            throw new ExceptionInInitializerError(never);
        }
    }

    private final Name.TaskNumbers numbers;
    private final int number;

    @SuppressWarnings("unused") // by OVER
    private volatile boolean isOver;

    private Task() {
        numbers = null;
        number = 0;
        isOver = true;
    }

    Task(Name.TaskNumbers numbers) {
        this.numbers = numbers;
        number = Native.newTask(numbers.created);
    }

    /** A part of a task that one thread does, for a {@code try} with resources; also a span of that thread. */
    public static final class Poll implements AutoCloseable {
        private static final Poll NONE = new Poll(0);

        private final int event;

        private Poll(int event) {
            this.event = event;
        }

        /** Ends the part. Call it once, in the thread that began it, before the task is closed. */
        @Override
        public void close() {
            if (this != NONE) {
                Native.end(event);
            }
        }
    }

    /**
     * Begins a part of the task in this thread. Virtual threads record none, since they may change their
     * carrier in the middle of one.
     */
    public Poll poll() {
        if (isOver || !Native.isOn() || Native.isVirtual()) {
            return Poll.NONE;
        }
        Native.beginPoll(numbers.polled, number, numbers.poll);
        return new Poll(numbers.poll);
    }

    /** Records that the task is ready to go on; called by the thread that found out, before its next poll. */
    public void woken() {
        if (!isOver) {
            Native.taskEvent(numbers.woken, number);
        }
    }

    /** Runs work as a part of the task. */
    public void run(Runnable work) {
        try (Poll poll = poll()) {
            work.run();
        }
    }

    /** Records that the task is done. Later calls of this task record nothing. */
    @Override
    public void close() {
        if (OVER.compareAndSet(this, false, true)) {
            Native.taskEvent(numbers.done, number);
        }
    }

    /** Records that the task was given up. Later calls of this task record nothing. */
    public void cancelled() {
        if (OVER.compareAndSet(this, false, true)) {
            Native.taskEvent(numbers.cancelled, number);
        }
    }
}
