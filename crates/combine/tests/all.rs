//! The tests of this crate in one program: linked once, they build in a fraction of the time.

mod runs;
#[path = "../../analyze/tests/support/mod.rs"]
mod support;
