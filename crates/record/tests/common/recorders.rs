//! Recorders in separate processes, which can be killed. A test file that uses them has a test
//! `recorder` that calls [`act_as_recorder`].

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use undertick_clock::{Source, facts};
use undertick_format::manifest::Manifest;
use undertick_format::{TraceError, block};
use undertick_record::Overflow;
use undertick_record::attach::{Attach, attach};
use undertick_record::record::record;
use undertick_record::resume::{clock_of, resume};

use super::{request, settings};

/// Variable that makes a test file a recorder.
pub const ROLE: &str = "UNDERTICK_TEST_RECORDER";

/// Records if this process is to be a recorder; in that case it does not return.
pub fn act_as_recorder() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let words: Vec<&str> = role.split('\n').collect();
    let trace = Path::new(words[0]);
    let overflow = Overflow::from_code(words[2].parse().unwrap()).unwrap();
    let ring = words[3].parse().unwrap();
    let budget = Some(words[4].parse().unwrap());
    let settings = || settings(overflow, ring, budget);
    let done = match words[1] {
        "resume" => resume_here(trace).map(drop),
        "attach" => {
            let (pid, length) = (words[5].parse().unwrap(), None);
            attach(
                request(trace, &[], settings()),
                Attach { pid, length },
                &mut |_| {},
            )
            .map(drop)
        }
        _ => record(request(trace, &words[5..], settings()), &mut |_| {}).map(drop),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        std::process::exit(error.exit_status());
    }
    std::process::exit(0);
}

/// Resumes a recording in this process.
pub fn resume_here(trace: &Path) -> Result<Manifest, TraceError> {
    let source = Source::open(clock_of(trace).unwrap()).unwrap();
    let facts = facts::gather(source, Duration::ZERO).unwrap();
    resume(trace, &facts, &mut |_| {})
}

/// Settings of the recorders of a trace.
pub struct Recorders {
    pub trace: PathBuf,
    /// Directory of their sessions, which no other recorder uses.
    shared: tempfile::TempDir,
    settings: [String; 3],
}

impl Recorders {
    pub fn new(trace: PathBuf, overflow: Overflow, ring: u64, budget: u64) -> Self {
        let settings = [
            (overflow as u32).to_string(),
            ring.to_string(),
            budget.to_string(),
        ];
        let shared = tempfile::tempdir_in("/dev/shm").unwrap();
        Self {
            trace,
            shared,
            settings,
        }
    }

    pub fn start(&self, what: &str, words: &[String]) -> Recorder {
        self.start_with(":", what, words)
    }

    /// As `start`, after a command of the shell, such as one that sets limits.
    pub fn start_with(&self, before: &str, what: &str, words: &[String]) -> Recorder {
        Recorder(self.command(before, what, words).spawn().unwrap())
    }

    /// As `start_with`, for a recorder that is refused; returns its message.
    pub fn fails(&self, before: &str, what: &str, words: &[String]) -> String {
        let done = self.command(before, what, words).output().unwrap();
        assert!(!done.status.success());
        String::from_utf8(done.stderr).unwrap()
    }

    fn command(&self, before: &str, what: &str, words: &[String]) -> Command {
        let mut role = vec![self.trace.to_str().unwrap(), what];
        role.extend(self.settings.iter().map(String::as_str));
        role.extend(words.iter().map(String::as_str));
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{before}; exec \"$@\""), "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["recorder", "--exact", "--quiet", "--nocapture"])
            .env(ROLE, role.join("\n"))
            .env("UNDERTICK_DIR", self.shared.path())
            .stdout(Stdio::null());
        command
    }

    /// Returns the number of session directories that they have left.
    pub fn sessions(&self) -> usize {
        std::fs::read_dir(self.shared.path()).unwrap().count()
    }

    pub fn resume(&self) -> Recorder {
        self.start("resume", &[])
    }
}

/// A recorder or a program; it is ended when the test is over.
pub struct Recorder(pub Child);

impl Recorder {
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn interrupt(&self) {
        // SAFETY: to our own child.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGINT) };
    }

    #[track_caller]
    pub fn ends(mut self) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "the recorder does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn wait_until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it does not come to that");
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Returns the bytes of the whole raw blocks that a recorder has written. A recorder that was
/// killed while it wrote may leave a part of a block, which no reader uses.
pub fn raw_bytes(trace: &Path) -> u64 {
    let raw = std::fs::read(trace.join("raw.utb")).unwrap_or_default();
    let mut whole = 0;
    while let Some((length, _)) = block::extent(&raw[whole..])
        && whole + length <= raw.len()
    {
        whole += length;
    }
    whole as u64
}
