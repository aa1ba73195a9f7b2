#!/bin/sh
# Builds undertick.jar, which contains the library in C for this machine's processor. It needs a JDK of Java 17 or later
# (JAVA_HOME, or the javac in PATH) and a C compiler (CC, or cc).
#     ./build.sh [DIRECTORY]      build/ without it
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=${1:-$here/build}
compiler=${CC:-cc}

fail() {
    echo "undertick: the jar was not built: $1" >&2
    exit 1
}

if [ -n "${JAVA_HOME:-}" ]; then
    jdk=$JAVA_HOME
else
    javac=$(command -v javac) || fail "no javac: install a JDK of Java 17 or later, or set JAVA_HOME"
    jdk=$(dirname -- "$(dirname -- "$(readlink -f -- "$javac")")")
fi
[ -f "$jdk/include/jni.h" ] || fail "no include/jni.h in $jdk: set JAVA_HOME to a JDK"
command -v "$compiler" >/dev/null || fail "no C compiler $compiler: install one, or name it in CC"
processor=$(uname -m)
case $(uname -s)-$processor in
Linux-x86_64 | Linux-aarch64) ;;
*) fail "no recorder for $(uname -s) on $processor" ;;
esac

classes=$out/classes
rm -rf "$classes"
mkdir -p "$classes/META-INF" "$classes/dev/undertick/linux-$processor"
"$jdk/bin/javac" --release 17 -d "$classes" "$here"/src/dev/undertick/*.java
library=$out/libundertick_java.so
# It stays loaded, since compiled Java code reads its memory.
"$compiler" -std=gnu11 -O2 -fPIC -shared -Wl,-z,nodelete -Wall -Wextra \
    -I"$here/../include" -I"$jdk/include" -I"$jdk/include/linux" "$here/native/undertick_java.c" -o "$library"
cp "$library" "$classes/dev/undertick/linux-$processor/"
cp "$here/../LICENSE-MIT" "$here/../LICENSE-APACHE" "$classes/META-INF/"
printf 'Automatic-Module-Name: dev.undertick\n' >"$out/manifest"
"$jdk/bin/jar" --create --file "$out/undertick.jar" --manifest "$out/manifest" -C "$classes" .
echo "$out/undertick.jar"
