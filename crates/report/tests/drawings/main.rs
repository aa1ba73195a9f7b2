//! Drawings of invented reports. They are one program, so that the documents' readers and writers
//! are compiled once.

mod changes;
mod impossible;
mod invented;
mod live;
mod overview;
mod page;
mod terminal;
