//! Reports of Undertick: the document every output is drawn from, the table for
//! the terminal and the page for the browser. It draws; it computes nothing.
//!
//! **Question.** What was found, how sure is it, and what was thrown away?
//!
//! ```no_run
//! use undertick_report::document::Report;
//! use undertick_report::{html, terminal};
//!
//! let report: Report = serde_json::from_str(&std::fs::read_to_string("report.json")?)?;
//! print!("{}", terminal::render(&report, terminal::Options::default()));
//! std::fs::write("report.html", html::render(&report))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Method.** Every figure comes from the document as it stands. Here it gets a
//! unit, as many digits as its interval supports ([`figures`]), and its place.
//! Names come from the program that was measured and are not trusted: they are
//! made harmless before they reach a terminal or a page.
//!
//! **Caveats.** The page needs no network and holds the whole document; its charts are
//! drawn by a script inside it (`web/`, bundled by `build.rs`), the rest is there without.
//! Where the build found no Node.js the page has no script, and says so.

pub mod audit;
pub mod calibrate;
pub mod chapters;
pub mod compare;
pub mod document;
pub mod experiment;
pub mod figures;
pub mod fleet;
pub mod html;
pub mod interference;
pub mod live;
pub mod plot;
mod remarks;
pub mod reproduce;
pub mod survey;
pub mod terminal;
mod text;
pub mod timeline;
pub mod traffic;
