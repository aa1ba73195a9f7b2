//! Requests in a file.

use std::io::{self, Write as _};
use std::path::Path;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use super::batches::Transport;
use crate::export::{Out, close};

/// The form of a file of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileForm {
    /// OTLP's file format: a JSON document in each line.
    JsonLines,
    /// Protobuf messages, each after its length, a varint.
    Delimited,
}

impl FileForm {
    /// The ends of names by which a form is chosen.
    pub const ENDS: &str = ".json or .jsonl (JSON lines), .pb, .binpb or .otlp (protobuf)";

    /// Returns the form that the end of a file's name asks for; `None` if it asks for none.
    #[must_use]
    pub fn by_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "json" | "jsonl" => Some(Self::JsonLines),
            "pb" | "binpb" | "otlp" => Some(Self::Delimited),
            _ => None,
        }
    }
}

pub(super) struct Requests {
    /// `None` once the file is closed.
    out: Option<Out>,
    form: FileForm,
    bytes: Vec<u8>,
}

impl Requests {
    pub(super) fn new(out: Out, form: FileForm) -> Self {
        Self {
            out: Some(out),
            form,
            bytes: Vec::new(),
        }
    }
}

impl Transport for Requests {
    const ACTION: &'static str = "cannot write";

    fn send(&mut self, request: &ExportTraceServiceRequest, _: u64) -> io::Result<()> {
        let Some(out) = &mut self.out else {
            return Err(io::Error::other("the file is closed"));
        };
        match self.form {
            FileForm::JsonLines => {
                serde_json::to_writer(&mut *out, request)?;
                out.write_all(b"\n")
            }
            FileForm::Delimited => {
                self.bytes.clear();
                request.encode_length_delimited(&mut self.bytes)?;
                out.write_all(&self.bytes)
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out
            .take()
            .map_or(Ok(()), |out| close(out.into_inner()?))
    }
}
