//! Reports of Undertick: the document every output is drawn from.

pub mod document;
