package dev.undertick;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A recording of one of the {@link Programs}, by the program {@code undertick}. */
final class Recording {
    /** An event of the program. */
    record Row(int ring, String kind, String name, long payload) {
        String text() {
            return kind + " " + name;
        }
    }

    final String said;
    final String manifest;
    final List<Row> rows;

    private Recording(String said, Path trace) throws Exception {
        this.said = said;
        manifest = Files.readString(trace.resolve("manifest.json"));
        rows = rows(trace);
    }

    /** Path of {@code undertick}, which the property of this name says. */
    static Path undertick() {
        Path path = Path.of(System.getProperty("undertick"));
        if (!Files.exists(path)) {
            throw new Skipped("no " + path + ": cargo build --release -p undertick-cli");
        }
        return path;
    }

    static String java() {
        return Path.of(System.getProperty("java.home"), "bin/java").toString();
    }

    /** The words that run one of the programs. */
    static List<String> program(Object... words) {
        List<String> command = new ArrayList<>(List.of(java(), "-XX:+UseSerialGC"));
        if (Runtime.version().feature() >= 24) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "dev.undertick.Programs"));
        for (Object word : words) {
            command.add(word.toString());
        }
        return command;
    }

    /** Records one of the programs, which must end well and lose nothing. */
    static Recording whole(Object... words) throws Exception {
        Recording recording = any(words);
        Tests.holds(recording.number("lost") == 0, "events were lost");
        Tests.holds(recording.number("status") == 0, recording.said);
        return recording;
    }

    static Recording any(Object... words) throws Exception {
        try (Scratch scratch = new Scratch()) {
            Path trace = scratch.path.resolve("t.ut");
            List<String> command = new ArrayList<>(List.of(undertick().toString(), "record", "-q",
                    "--no-calibration", "--kernel", "off", "-o", trace.toString(), "--"));
            command.addAll(program(words));
            return new Recording(run(command), trace);
        }
    }

    static Recording read(String said, Path trace) throws Exception {
        return new Recording(said, trace);
    }

    /** Runs a command; returns what it prints, errors included. */
    static String run(List<String> command) throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().remove("UNDERTICK_SESSION");
        Process process = builder.start();
        process.getOutputStream().close();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return said;
    }

    /** The first number of a field of the manifest; -1: there is none. */
    long number(String field) {
        Matcher found = Pattern.compile("\"" + field + "\"\\s*:\\s*(-?\\d+)").matcher(manifest);
        return found.find() ? Long.parseLong(found.group(1)) : -1;
    }

    /** The rows as texts, in their order; ring by ring. */
    List<String> texts() {
        return rows.stream().map(Row::text).toList();
    }

    Collection<List<Row>> byRing() {
        Map<Integer, List<Row>> rings = new LinkedHashMap<>();
        for (Row row : rows) {
            rings.computeIfAbsent(row.ring, ring -> new ArrayList<>()).add(row);
        }
        return rings.values();
    }

    /** How many rows there are of each text. */
    Map<String, Integer> counts() {
        Map<String, Integer> counts = new TreeMap<>();
        texts().forEach(text -> counts.merge(text, 1, Integer::sum));
        return counts;
    }

    private static List<Row> rows(Path trace) throws Exception {
        Path csv = trace.resolveSibling("t.csv");
        String said = run(List.of(undertick().toString(), "export", "-q", trace.toString(), "--to", "csv",
                csv.toString()));
        Tests.holds(Files.exists(csv), said);
        List<String> lines = Files.readAllLines(csv);
        Files.delete(csv);
        List<String> head = List.of(lines.get(0).split(","));
        int ring = head.indexOf("ring");
        int mode = head.indexOf("mode");
        int kind = head.indexOf("kind");
        int name = head.indexOf("name");
        int payload = head.indexOf("payload");
        List<Row> rows = new ArrayList<>();
        for (String line : lines.subList(1, lines.size())) {
            // No name of the programs has a comma.
            String[] cells = line.split(",", -1);
            if (cells[mode].equals("user")) {
                long number = Long.parseUnsignedLong(cells[payload].replaceFirst("^-", ""));
                rows.add(new Row(Integer.parseInt(cells[ring]), cells[kind], cells[name],
                        cells[payload].startsWith("-") ? -number : number));
            }
        }
        return rows;
    }

    /** A directory that is removed when it is closed. */
    static final class Scratch implements AutoCloseable {
        final Path path = Files.createTempDirectory("undertick-java");

        Scratch() throws IOException {}

        @Override
        public void close() throws IOException {
            try (var files = Files.walk(path)) {
                for (Path file : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        }
    }

    /** A test cannot run here. */
    static final class Skipped extends RuntimeException {
        private static final long serialVersionUID = 1;

        Skipped(String why) {
            super(why);
        }
    }
}
