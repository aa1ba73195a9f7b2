//! Traces of Undertick: what is kept of a recording, and how it is read again.

pub mod manifest;
pub mod schema;
