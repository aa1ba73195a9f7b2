//! Two hosts made of namespaces, and what they record while one sends probes to the other.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::support::{compile, said};

/// Sends numbers and receives the answers, or answers. Each end is an event with the number.
const PING: &str = r#"
#include "undertick.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int answers = argc == 2;
    uint32_t n = 0, i = 0, last = answers ? 0 : (uint32_t)atoi(argv[2]);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7777)};
    struct timeval wait = {answers ? 20 : 0, answers ? 0 : 300000};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, argv[1], &at.sin_addr);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    ut_name(answers ? 2 : 1, answers ? "b receives" : "a sends");
    ut_name(answers ? 3 : 4, answers ? "b answers" : "a has the answer");
    if (answers) {
        if (bind(s, (struct sockaddr *)&at, sizeof at)) return 3;
        for (;;) {
            socklen_t size = sizeof at;
            if (recvfrom(s, &n, sizeof n, 0, (struct sockaddr *)&at, &size) != sizeof n) return 4;
            if (n == UINT32_MAX) return 0;
            ut_event(2, n);
            ut_event(3, n);
            if (sendto(s, &n, sizeof n, 0, (struct sockaddr *)&at, size) < 0) return 5;
        }
    }
    if (connect(s, (struct sockaddr *)&at, sizeof at)) return 6;
    for (i = 0; i < last; i++) {
        ut_event(1, i);
        if (send(s, &i, sizeof i, 0) < 0) { usleep(100000); continue; }
        if (recv(s, &n, sizeof n, 0) == sizeof n) ut_event(4, n);
        usleep(3000);
    }
    n = UINT32_MAX;
    return send(s, &n, sizeof n, 0) < 0;
}
"#;

/// Fills the link from b to a with unwanted packets: 4 Mbit/s in bursts.
const FLOOD: &str = r#"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char bytes[1000];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(9)};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc != 2) return 2;
    inet_pton(AF_INET, argv[1], &at.sin_addr);
    for (int i = 0; i < 20000; i++) {
        if (i % 8 == 0) usleep(16000);
        (void)!sendto(s, bytes, sizeof bytes, 0, (struct sockaddr *)&at, sizeof at);
    }
    return 0;
}
"#;

/// Clocks of the kernel on host b are ahead by this.
pub(crate) const AHEAD_S: i64 = 123_456;

pub(crate) fn run(command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("`{command}`: {}", said(&output).1.trim())),
        Err(why) => Err(format!("`{command}`: {why}")),
    }
}

/// Two hosts with a wire between them: namespaces of this host.
pub(crate) struct Hosts {
    pub(crate) id: u32,
}

impl Hosts {
    /// Makes them, or returns the reason why not.
    pub(crate) fn make() -> Result<Self, String> {
        let id = std::process::id() % 100_000;
        let hosts = Self { id };
        run(&format!("ip netns add uta{id}"))?;
        run(&format!("ip netns add utb{id}"))?;
        run(&format!(
            "ip link add uta{id} netns uta{id} type veth peer name utb{id} netns utb{id}"
        ))?;
        for (host, number) in [("a", 1), ("b", 2)] {
            let (name, on) = (format!("ut{host}{id}"), format!("ip -n ut{host}{id}"));
            run(&format!("{on} addr add 10.203.7.{number}/24 dev {name}"))?;
            run(&format!("{on} link set {name} up"))?;
            run(&format!("{on} link set lo up"))?;
        }
        run("unshare --time --monotonic 1 --boottime 1 --uts --fork true")?;
        Ok(hosts)
    }

    /// Returns a command on host a, or on b, whose kernel clocks are ahead.
    fn on(&self, host: &str, clock: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("ut{host}{}", self.id)]);
        command.args(["unshare", "--uts"]);
        if host == "b" {
            let ahead = AHEAD_S.to_string();
            command.args(["--time", "--monotonic", &ahead, "--boottime", &ahead]);
        }
        command.args(["--fork", "--kill-child", "sh", "-c"]);
        command.arg(format!("hostname {host} && exec \"$@\""));
        command.args(["sh"]);
        command.env("UNDERTICK_CLOCK", clock);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Waits until the program and the answering command have bound their ports on host b.
    fn wait_for_listeners(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &format!("utb{}", self.id)]);
            let output = command.args(["cat", "/proc/net/udp"]).output().unwrap();
            let sockets = String::from_utf8_lossy(&output.stdout);
            if [7777, 7367]
                .iter()
                .all(|port| sockets.contains(&format!(":{port:04X} ")))
            {
                return;
            }
            assert!(Instant::now() < end, "nobody listens: {sockets}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in ["a", "b"] {
            let _ = run(&format!("ip netns del ut{host}{}", self.id));
        }
    }
}

/// A process that is ended when the value is dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Both hosts record while one sends probes to the other; the link from b to a is slow and full.
/// Returns the traces.
pub(crate) fn record(hosts: &Hosts, dir: &Path, clocks: [&str; 2], with_sync: bool) -> [String; 2] {
    let program = compile(dir, "ping", PING, &["-Wno-unused-parameter"]);
    let flood = compile(dir, "flood", FLOOD, &[]);
    let [a, b] = ["a.ut", "b.ut"].map(|name| dir.join(name).display().to_string());
    let tool = env!("CARGO_BIN_EXE_undertick");
    let _flood = Ends(
        hosts
            .on("b", clocks[1])
            .arg(&flood)
            .arg("10.203.7.1")
            .spawn()
            .unwrap(),
    );
    let recording = ["record", "--no-calibration", "--kernel", "off", "-o"];
    let mut answering = hosts.on("b", clocks[1]);
    answering
        .arg(tool)
        .args(recording)
        .args([&b, "--"])
        .arg(&program)
        .arg("10.203.7.2");
    let answering = answering.spawn().unwrap();
    let mut listening = hosts.on("b", clocks[1]);
    listening.args([tool, "sync", "--listen", "10.203.7.2:7367", "--for", "60s"]);
    let _listening = Ends(listening.spawn().unwrap());
    hosts.wait_for_listeners();
    let mut asking = hosts.on("a", clocks[0]);
    asking
        .arg(tool)
        .args(recording)
        .args([&a, "--"])
        .arg(&program)
        .args(["10.203.7.2", "400"]);
    let asking = asking.spawn().unwrap();
    if with_sync {
        while !Path::new(&a).join("manifest.json").exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut sync = hosts.on("a", clocks[0]);
        sync.args([
            tool,
            "sync",
            "10.203.7.2",
            "--for",
            "2s",
            "--every",
            "5ms",
            "--into",
            &a,
        ]);
        let output = sync.output().unwrap();
        assert!(output.status.success(), "{}", said(&output).1);
    }
    for child in [asking, answering] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output).1);
    }
    [a, b]
}
