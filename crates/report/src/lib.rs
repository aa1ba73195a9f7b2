//! Reports of Undertick: the table for the terminal and the page for the browser, drawn from the
//! document ([`undertick_document`]). This crate draws; it computes nothing.
//!
//! **Question.** What was found, how certain is it, and what was dropped?
//!
//! ```no_run
//! use undertick_document::Report;
//! use undertick_report::{html, terminal};
//!
//! let report: Report = serde_json::from_str(&std::fs::read_to_string("report.json")?)?;
//! print!("{}", terminal::render(&report, terminal::Options::default()));
//! std::fs::write("report.html", html::render(&report))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Method.** Every figure comes from the document as it stands. This crate gives it a unit, as
//! many digits as its interval supports ([`undertick_document::figures`]), and its place. A table is
//! defined once, by its columns (`columns`, `table`), for terminal, page and Markdown. Names come
//! from the measured program and are not trusted: they are made harmless before they reach a terminal or a page.
//!
//! **Caveats.** The page needs no network and holds the whole document. A script inside it (`web/`,
//! bundled by `build.rs`) draws its charts; the rest needs no script. If the build found no
//! Node.js, the page has no script and says so.

pub mod audit;
pub mod benchmarks;
pub mod calibrate;
mod columns;
pub mod compare;
pub mod doctor;
mod escape;
pub mod experiment;
pub mod explanation;
mod findings;
mod first_screen;
pub mod fleet;
pub mod history;
pub mod html;
pub mod interference;
pub mod interposed;
pub mod live;
pub mod plot;
mod remarks;
mod repeated;
pub mod reproduce;
pub mod stacks;
pub mod states;
pub mod survey;
mod table;
pub mod tasks;
pub mod terminal;
mod text;
pub mod traffic;
