//! Messages between hosts, with the stamps of both clocks.

/// Messages from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// The host that sent them.
    pub from: usize,
    /// The host that received them.
    pub to: usize,
    /// Their source, for the manifest.
    pub source: String,
    /// A pair for each message: the stamp of the sender's clock and that of the receiver's, each in
    /// ticks of its own clock.
    pub stamps: Vec<(i64, i64)>,
}
