package dev.undertick;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** What the calls cost: medians over blocks that take turns, with 95 % intervals. */
final class Bench {
    private static final int WARM_UP = 20;
    private static final int ROUNDS = 41;
    private static final int CALLS = 20000;
    private static final double TARGET_FLOORS = 3;

    private static final Name PARSE = Undertick.name("parse");

    private interface Block {
        void run();
    }

    private Bench() {}

    private static native void empty(int number);

    private static native void floors(int n);

    public static void main(String[] words) {
        System.load(Path.of(words[0]).toAbsolutePath().toString());
        String kind = Undertick.enabled() ? "recorded" : "without a recorder";
        System.out.println(kind + ": ns, Java " + Runtime.version());
        Map<String, Block> blocks = blocks();
        double[][] times = new double[blocks.size()][ROUNDS];
        for (int round = -WARM_UP; round < ROUNDS; round++) {
            int at = 0;
            for (Block block : blocks.values()) {
                long begin = System.nanoTime();
                block.run();
                double took = (System.nanoTime() - begin) / (double) CALLS;
                if (round >= 0) {
                    times[at][round] = took;
                }
                at++;
            }
        }
        int at = 0;
        for (String name : blocks.keySet()) {
            print(name, times[at++], "");
        }
        if (Undertick.enabled()) {
            double[] ratios = new double[ROUNDS];
            Arrays.setAll(ratios, round -> times[2][round] / times[0][round]);
            print("span in floors", ratios, "  target " + TARGET_FLOORS);
        }
    }

    private static Map<String, Block> blocks() {
        Map<String, Block> blocks = new LinkedHashMap<>();
        blocks.put("floor: two waiting readings, two stores (C)", () -> floors(CALLS));
        blocks.put("empty call by JNI", () -> {
            for (int i = 0; i < CALLS; i++) {
                empty(i);
            }
        });
        blocks.put("span: NAME.span(), close()", () -> {
            for (int i = 0; i < CALLS; i++) {
                try (Span span = PARSE.span()) {
                }
            }
        });
        blocks.put("span by text: Undertick.span(text)", () -> {
            for (int i = 0; i < CALLS; i++) {
                try (Span span = Undertick.span("parse")) {
                }
            }
        });
        blocks.put("event: NAME.event(7)", () -> {
            for (int i = 0; i < CALLS; i++) {
                PARSE.event(7);
            }
        });
        blocks.put("task: NAME.task(), close()", () -> {
            for (int i = 0; i < CALLS; i++) {
                PARSE.task().close();
            }
        });
        return blocks;
    }

    /** Prints the median of numbers and its 95 % interval, by order statistics. */
    private static void print(String name, double[] numbers, String target) {
        double[] sorted = numbers.clone();
        Arrays.sort(sorted);
        int half = (int) Math.ceil(0.98 * Math.sqrt(sorted.length));
        int middle = (sorted.length - 1) / 2;
        System.out.printf("%-46s%8.2f  [%.2f, %.2f]%s%n", name, sorted[middle], sorted[middle - half],
                sorted[middle + half], target);
    }
}
