package dev.undertick;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;

/** The library in C. Without it nothing is ever on, and none of its calls is made. */
final class Native {
    /** Why nothing can be recorded; null if it can. */
    static final String ERROR = load();

    private static final ByteBuffer ON =
            ERROR == null ? on() : ByteBuffer.allocateDirect(Integer.BYTES);
    private static final VarHandle WORD =
            MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final MethodHandle IS_VIRTUAL = findIsVirtual();
    private static final int OTHER_NAMES = 32767;

    private Native() {}

    static native void begin(int event);

    static native void end(int event);

    static native void event(int event, int payload);

    static native void wideEvent(int event, long payload);

    /** Records the event for a new task, and returns the task's number. */
    static native int newTask(int event);

    static native void taskEvent(int event, int task);

    /** Records that a task is polled, and begins the span of the poll. */
    static native void beginPoll(int polled, int task, int event);

    private static native int numberOf(byte[] name);

    private static native void threadName(byte[] name);

    private static native ByteBuffer on();

    /** Whether anything is recorded now. An opaque read, which no compiler moves out of a loop. */
    static boolean isOn() {
        return (int) WORD.getOpaque(ON, 0) != 0;
    }

    /** The event number of a name. */
    static int numberOf(String name) {
        return ERROR == null ? numberOf(name.getBytes(StandardCharsets.UTF_8)) : OTHER_NAMES;
    }

    static void nameThread(String name) {
        if (ERROR == null) {
            threadName(shortened(name, 255).getBytes(StandardCharsets.UTF_8));
        }
    }

    /** The longest beginning of a text that fits into {@code most} bytes of UTF-8, with spaces for zeros. */
    static String shortened(String text, int most) {
        int bytes = 0;
        int at = 0;
        while (at < text.length()) {
            int point = text.codePointAt(at);
            bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
            if (bytes > most) {
                break;
            }
            at += Character.charCount(point);
        }
        return text.substring(0, at).replace('\0', ' ');
    }

    /** Whether this thread is a virtual one, which may change its carrier, and with it the ring. */
    static boolean isVirtual() {
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable never) {
            throw new AssertionError(never);
        }
    }

    private static MethodHandle findIsVirtual() {
        MethodType type = MethodType.methodType(boolean.class);
        try {
            return MethodHandles.lookup().findVirtual(Thread.class, "isVirtual", type);
        } catch (ReflectiveOperationException beforeJava21) {
            MethodHandle no = MethodHandles.constant(boolean.class, false);
            return MethodHandles.dropArguments(no, 0, Thread.class);
        }
    }

    /** Loads the library that the property {@code undertick.library} names, or that of the jar. */
    private static String load() {
        String named = System.getProperty("undertick.library");
        try {
            if (named != null) {
                System.load(Path.of(named).toAbsolutePath().toString());
                on(); // another library loads, but has no such function
                return null;
            }
            String processor = Map.of("amd64", "x86_64", "aarch64", "aarch64")
                    .get(System.getProperty("os.arch"));
            if (!System.getProperty("os.name").equals("Linux") || processor == null) {
                return "no recorder for " + System.getProperty("os.name") + " on "
                        + System.getProperty("os.arch");
            }
            return loadFromJar("linux-" + processor + "/libundertick_java.so");
        } catch (IOException | UnsatisfiedLinkError | SecurityException | InvalidPathException error) {
            return "the library cannot be loaded (-Dundertick.library=PATH names another one): "
                    + error.getMessage();
        }
    }

    /** A library must be a file, so it is copied, loaded, and removed again. */
    private static String loadFromJar(String name) throws IOException {
        try (InputStream library = Native.class.getResourceAsStream(name)) {
            if (library == null) {
                return "this jar has no " + name + ": build it on such a machine, or name the"
                        + " library by -Dundertick.library=PATH";
            }
            Path copy = Files.createTempFile("undertick", ".so");
            try {
                // Into the file that nobody else may write to.
                try (OutputStream out = Files.newOutputStream(copy)) {
                    library.transferTo(out);
                }
                System.load(copy.toString());
            } finally {
                Files.deleteIfExists(copy);
            }
            return null;
        }
    }
}
