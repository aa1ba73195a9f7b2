//! Shared objects that record what a program's threads wait for and how much each span allocates.
//!
//! [`Library::Locks`] and [`Library::Malloc`] have the C library's functions for locks and for memory. When
//! preloaded, they call the C library, and record waits and numbers of allocations through
//! `undertick.h`, into rings that hold no spans. `docs/format.md`, section 13, describes the records.
//!
//! Caveats: they need ELF, glibc and the architecture that this crate was built for. Calls within the C
//! library, and of programs that bring their own locks or allocator, are not seen.

/// A library that can be preloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Library {
    /// Waits for mutexes, read-write locks, conditions and semaphores.
    Locks,
    /// Counts and bytes of allocations.
    Malloc,
}

impl Library {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Locks, Self::Malloc];

    /// Its name on the command line and in manifests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Locks => "locks",
            Self::Malloc => "malloc",
        }
    }

    /// Name of its file.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Locks => "libundertick_locks.so",
            Self::Malloc => "libundertick_malloc.so",
        }
    }

    /// The contents of the shared object.
    #[must_use]
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Locks => include_bytes!(concat!(env!("OUT_DIR"), "/libundertick_locks.so")),
            Self::Malloc => include_bytes!(concat!(env!("OUT_DIR"), "/libundertick_malloc.so")),
        }
    }
}
