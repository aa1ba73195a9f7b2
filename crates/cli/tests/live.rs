//! `undertick live` in tmux: a screen of a known size that the test can read.

use crate::support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use support::{compile, document, refused, undertick};

/// Two threads with requests of two stages. They run for the given time, or until there is a file
/// named `end`, and write the number of requests into the given file; SIGINT ends them at once.
const SERVER: &str = r#"
#include "undertick.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
enum { REQUEST = 1, PARSE = 2, STORE = 3 };
static volatile sig_atomic_t stop;
static double seconds;
static void told(int signal) { (void)signal; stop = 1; }
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void *work(void *count) {
    double until = now() + seconds;
    while (!stop && now() < until && access("end", F_OK) != 0) {
        ut_begin(REQUEST);
        ut_begin(PARSE);
        for (volatile int i = 0; i < 1000; i++) { }
        ut_next(PARSE, STORE);
        for (volatile int i = 0; i < 300; i++) { }
        ut_end(STORE);
        ut_end(REQUEST);
        ++*(long *)count;
        usleep(200);
    }
    return NULL;
}
int main(int arguments, char **values) {
    if (arguments < 3) return 2;
    seconds = atof(values[1]);
    signal(SIGINT, told);
    ut_name(REQUEST, "request");
    ut_name(PARSE, "parse header");
    ut_name(STORE, "store");
    printf("listening\n");
    fflush(stdout);
    static long counts[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &counts[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    FILE *file = fopen(values[2], "w");
    if (!file || fprintf(file, "%ld", counts[0] + counts[1]) < 0 || fclose(file)) return 3;
    return stop ? 7 : 0;
}
"#;

/// A private tmux.
struct Tmux {
    name: String,
    _dir: tempfile::TempDir,
    dir: PathBuf,
}

impl Tmux {
    /// Returns none, with a message, where there is no tmux.
    fn start(test: &str, width: u16, height: u16) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            println!("skipped: no tmux here");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let tmux = Self {
            name: format!("undertick-{test}-{}", std::process::id()),
            dir: dir.path().to_owned(),
            _dir: dir,
        };
        let (width, height) = (width.to_string(), height.to_string());
        tmux.tell(&[
            "-u",
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            "sh",
        ]);
        tmux.tell(&["set", "-g", "remain-on-exit", "on"]);
        // Keys must come after the shell's first output.
        tmux.keys(&["PS1=ready; clear", "Enter"]);
        tmux.wait(|lines| lines.first().is_some_and(|line| line.starts_with("ready")));
        Some(tmux)
    }

    fn tell(&self, words: &[&str]) -> String {
        let output = (Command::new("tmux").args(["-L", &self.name]).args(words))
            .env("SHELL", "/bin/sh")
            .current_dir(&self.dir)
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn keys(&self, keys: &[&str]) {
        self.tell(&[&["send-keys"], keys].concat());
    }

    /// Types a line for the shell.
    fn line(&self, text: &str) {
        self.tell(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    fn screen(&self) -> Vec<String> {
        let text = self.tell(&["capture-pane", "-p"]);
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    #[track_caller]
    fn wait(&self, is_there: impl Fn(&[String]) -> bool) -> Vec<String> {
        let since = Instant::now();
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "{}",
                screen.join("\n")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn wait_for(&self, text: &str) -> Vec<String> {
        self.wait(|lines| lines.iter().any(|line| line.contains(text)))
    }

    fn asks(&self, what: &str) -> String {
        self.tell(&["display-message", "-p", what])
            .trim()
            .to_owned()
    }

    /// Asserts that the shell has the screen again, with its modes unchanged.
    fn is_given_back(&self) {
        assert_eq!(
            self.asks("#{alternate_on} #{cursor_flag} #{mouse_any_flag}"),
            "0 1 0"
        );
        // The first line has the current size, so it is left out.
        let modes = |file: &str| {
            let text = std::fs::read_to_string(self.dir.join(file)).unwrap();
            text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        self.line("stty -a > after; echo modes are known");
        self.wait(|lines| lines.iter().any(|line| line == "modes are known"));
        assert_eq!(modes("before"), modes("after"));
    }

    fn server(&self) -> String {
        let path = compile(&self.dir, "server", SERVER, &[]);
        path.to_str().unwrap().to_owned()
    }

    /// Returns the number of requests, from the program itself.
    fn requests(&self) -> u64 {
        let text = std::fs::read_to_string(self.dir.join("count")).unwrap();
        text.parse().unwrap()
    }

    /// Runs a command, and prints its exit status after it.
    fn run(&self, command: &str) {
        self.line("stty -a > before; clear");
        self.wait(|lines| !lines.iter().any(|line| line.contains("it gave")));
        self.line(&format!("clear; {command}; echo \"it gave $?\""));
    }

    /// Lets the server end.
    fn end(&self) {
        std::fs::write(self.dir.join("end"), "").unwrap();
    }

    fn trace(&self) -> PathBuf {
        self.dir.join("t.ut")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = (Command::new("tmux").args(["-L", &self.name, "kill-server"])).output();
    }
}

fn live() -> String {
    let program = env!("CARGO_BIN_EXE_undertick");
    format!("{program} live --no-calibration --kernel off -o t.ut")
}

/// Returns events and losses of a trace, and the recorded requests.
fn recorded(trace: &Path) -> [u64; 3] {
    let output = undertick(&["report", trace.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = document("report", &output);
    let intervals = report["intervals"].as_array().unwrap();
    let request = intervals.iter().find(|i| i["name"] == "request").unwrap();
    [
        report["trace"]["events"].as_u64().unwrap(),
        report["trace"]["lost"].as_u64().unwrap(),
        request["count"].as_u64().unwrap() + request["culled"]["count"].as_u64().unwrap(),
    ]
}

/// Asserts that the whole screen is drawn, with each line in its place.
#[track_caller]
fn is_whole(screen: &[String], command: &str, height: usize) {
    let text = screen.join("\n");
    assert_eq!(screen.len(), height, "{text}");
    assert!(
        screen[0].starts_with(command) && screen[0].contains("0:00:"),
        "{text}"
    );
    assert!(screen[1].contains(" events  none lost  "), "{text}");
    assert!(
        screen[2].starts_with("now ") && screen[3].starts_with("most "),
        "{text}"
    );
    assert!(
        screen[4].starts_with("last ") && screen[4].contains(" of a CPU, view "),
        "{text}"
    );
    assert!(screen[5].starts_with("span [95 %]"), "{text}");
    // A store that others stopped may have taken longer in all than the headers.
    let order = match screen[8].starts_with("store") {
        true => ["request", "store", "parse header"],
        false => ["request", "parse header", "store"],
    };
    for (name, at) in order.iter().zip([6, 8, 10]) {
        assert!(screen[at].starts_with(name), "{text}");
        assert!(screen[at + 1].trim_start().starts_with('['), "{text}");
    }
    assert!(screen[height - 2] == "listening", "{text}");
    assert!(
        screen[height - 1].starts_with(" q leave the view"),
        "{text}"
    );
}

/// On a small screen and on a large one: after `q` the recording goes on, and the trace has all
/// that the program did.
#[test]
fn a_program_that_is_started() {
    let Some(tmux) = Tmux::start("started", 80, 24) else {
        return;
    };
    // The program's name is longer than a line.
    let server = tmux.server();
    let short = "./server 600 count";
    assert!(server.ends_with("/server"));
    tmux.run(&format!("{} -- {short}", live()));
    let screen = tmux.wait_for("request");
    is_whole(&screen, short, 24);
    tmux.keys(&["s"]);
    tmux.wait_for("order: per s");
    tmux.keys(&["?"]);
    tmux.wait_for("┌ keys ");
    tmux.keys(&["?", "s", "s", "s", "s"]);
    tmux.wait_for("order: total time");
    tmux.tell(&["resize-window", "-x", "200", "-y", "50"]);
    let screen = tmux.wait(|lines| lines.len() == 50 && lines[49].starts_with(" q leave"));
    let screen = match screen[6].starts_with("request") {
        true => screen,
        false => tmux.wait(|lines| lines[6].starts_with("request")),
    };
    is_whole(&screen, short, 50);
    assert!(
        screen[5].contains("99.9 %") && screen[5].ends_with("dropped"),
        "{}",
        screen[5]
    );
    tmux.keys(&["q"]);
    // The program is still running, and ends by itself.
    tmux.wait(|_| tmux.asks("#{alternate_on}") == "0");
    assert!(!tmux.dir.join("count").exists(), "it ended with the view");
    tmux.end();
    tmux.wait_for("it gave 0");
    tmux.is_given_back();
    let screen = tmux.screen().join("\n");
    assert!(
        screen.contains("0 lost") && screen.contains("t.ut.log"),
        "{screen}"
    );
    let requests = tmux.requests();
    assert!(requests > 1000, "{requests}");
    assert_eq!(recorded(&tmux.trace()), [5 * requests, 0, requests]);
    let log = std::fs::read_to_string(tmux.dir.join("t.ut.log")).unwrap();
    assert_eq!(log, "listening\n");
}

/// A key that arrives together with a change of the screen's size counts.
#[test]
fn a_key_while_the_size_changes() {
    let Some(tmux) = Tmux::start("size", 80, 24) else {
        return;
    };
    tmux.server();
    tmux.run(&format!("{} -- ./server 600 count", live()));
    tmux.wait_for("request");
    for round in 0..10 {
        let width = (81 + round).to_string();
        tmux.tell(&[
            "resize-window",
            "-x",
            &width,
            "-y",
            "24",
            ";",
            "send-keys",
            "?",
        ]);
        let is_help = round % 2 == 0;
        tmux.wait(|lines| lines.iter().any(|line| line.contains("┌ keys ")) == is_help);
    }
    tmux.end();
    tmux.wait_for("it gave 0");
    let requests = tmux.requests();
    assert_eq!(recorded(&tmux.trace()), [5 * requests, 0, requests]);
}

/// Without keys, the view ends with the program.
#[test]
fn it_ends_with_the_program() {
    let Some(tmux) = Tmux::start("ends", 80, 24) else {
        return;
    };
    tmux.server();
    tmux.run(&format!("{} --log printed -- ./server 2 count", live()));
    tmux.wait_for("it gave 0");
    tmux.is_given_back();
    let requests = tmux.requests();
    assert_eq!(recorded(&tmux.trace()), [5 * requests, 0, requests]);
    assert_eq!(
        std::fs::read_to_string(tmux.dir.join("printed")).unwrap(),
        "listening\n"
    );
    assert!(!tmux.dir.join("t.ut.log").exists());
}

/// Ctrl-C acts as without the view: the program receives it once.
#[test]
fn ctrl_c_interrupts_the_program() {
    let Some(tmux) = Tmux::start("ctrl-c", 80, 24) else {
        return;
    };
    tmux.server();
    tmux.run(&format!("{} -- ./server 600 count", live()));
    tmux.wait_for("request");
    // Ctrl-Z would stop the recorder, but not the program.
    tmux.keys(&["C-z"]);
    tmux.keys(&["C-c"]);
    // The status is the program's, not that of a death by the signal.
    tmux.wait_for("it gave 7");
    tmux.is_given_back();
    let requests = tmux.requests();
    assert_eq!(recorded(&tmux.trace()), [5 * requests, 0, requests]);
}

/// When the terminal is closed, as when a connection breaks, the recorder ends the program as a
/// shell would have, and the trace is complete.
#[test]
fn a_terminal_that_is_closed() {
    let Some(tmux) = Tmux::start("closed", 80, 24) else {
        return;
    };
    tmux.server();
    tmux.run(&format!("{} -- ./server 600 count", live()));
    tmux.wait_for("request");
    tmux.tell(&["kill-server"]);
    let since = Instant::now();
    let manifest = tmux.trace().join("manifest.json");
    while !std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("\"complete\"")) {
        assert!(since.elapsed() < Duration::from_secs(60), "no whole trace");
        std::thread::sleep(Duration::from_millis(50));
    }
    let [_, lost, requests] = recorded(&tmux.trace());
    assert!(lost == 0 && requests > 0, "{lost} lost of {requests}");
}

/// A program that was attached to runs on when the user leaves the view.
#[test]
fn a_program_that_runs() {
    let Some(tmux) = Tmux::start("runs", 100, 30) else {
        return;
    };
    let mut server = Command::new(tmux.server())
        .args(["600", "count"])
        .current_dir(&tmux.dir)
        .spawn()
        .unwrap();
    tmux.run(&format!("{} --pid {}", live(), server.id()));
    let screen = tmux.wait_for("request");
    let text = screen.join("\n");
    assert!(screen[0].contains("server 600 count"), "{text}");
    assert!(screen[29].starts_with(" q stop recording"), "{text}");
    assert!(!text.contains("printed by the program"), "{text}");
    tmux.keys(&["q"]);
    tmux.wait_for("it gave 0");
    tmux.is_given_back();
    let status = server.try_wait().unwrap();
    assert!(
        status.is_none(),
        "the program ended with the view: {status:?}"
    );
    tmux.end();
    let status = server.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(0), None));
    let [events, lost, requests] = recorded(&tmux.trace());
    assert_eq!(lost, 0);
    assert!(requests > 100 && requests < tmux.requests(), "{requests}");
    assert!(
        events.abs_diff(5 * requests) <= 10,
        "{events} events, {requests} requests"
    );
}

#[test]
fn it_says_what_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.ut");
    let trace = trace.to_str().unwrap();
    refused(
        &undertick(&["live", "-o", trace, "--", "true"]),
        2,
        &["live needs a terminal", "undertick record"],
    );
    assert!(!Path::new(trace).exists());
    let Some(tmux) = Tmux::start("needs", 100, 30) else {
        return;
    };
    for (command, says) in [
        ("--overflow overwrite -- true", "use grow, drop or block"),
        ("-- ./no-such-program", "no such program"),
        ("-z -- /bin/true", "no such option"),
        ("--log before -- true", "before: cannot be made"),
    ] {
        tmux.run(&format!("{} {command}", live()));
        let screen = tmux.wait_for("it gave 2").join(" ");
        assert!(screen.contains(says), "{command}: {screen}");
        tmux.is_given_back();
        assert!(
            !tmux.trace().exists() && !tmux.dir.join("t.ut.log").exists(),
            "{command}"
        );
    }
}
