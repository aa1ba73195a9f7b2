//! Reads the objects of a JSON array one after the other, from a file of any size. An array that
//! lacks its closing bracket, because its writer died, is read as far as it goes.

use std::io::{self, BufRead};

/// Longest object, bytes.
const LONGEST: usize = 1 << 24;

/// Position of the reader relative to the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    /// Before a key of the outer object.
    Key,
    Array,
    Over,
}

/// Reads the objects of the array: the file itself, or the value of `key` in the object that the
/// file consists of.
pub(super) struct Objects<R> {
    reader: R,
    key: &'static str,
    state: State,
    is_in_object: bool,
    at: u64,
    /// The file ended before its brackets were closed.
    pub(super) is_cut: bool,
    object: Vec<u8>,
}

/// The reason why there is no next object.
#[derive(Debug)]
pub(super) enum Bad {
    Io(io::Error),
    /// A syntax error at that byte of the file.
    Syntax(u64, &'static str),
}

impl From<io::Error> for Bad {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: BufRead> Objects<R> {
    pub(super) fn new(reader: R, key: &'static str) -> Self {
        Self {
            reader,
            key,
            state: State::Start,
            is_in_object: false,
            at: 0,
            is_cut: false,
            object: Vec::new(),
        }
    }

    /// The offset of the reader, bytes.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Goes on with the document that follows the last one; false at the end of the file.
    pub(super) fn next_document(&mut self) -> io::Result<bool> {
        if std::mem::take(&mut self.is_in_object) {
            self.skip(1); // the bracket that closed the last one
        }
        self.state = State::Start;
        Ok(self.after_space()?.is_some())
    }

    /// Returns the text of the next object; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Bad> {
        loop {
            match self.state {
                State::Over => return Ok(None),
                State::Start => self.open()?,
                State::Key => self.key()?,
                State::Array => match self.after_space()? {
                    None => self.cut(),
                    Some(b',') => self.skip(1),
                    Some(b']') => {
                        self.skip(1);
                        self.state = match self.is_in_object {
                            true => State::Key,
                            false => State::Over,
                        };
                    }
                    Some(b'{') => {
                        self.object.clear();
                        if self.value(true)? {
                            return Ok(Some(&self.object));
                        }
                        self.cut();
                    }
                    Some(_) => {
                        return Err(Bad::Syntax(
                            self.at,
                            "an object of the array should begin here",
                        ));
                    }
                },
            }
        }
    }

    fn cut(&mut self) {
        self.is_cut = true;
        self.state = State::Over;
    }

    fn open(&mut self) -> Result<(), Bad> {
        match self.after_space()? {
            Some(b'[') => self.state = State::Array,
            Some(b'{') => {
                self.is_in_object = true;
                self.state = State::Key;
            }
            _ => {
                return Err(Bad::Syntax(
                    self.at,
                    "neither an array nor an object begins here",
                ));
            }
        }
        self.skip(1);
        Ok(())
    }

    /// Reads a key of the outer object, and skips its value unless it is the array.
    fn key(&mut self) -> Result<(), Bad> {
        match self.after_space()? {
            None => self.cut(),
            Some(b',') => self.skip(1),
            Some(b'}') => self.state = State::Over,
            Some(b'"') => {
                self.object.clear();
                if !self.value(true)? {
                    self.cut();
                    return Ok(());
                }
                let is_it = self.object.get(1..self.object.len() - 1) == Some(self.key.as_bytes());
                if self.after_space()? != Some(b':') {
                    return Err(Bad::Syntax(self.at, "a colon should follow the key"));
                }
                self.skip(1);
                if is_it && self.after_space()? == Some(b'[') {
                    self.skip(1);
                    self.state = State::Array;
                } else {
                    self.after_space()?;
                    if !self.value(false)? {
                        self.cut();
                    }
                }
            }
            Some(_) => return Err(Bad::Syntax(self.at, "a key should begin here")),
        }
        Ok(())
    }

    /// The next byte that is not white space; it is not consumed.
    fn after_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            match buffer.iter().position(|b| !b.is_ascii_whitespace()) {
                Some(skipped) => {
                    let found = buffer[skipped];
                    self.skip(skipped);
                    return Ok(Some(found));
                }
                None => {
                    let all = buffer.len();
                    self.skip(all);
                }
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.at += bytes as u64;
    }

    /// Reads a value and stores it if `keep` says so; false if the file ends in it.
    fn value(&mut self, keep: bool) -> Result<bool, Bad> {
        let mut scan = Scan::default();
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let end = scan.end(buffer);
            let taken = end.unwrap_or(buffer.len());
            if keep {
                if self.object.len() + taken > LONGEST {
                    return Err(Bad::Syntax(self.at, "longer than 16 MiB"));
                }
                self.object.extend_from_slice(&buffer[..taken]);
            }
            self.skip(taken);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// Finds the end of a value without parsing its content.
#[derive(Default)]
struct Scan {
    depth: u64,
    in_text: bool,
    escaped: bool,
    is_begun: bool,
}

impl Scan {
    /// Number of bytes up to the value's end, if it is here.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (i, &byte) in bytes.iter().enumerate() {
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_text = false;
                        if self.depth == 0 {
                            return Some(i + 1);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return Some(i),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(i + 1);
                    }
                }
                b',' if self.depth == 0 && self.is_begun => return Some(i),
                _ => {}
            }
            self.is_begun = true;
        }
        None
    }
}

#[cfg(test)]
mod tests;
