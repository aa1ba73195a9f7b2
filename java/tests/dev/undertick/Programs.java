package dev.undertick;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The programs that tests record: a name and its numbers. */
final class Programs {
    private Programs() {}

    public static void main(String[] words) throws Exception {
        int n = words.length > 1 ? Integer.parseInt(words[1]) : 0;
        int m = words.length > 2 ? Integer.parseInt(words[2]) : 0;
        switch (words[0]) {
            case "state" -> state();
            case "nested" -> nested(n);
            case "thrown" -> thrown(n);
            case "payloads" -> payloads();
            case "names" -> names(n);
            case "killed" -> killed(n);
            case "threads" -> threads(n, m);
            case "moved" -> moved(n);
            case "polls" -> polls(n);
            case "over" -> over();
            case "virtual" -> virtual(n, m);
            case "attached" -> attached();
            default -> throw new IllegalArgumentException("no program " + words[0]);
        }
    }

    private static void state() {
        Undertick.event("event", 42);
        try (Span span = Undertick.span("span");
                Task task = Undertick.task("task")) {
            task.run(() -> {});
            task.woken();
        }
        System.out.println(Undertick.enabled() + " " + Undertick.error());
    }

    /** Nested spans by both kinds of call, and an event with a payload. */
    private static void nested(int n) {
        Name outer = Undertick.name("outer");
        Name event = Undertick.name("event");
        for (int i = 0; i < n; i++) {
            try (Span first = outer.span();
                    Span second = Undertick.span("inner")) {
                event.event(i);
            }
        }
    }

    private static void thrown(int n) {
        int caught = 0;
        for (int i = 0; i < n; i++) {
            try (Span span = Undertick.span("thrown")) {
                throw new IllegalStateException();
            } catch (IllegalStateException expected) {
                caught++;
            }
        }
        Undertick.event("caught", caught);
    }

    private static void payloads() {
        for (long payload : new long[] {0, 1, 0xffffffffL, 0x100000000L, Long.MAX_VALUE, -1}) {
            Undertick.event("payload", payload);
        }
        Undertick.name("payload").event();
    }

    private static void names(int n) {
        Undertick.event("\u00e4".repeat(200), 0);
        Undertick.event("\ud83d\ude00".repeat(61), 0);
        Undertick.event("x".repeat(241), 0);
        Undertick.event("a\0b", 0);
        try {
            Undertick.event("", 0);
        } catch (IllegalArgumentException expected) {
            Undertick.event("refused", 0);
        }
        for (int i = 0; i < n; i++) {
            Undertick.event("name " + i, i);
        }
    }

    private static void killed(int n) throws Exception {
        nested(n);
        long pid = ProcessHandle.current().pid();
        new ProcessBuilder("kill", "-9", Long.toString(pid)).start().waitFor();
    }

    private static void threads(int threads, int n) throws Exception {
        List<Thread> all = new ArrayList<>();
        CountDownLatch ready = new CountDownLatch(threads);
        for (int t = 0; t < threads; t++) {
            String name = "worker " + t;
            Thread thread = new Thread(() -> {
                Undertick.threadName(name);
                ready.countDown();
                nested(n);
            });
            all.add(thread);
            thread.start();
        }
        for (Thread thread : all) {
            thread.join();
        }
    }

    /** Tasks that one thread begins and another one ends. */
    private static void moved(int n) throws Exception {
        Name name = Undertick.name("moved");
        ConcurrentLinkedQueue<Task> tasks = new ConcurrentLinkedQueue<>();
        Thread other = new Thread(() -> {
            for (int done = 0; done < n; ) {
                Task task = tasks.poll();
                if (task == null) {
                    Thread.onSpinWait();
                } else {
                    task.close();
                    done++;
                }
            }
        });
        other.start();
        for (int i = 0; i < n; i++) {
            tasks.add(name.task());
        }
        other.join();
    }

    /** A task that is polled by three threads, one after the other. */
    private static void polls(int n) throws Exception {
        Name name = Undertick.name("request");
        try (Task task = name.task()) {
            for (int i = 0; i < n; i++) {
                task.woken();
                Thread thread = new Thread(() -> task.run(() -> Undertick.event("in poll", 1)));
                thread.start();
                thread.join();
            }
            try (Task.Poll poll = task.poll()) {
                Undertick.event("in poll", 2);
            }
        }
    }

    /** What tasks that are over record: nothing. */
    private static void over() {
        Task done = Undertick.task("done");
        done.close();
        Task cancelled = Undertick.task("cancelled");
        cancelled.cancelled();
        for (Task task : new Task[] {done, cancelled}) {
            task.woken();
            task.run(() -> {});
            task.close();
            task.cancelled();
        }
    }

    /** Virtual threads, each of which waits inside its spans. */
    private static void virtual(int threads, int n) throws Exception {
        // Of Java 21, hence by reflection.
        ExecutorService executor = (ExecutorService)
                Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        for (int t = 0; t < threads; t++) {
            executor.submit(() -> {
                for (int i = 0; i < n; i++) {
                    try (Span span = Undertick.span("span");
                            Task task = Undertick.task("task")) {
                        task.run(Thread::yield);
                        Undertick.threadName("a virtual thread");
                        Undertick.event("event", 1);
                    }
                }
            });
        }
        executor.shutdown();
        executor.awaitTermination(1, java.util.concurrent.TimeUnit.MINUTES);
    }

    /** Says that it is there, and goes on until it is told to end. */
    private static void attached() throws Exception {
        Undertick.event("early", 0);
        System.out.println("ready");
        while (System.in.available() == 0) {
            try (Span span = Undertick.span("span");
                    Task task = Undertick.task("task")) {
                Thread.sleep(1);
            }
        }
    }
}
