//! What is drawn of invented reports. One program for all of it: the documents' readers
//! and writers are compiled once.

mod impossible;
mod invented;
mod live;
mod page;
mod terminal;
