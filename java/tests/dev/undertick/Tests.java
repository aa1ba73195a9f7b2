package dev.undertick;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** The tests of the package: a runner, and tests by name. */
final class Tests {
    private interface Test {
        void run() throws Exception;
    }

    private static final Map<String, Test> TESTS = new LinkedHashMap<>();

    static {
        TESTS.put("nested spans are recorded exactly", Tests::nested);
        TESTS.put("a span ends when its block throws", Tests::thrown);
        TESTS.put("payloads of 64 bits are kept", Tests::payloads);
        TESTS.put("names are cut between characters", Tests::names);
        TESTS.put("names beyond the table are recorded as other names", Tests::otherNames);
        TESTS.put("nothing is lost when the program is killed", Tests::killed);
        TESTS.put("each thread has a ring and a name", Tests::threads);
        TESTS.put("100,000 tasks end in another thread", Tests::moved);
        TESTS.put("a task is polled by several threads", Tests::polls);
        TESTS.put("a task that is over records nothing", Tests::over);
        TESTS.put("spans of virtual threads are tasks", Tests::virtual);
        TESTS.put("without a recorder the calls do nothing", Tests::state);
        TESTS.put("without the library the error says why", Tests::withoutLibrary);
        TESTS.put("a recorder attaches to a running program, and leaves it", Tests::attached);
    }

    private Tests() {}

    /** Runs the tests whose names contain all words; prints how many passed, failed and were skipped. */
    public static void main(String[] words) {
        int passed = 0;
        int failed = 0;
        int skipped = 0;
        for (Map.Entry<String, Test> test : TESTS.entrySet()) {
            if (!List.of(words).stream().allMatch(test.getKey()::contains)) {
                continue;
            }
            try {
                test.getValue().run();
                passed++;
                System.out.println("ok " + test.getKey());
            } catch (Recording.Skipped why) {
                skipped++;
                System.out.println("skipped: " + test.getKey() + ": " + why.getMessage());
            } catch (Exception | AssertionError error) {
                failed++;
                System.out.println("FAILED: " + test.getKey() + ": " + error);
                error.printStackTrace(System.out);
            }
        }
        System.out.println(passed + " passed, " + failed + " failed, " + skipped + " skipped");
        System.exit(failed == 0 && passed + skipped > 0 ? 0 : 1);
    }

    static void holds(boolean is, String otherwise) {
        if (!is) {
            throw new AssertionError(otherwise);
        }
    }

    private static void same(Object found, Object expected) {
        holds(expected.equals(found), found + "\ninstead of " + expected);
    }

    private static void isNested(List<Recording.Row> rows, int n) {
        List<String> expected = List.of("begin outer", "begin inner", "instant event", "end inner", "end outer");
        same(rows.size(), expected.size() * n);
        for (int i = 0; i < rows.size(); i++) {
            same(rows.get(i).text(), expected.get(i % expected.size()));
            if (rows.get(i).kind().equals("instant")) {
                same(rows.get(i).payload(), (long) (i / expected.size()));
            }
        }
    }

    private static void nested() throws Exception {
        isNested(Recording.whole("nested", 50000).rows, 50000);
    }

    private static void thrown() throws Exception {
        Map<String, Integer> expected = Map.of("begin thrown", 100, "end thrown", 100, "instant caught", 1);
        Recording recording = Recording.whole("thrown", 100);
        same(recording.counts(), expected);
        same(recording.rows.get(200).payload(), 100L);
    }

    private static void payloads() throws Exception {
        List<Long> expected = List.of(0L, 1L, 0xffffffffL, 0x100000000L, Long.MAX_VALUE, -1L, 0L);
        same(Recording.whole("payloads").rows.stream().map(Recording.Row::payload).toList(), expected);
    }

    private static void names() throws Exception {
        List<String> expected = List.of("instant " + "\u00e4".repeat(120), "instant " + "\ud83d\ude00".repeat(60),
                "instant " + "x".repeat(240), "instant a b", "instant refused");
        same(Recording.whole("names", 0).texts(), expected);
    }

    private static void otherNames() throws Exception {
        int named = 0;
        int others = 0;
        for (Recording.Row row : Recording.whole("names", 20000).rows) {
            if (row.name().startsWith("name ")) {
                same(row.name(), "name " + row.payload());
                named++;
            }
            others += row.name().equals("(other names)") ? 1 : 0;
        }
        same(named + others, 20000);
        holds(named > 16000 && named < 16384, named + " names");
    }

    private static void killed() throws Exception {
        Recording recording = Recording.any("killed", 5000);
        same(recording.number("signal"), 9L);
        same(recording.number("lost"), 0L);
        isNested(recording.rows, 5000);
    }

