import dev.undertick.Name;
import dev.undertick.Span;
import dev.undertick.Undertick;

class Main {
    private static final Name NAME = Undertick.name("in Java");

    public static void main(String[] words) {
        for (int n = 0; n < 40; n++) {
            try (Span span = NAME.span()) {
                Undertick.event("number", n);
            }
        }
    }
}
