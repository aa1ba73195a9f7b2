//! The packages for languages that have no part in the workspace.

mod go;
mod java;
mod node;
mod together;

pub use go::go_alone;
pub use java::java_alone;
pub use node::node_alone;
pub(super) use together::all as together;
pub use together::together_alone;

use super::{Count, ended};

pub(super) fn all(count: &mut Count) {
    go::all(count);
    node::all(count);
    java::all(count);
}