    private static void threads() throws Exception {
        Recording recording = Recording.whole("threads", 4, 10000);
        same(recording.byRing().size(), 4);
        recording.byRing().forEach(rows -> isNested(rows, 10000));
        for (int t = 0; t < 4; t++) {
            holds(recording.manifest.contains("\"worker " + t + "\""), "no name of thread " + t);
        }
    }

    private static void moved() throws Exception {
        int n = 100000;
        Recording recording = Recording.whole("moved", n);
        same(recording.counts(), Map.of("instant moved task new", n, "instant moved task done", n));
        same(recording.byRing().size(), 2);
        for (List<Recording.Row> rows : recording.byRing()) {
            Set<Long> numbers = new HashSet<>();
            rows.forEach(row -> numbers.add(row.payload()));
            same(numbers.size(), n);
            same(rows.stream().map(Recording.Row::name).distinct().count(), 1L);
        }
    }

    private static void polls() throws Exception {
        Recording recording = Recording.whole("polls", 3);
        Map<String, Integer> expected = new HashMap<>(Map.of("instant request task new", 1,
                "instant request task woken", 3, "instant request task polled", 4, "begin request", 4,
                "end request", 4, "instant in poll", 4, "instant request task done", 1));
        same(recording.counts(), expected);
        same(recording.byRing().size(), 4);
        List<String> poll = List.of("instant request task polled", "begin request", "instant in poll", "end request");
        for (List<Recording.Row> rows : recording.byRing()) {
            List<String> texts = rows.stream().map(Recording.Row::text).toList();
            int from = texts.indexOf(poll.get(0));
            same(texts.subList(from, from + 4), poll);
        }
        Set<Long> numbers = new HashSet<>();
        recording.rows.stream().filter(row -> row.name().startsWith("request task"))
                .forEach(row -> numbers.add(row.payload()));
        same(numbers.size(), 1);
    }

    private static void over() throws Exception {
        List<String> expected = List.of("instant done task new", "instant done task done",
                "instant cancelled task new", "instant cancelled task cancelled");
        same(Recording.whole("over").texts(), expected);
    }

    private static void virtual() throws Exception {
        if (Runtime.version().feature() < 21) {
            throw new Recording.Skipped("no virtual threads in Java " + Runtime.version().feature());
        }
        int all = 2000;
        Recording recording = Recording.whole("virtual", 200, 10);
        same(recording.counts(), Map.of("instant span task new", all, "instant span task done", all,
                "instant task task new", all, "instant task task done", all, "instant event", all));
        Map<Long, Integer> ends = new HashMap<>();
        for (Recording.Row row : recording.rows) {
            if (row.name().startsWith("span task")) {
                ends.merge(row.payload(), 1, Integer::sum);
            }
        }
        same(ends.size(), all);
        same(Set.copyOf(ends.values()), Set.of(2));
        holds(!recording.manifest.contains("a virtual thread"), "a carrier has the name of a virtual thread");
    }

    private static void state() throws Exception {
        same(Recording.run(Recording.program("state")).trim(), "false null");
        holds(Recording.whole("state").said.contains("true null"), "a recorded program is not enabled");
    }

    private static void withoutLibrary() throws Exception {
        List<String> command = new ArrayList<>(Recording.program("state"));
        command.add(1, "-Dundertick.library=/no/such/library.so");
        String said = Recording.run(command);
        holds(said.startsWith("false the library cannot be loaded") && said.contains("/no/such/library.so"), said);
    }

    private static void attached() throws Exception {
        Path undertick = Recording.undertick();
        Process running = new ProcessBuilder(Recording.program("attached")).start();
        try (Recording.Scratch scratch = new Recording.Scratch()) {
            same(running.inputReader().readLine(), "ready");
            for (int round = 0; round < 2; round++) {
                Path trace = scratch.path.resolve(round + ".ut");
                String said = Recording.run(List.of(undertick.toString(), "record", "-q", "--no-calibration", "--kernel",
                        "off", "--pid", Long.toString(running.pid()), "--for", "1s", "-o", trace.toString()));
                holds(Files.exists(trace), said);
                Map<String, Integer> counts = Recording.read(said, trace).counts();
                int spans = counts.getOrDefault("begin span", 0);
                holds(spans > 0 && Math.abs(spans - counts.getOrDefault("end span", 0)) <= 1, counts.toString());
                holds(counts.getOrDefault("instant task task new", 0) > 0, counts.toString());
                holds(!counts.containsKey("instant early"), counts.toString());
            }
            running.outputWriter().append("end\n").flush();
            holds(running.waitFor(1, TimeUnit.MINUTES) && running.exitValue() == 0, "the program did not end well");
        } finally {
            running.destroyForcibly();
        }
    }
}
