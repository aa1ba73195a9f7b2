//! Answers for running programs that ask for the tables of their files.
//!
//! A program asks when it calls the first function of a file whose table does not exist yet: a
//! library that it opened, or another program that it executed. One thread answers; it sleeps
//! between questions.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use regex::Regex;

use crate::FunctionsError;
use crate::layout::{ASKED_FILE, CONTROL_FILE, FIRST_FUNCTION, TABLE_PREFIX, ask, control};
use crate::symbols::{self, Module};
use crate::table::{self, Missed};

/// The outcome of a recording of functions.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The calls that are not in the trace.
    pub missed: Missed,
    /// What the user must know.
    pub warnings: Vec<String>,
}

/// Makes the tables of a session in its directory.
struct Tables {
    session: PathBuf,
    filter: Regex,
    warnings: Mutex<Vec<String>>,
}

/// A thread that answers until [`Answers::finish`], or until this is dropped.
pub struct Answers {
    tables: Arc<Tables>,
    thread: Option<JoinHandle<()>>,
    control: File,
}

impl Answers {
    /// Makes a session record the functions that the filter selects.
    ///
    /// # Errors
    /// Files in the session directory cannot be created.
    pub fn start(session: &Path, filter: Regex) -> Result<Self, FunctionsError> {
        let asked = session.join(ASKED_FILE);
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &asked,
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .map_err(|e| FunctionsError::io(&asked, "cannot make")(e.into()))?;
        // The recorder opens the FIFO for writing too, so that it always has a writer and never
        // ends.
        let fifo = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&asked)
            .map_err(FunctionsError::io(&asked, "cannot open"))?;
        let tables = Arc::new(Tables {
            session: session.to_owned(),
            filter,
            warnings: Mutex::default(),
        });
        let path = session.join(CONTROL_FILE);
        let control = first_control(&path).map_err(FunctionsError::io(&path, "cannot make"))?;
        let thread = {
            let tables = Arc::clone(&tables);
            std::thread::Builder::new()
                .name("functions".to_owned())
                .spawn(move || answer(&tables, fifo))
                .map_err(FunctionsError::io(&asked, "cannot start a thread for"))?
        };
        Ok(Self {
            tables,
            thread: Some(thread),
            control,
        })
    }

    /// Makes the table of a file before any program asks for it.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn prepare(&self, path: &Path, module: &Module) -> Result<(), FunctionsError> {
        let meta = fs::metadata(path).map_err(FunctionsError::io(path, "cannot look at"))?;
        self.tables
            .write((meta.dev(), meta.ino()), path, Some(module))
    }

    /// Stops answering, and returns what was found.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        self.stop();
        let mut page = [0; control::BYTES];
        let _ = self.control.read_exact_at(&mut page, 0);
        Outcome {
            missed: table::missed(&page),
            warnings: std::mem::take(&mut *self.tables.warnings.lock().expect("no thread left")),
        }
    }

    fn stop(&mut self) {
        let _ = self
            .control
            .write_all_at(&0u32.to_le_bytes(), control::OFF_ALIVE as u64);
        let Some(thread) = self.thread.take() else {
            return;
        };
        // A question without a file comes from this process.
        let end = OpenOptions::new()
            .write(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(self.tables.session.join(ASKED_FILE))
            .and_then(|mut fifo| fifo.write_all(&Ask::end()));
        if end.is_ok() {
            let _ = thread.join();
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.stop();
    }
}

fn first_control(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut page = [0; control::BYTES];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &control::MAGIC.to_le_bytes());
    put(control::OFF_ALIVE, &1u32.to_le_bytes());
    put(
        control::OFF_NEXT_EVENT,
        &u32::from(FIRST_FUNCTION).to_le_bytes(),
    );
    file.write_all_at(&page, 0)?;
    Ok(file)
}

/// A question of a program.
struct Ask {
    pid: i32,
    device: u64,
    inode: u64,
    path: PathBuf,
}

impl Ask {
    /// The last question, with a number that no process has.
    fn end() -> Vec<u8> {
        let mut bytes = vec![0; ask::HEADER_BYTES];
        bytes[..4].copy_from_slice(&ask::MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&(-1i32).to_le_bytes());
        bytes
    }

    /// The next question; `None` at the end, or if it cannot be parsed.
    fn read(fifo: &mut File) -> Option<Self> {
        use std::os::unix::ffi::OsStringExt;
        let mut head = [0; ask::HEADER_BYTES];
        fifo.read_exact(&mut head).ok()?;
        let u32_at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four"));
        let u64_at = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight"));
        let bytes = u32_at(4) as usize;
        if u32_at(0) != ask::MAGIC || bytes > ask::MOST_PATH_BYTES {
            return None;
        }
        let mut path = vec![0; bytes];
        fifo.read_exact(&mut path).ok()?;
        Some(Self {
            pid: u32_at(8).cast_signed(),
            device: u64_at(16),
            inode: u64_at(24),
            path: std::ffi::OsString::from_vec(path).into(),
        })
    }

    /// The file that is meant, as this process sees it: the program may have another root, or the
    /// path may be relative to the program's directory.
    fn find(&self) -> Option<PathBuf> {
        let of_process = |what: &str| {
            let rest = self.path.strip_prefix("/").unwrap_or(&self.path);
            PathBuf::from(format!("/proc/{}/{what}", self.pid)).join(rest)
        };
        [self.path.clone(), of_process("root"), of_process("cwd")]
            .into_iter()
            .find(|path| fs::metadata(path).is_ok_and(|meta| meta.ino() == self.inode))
    }
}

fn answer(tables: &Tables, mut fifo: File) {
    while let Some(question) = Ask::read(&mut fifo).filter(|question| question.pid >= 0) {
        let key = (question.device, question.inode);
        if tables.path(key).exists() {
            continue; // asked twice
        }
        let module = match question.find() {
            Some(path) => symbols::read(&path).map_err(|error| error.to_string()),
            None => Err(format!(
                "{}: not found by the recorder, so its functions are not recorded",
                question.path.display()
            )),
        };
        let module = module.unwrap_or_else(|error| {
            tables.warn(error);
            None
        });
        if let Err(error) = tables.write(key, &question.path, module.as_ref()) {
            tables.warn(error.to_string());
        }
    }
}

impl Tables {
    fn path(&self, (device, inode): (u64, u64)) -> PathBuf {
        self.session
            .join(format!("{TABLE_PREFIX}{device:016x}-{inode:016x}"))
    }

    fn warn(&self, text: String) {
        if let Ok(mut warnings) = self.warnings.lock() {
            warnings.push(text);
        }
    }

    /// Writes the table completely or not at all: to a temporary file, which is then renamed.
    fn write(
        &self,
        key: (u64, u64),
        about: &Path,
        module: Option<&Module>,
    ) -> Result<(), FunctionsError> {
        let path = self.path(key);
        let beside = self.session.join("functions-new");
        let name = about.file_name().unwrap_or_default().to_string_lossy();
        if module.is_some_and(|m| m.calls_our_hooks() && !m.has_all_symbols) {
            self.warn(stripped(about));
        }
        let bytes = table::bytes(&name, module, &self.filter);
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)
            .and_then(|mut file| file.write_all(&bytes))
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(FunctionsError::io(&path, "cannot write"))
    }
}

fn stripped(file: &Path) -> String {
    format!(
        "{}: stripped, so only functions that it exports have names and are recorded; give one that is not stripped",
        file.display()
    )
}
