//! Names of the files of a trace.

/// Name of the manifest's file.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Name of the raw blocks' file, while there are any.
pub const RAW_FILE: &str = "raw.utb";
/// Name of the events' file.
pub const EVENTS_FILE: &str = "events.parquet";
/// Name of the file with the kernel's rows.
pub const KERNEL_FILE: &str = "kernel.parquet";
/// Name of the file with the stacks of sampled threads.
pub const STACKS_FILE: &str = "stacks.json";
