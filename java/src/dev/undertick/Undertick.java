package dev.undertick;

import java.util.concurrent.ConcurrentHashMap;

/**
 * Records spans, events and tasks into a trace of Undertick.
 *
 * <pre>{@code
 * private static final Name PARSE = Undertick.name("parse");
 *
 * try (Span span = PARSE.span()) {
 *     parse();
 * }
 * }</pre>
 *
 * <p>Start the program by {@code undertick record -o run.ut -- java ...}, or attach to it by
 * {@code undertick record --pid PID}. Otherwise each call costs about a nanosecond.
 */
public final class Undertick {
    /** So many names have numbers in a process (docs/format.md, section 5). */
    private static final int MOST_NAMES = 16384;

    private static final ConcurrentHashMap<String, Name> NAMES = new ConcurrentHashMap<>();

    private Undertick() {}

    /**
     * Returns the object of a name, always the same one. A name has at most 240 bytes of UTF-8, longer
     * ones are cut. A process has about 16,000 names; later ones are recorded as "(other names)".
     *
     * @throws IllegalArgumentException if the name is empty
     */
    public static Name name(String name) {
        Name found = NAMES.get(name);
        if (found != null) {
            return found;
        }
        if (name.isEmpty()) {
            throw new IllegalArgumentException("a name must have at least one character");
        }
        String known = NAMES.size() < MOST_NAMES ? name : "(other names)";
        return NAMES.computeIfAbsent(known, Name::new);
    }

    /** Begins a span, which {@link Span#close} ends. Costs a look-up more than {@link Name#span}. */
    public static Span span(String name) {
        return name(name).span();
    }

    /** Records a point in time with a payload of 64 bits. */
    public static void event(String name, long payload) {
        name(name).event(payload);
    }

    /** Begins a task, which any thread may end. */
    public static Task task(String name) {
        return name(name).task();
    }

    /** Names the calling thread in the trace; a virtual thread has no name there. */
    public static void threadName(String name) {
        if (!Native.isVirtual()) {
            Native.nameThread(name);
        }
    }

    /** Returns whether something records this process now. */
    public static boolean enabled() {
        return Native.isOn();
    }

    /** Returns why nothing can be recorded here, and how to mend it; null if it can. */
    public static String error() {
        return Native.ERROR;
    }
}
