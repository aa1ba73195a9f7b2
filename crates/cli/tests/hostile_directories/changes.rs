//! Random changes of a trace directory: of its files, and of its manifest.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// Possible names in a trace directory.
const FILES: [&str; 18] = [
    "manifest.json",
    "manifest.json",
    "events.parquet",
    "kernel.parquet",
    "raw.utb",
    "rings.jsonl",
    "kernel.utk",
    "kernel-older.utk",
    "ended-0.utb",
    "ended-1.utb",
    "manifest.json.new",
    "events.parquet.new",
    "kernel.parquet.new",
    "spans",
    "sync",
    "control",
    "names",
    "truth.parquet",
];

/// Makes one random change in a directory.
pub(crate) struct Changer<'a> {
    pub(crate) random: ChaCha8Rng,
    pub(crate) canary: &'a Path,
    /// A directory with the name of a session.
    pub(crate) session: &'a Path,
}

impl Changer<'_> {
    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())].clone()
    }

    pub(crate) fn change(&mut self, trace: &Path) {
        if self.random.random_range(0..2) == 0 {
            self.change_manifest(trace);
        } else {
            self.change_file(trace);
        }
    }

    fn change_file(&mut self, trace: &Path) {
        let name = self.one_of(&FILES);
        let path = trace.join(name);
        let old = fs::metadata(&path).is_ok_and(|about| about.is_file());
        let bytes = if old { read_some(&path) } else { Vec::new() };
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(&path);
        let make = |mode: libc::mode_t| {
            let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
            // SAFETY: a path that ends with zero.
            unsafe { libc::mknod(path.as_ptr(), mode | 0o600, 0) };
        };
        match self.random.random_range(0..14) {
            0 => symlink(self.canary.join("thesis.txt"), &path).unwrap(),
            1 => symlink(self.canary, &path).unwrap(),
            2 => symlink("/dev/zero", &path).unwrap(),
            3 => symlink(name, &path).unwrap(),
            4 => symlink("/proc/self/fd/0", &path).unwrap(),
            5 => fs::hard_link(self.canary.join("thesis.txt"), &path).unwrap(),
            6 => make(libc::S_IFIFO),
            7 => make(libc::S_IFSOCK),
            8 => {
                fs::create_dir(&path).unwrap();
                let _ = symlink(self.canary, path.join("about.json"));
            }
            9 => {
                let file = File::create(&path).unwrap();
                let _ = file.set_len(1 << 40);
            }
            10 => drop(File::create(&path).unwrap()),
            11 => fs::write(&path, &bytes[..bytes.len() / 2]).unwrap(),
            12 => {
                let mut bytes = bytes;
                for _ in 0..self.random.random_range(1..20) {
                    if !bytes.is_empty() {
                        // A Parquet file has its description at its end.
                        let from = self.one_of(&[0, bytes.len().saturating_sub(2000)]);
                        let at = self.random.random_range(from..bytes.len());
                        bytes[at] = match self.random.random_range(0..3) {
                            0 => self.random.random(),
                            1 => self.one_of(&[0, 0x7f, 0x80, 0xfe, 0xff]),
                            _ => bytes[at] ^ 1 << self.random.random_range(0..8),
                        };
                    }
                }
                fs::write(&path, bytes).unwrap();
            }
            _ => {
                let mut bytes = vec![0; 5000];
                self.random.fill(&mut bytes[..]);
                fs::write(&path, bytes).unwrap();
            }
        }
    }

    fn change_manifest(&mut self, trace: &Path) {
        let path = trace.join("manifest.json");
        if !fs::symlink_metadata(&path).is_ok_and(|about| about.is_file()) {
            return;
        }
        let Ok(mut manifest) = serde_json::from_slice::<Value>(&read_some(&path)) else {
            return;
        };
        for _ in 0..self.random.random_range(1..4) {
            self.change_value(&mut manifest);
        }
        fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
    }

    /// Makes the manifest agree with the changed parts, as the sender of a trace can.
    pub(crate) fn agree(&self, trace: &Path) {
        let path = trace.join("manifest.json");
        let Ok(mut manifest) = serde_json::from_slice::<Value>(&read_some(&path)) else {
            return;
        };
        let parts = manifest.get_mut("parts").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten().filter_map(Value::as_object_mut) {
            let file = part.get("file").and_then(Value::as_str).unwrap_or("none");
            if file.contains('/') {
                continue;
            }
            let bytes = read_some(&trace.join(file));
            part.insert("bytes".into(), json!(bytes.len()));
            part.insert("crc32".into(), json!(crc32fast::hash(&bytes)));
        }
        let _ = fs::write(&path, serde_json::to_vec(&manifest).unwrap());
    }

    fn change_value(&mut self, manifest: &mut Value) {
        let session = self.session.to_str().unwrap();
        let Some(object) = manifest.as_object_mut() else {
            return;
        };
        match self.random.random_range(0..12) {
            0 => {
                let name = self.one_of(&[session, ".", "..", "/", "control", ""]);
                object.insert("session".into(), json!(name));
                object.insert("state".into(), json!("recording"));
            }
            1 => {
                let about = fs::metadata(self.session).unwrap();
                object.insert("session".into(), json!(session));
                object.insert("state".into(), json!("recording"));
                let identity = json!({"secret": "00000000000000000000000000000000",
                    "device": about.dev(), "inode": about.ino()});
                object.insert("session_identity".into(), identity);
            }
            2 => {
                let state = self.one_of(&["recording", "complete", "other"]);
                object.insert("state".into(), json!(state));
            }
            3 => {
                let file = self.one_of(&[
                    "../canary/thesis.txt",
                    "/dev/zero",
                    "..",
                    "",
                    "raw.utb",
                    "manifest.json",
                    "a\u{1b}[2Jb",
                    "control",
                ]);
                let part = object.get_mut("parts").and_then(|parts| parts.get_mut(0));
                if let Some(part) = part.and_then(Value::as_object_mut) {
                    part.insert("file".into(), json!(file));
                }
            }
            4 => {
                let part = object.get("parts").and_then(|parts| parts.get(0)).cloned();
                if let Some(part) = part {
                    object.insert("parts".into(), json!(vec![part; 5000]));
                }
            }
            5 => {
                let long = "x".repeat(self.random.random_range(1..3) << 20);
                object.insert(
                    "names".into(),
                    json!([{"pid": null, "event": 1, "name": long}]),
                );
            }
            6 => {
                let names: Vec<Value> = (0..100_000u32)
                    .map(|i| json!({"pid": i as i32, "event": i as u16, "name": format!("\u{1b}]0;{i}\u{7}")}))
                    .collect();
                object.insert("names".into(), json!(names));
            }
            7 => {
                let overflow = self.one_of(&["overwrite", "grow", "nothing"]);
                if let Some(recorder) = object.get_mut("recorder").and_then(Value::as_object_mut) {
                    recorder.insert("overflow".into(), json!(overflow));
                }
            }
            8 => {
                let value = self.one_of(&[
                    json!(0),
                    json!(-1),
                    json!(u64::MAX),
                    json!(1e300),
                    Value::Null,
                ]);
                let field = self.one_of(&[
                    "ticks_per_second_numerator",
                    "ticks_per_second_denominator",
                    "granularity_ticks",
                    "read_cost_ns_median",
                    "anchors",
                    "name",
                ]);
                if let Some(clock) = object.get_mut("clock").and_then(Value::as_object_mut) {
                    clock.insert(field.into(), value);
                }
            }
            9 => {
                let mut deep = json!(1);
                for _ in 0..100 {
                    deep = json!([deep]);
                }
                let keys: Vec<String> = object.keys().cloned().collect();
                let key = self.one_of(&keys);
                object.insert(key, deep);
            }
            10 => {
                let keys: Vec<String> = object.keys().cloned().collect();
                let key = self.one_of(&keys);
                object.remove(&key);
            }
            _ => {
                let keys: Vec<String> = object.keys().cloned().collect();
                let key = self.one_of(&keys);
                let value = self.one_of(&[
                    json!(-1),
                    json!(u64::MAX),
                    json!("\u{1b}[31mred\u{202e}"),
                    json!([]),
                    json!({}),
                    json!("/"),
                    Value::Null,
                ]);
                object.insert(key, value);
            }
        }
    }
}

/// Reads the beginning of a file, without waiting for a pipe.
fn read_some(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if fs::symlink_metadata(path).is_ok_and(|about| about.is_file()) {
        let _ = File::open(path)
            .unwrap()
            .take(1 << 22)
            .read_to_end(&mut bytes);
    }
    bytes
}
