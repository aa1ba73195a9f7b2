//! Creates a child that exits at once, and waits for its end.
//!
//! A child executes only its exit: not the rest of this program, and none of its recording. A
//! spawned program gets an empty environment, so that no recorder's library is loaded into it.

use std::cell::{Cell, OnceCell};
use std::ffi::{CStr, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::rc::Rc;

use super::Act;
use super::fail::{done, fail, fail_last};
use crate::script::ForkKind;

/// Programs that exit at once.
const TRUE: [&CStr; 2] = [c"/bin/true", c"/usr/bin/true"];
/// Stack of a child, bytes; a child that exits at once needs little.
const STACK_BYTES: usize = 64 << 10;

/// The child of a process; it has at most one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children(Rc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    child: Cell<Option<Child>>,
    /// Stack of a child that shares its parent's memory. It is stored here and not in the act that
    /// creates the child, because it must stay until the child has ended.
    stack: OnceCell<Stack>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.reap();
    }
}

#[derive(Clone, Copy, Debug)]
enum Child {
    Process(libc::pid_t),
    Thread(libc::pthread_t),
}

impl Children {
    /// Makes the state without a child.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Creates a child. The one before must have been reaped.
    ///
    /// # Errors
    /// There is no program to spawn, or no memory for a stack.
    pub(crate) fn make(&self, kind: ForkKind) -> io::Result<Act> {
        Ok(match kind {
            ForkKind::Fork => self.act(fork),
            ForkKind::Vfork => self.with_stack(libc::CLONE_VM | libc::CLONE_VFORK)?,
            ForkKind::Clone => {
                let all = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND;
                self.with_stack(all)?
            }
            ForkKind::Spawn => {
                let found = TRUE.into_iter().find(|path| can_run(path));
                let path = found.ok_or_else(|| {
                    io::Error::new(
                        io::ErrorKind::NotFound,
                        "posix_spawn: neither /bin/true nor /usr/bin/true is here to be spawned",
                    )
                })?;
                self.act(move || spawn(path))
            }
            ForkKind::Thread => self.act(thread),
        })
    }

    fn with_stack(&self, flags: i32) -> io::Result<Act> {
        if self.0.stack.get().is_none() {
            // No other code can have set it.
            let _ = self.0.stack.set(Stack::new()?);
        }
        let children = self.clone();
        Ok(self.act(move || match children.0.stack.get() {
            Some(stack) => clone(stack, flags),
            None => fail("clone", "no stack"),
        }))
    }

    fn act(&self, mut make: impl FnMut() -> Child + 'static) -> Act {
        let children = self.clone();
        Box::new(move || {
            if children.0.child.get().is_some() {
                fail("fork", "the child before has not been reaped");
            }
            children.0.child.set(Some(make()));
        })
    }

    /// Waits for the end of the child.
    pub(crate) fn reap(&self) -> Act {
        let children = self.clone();
        Box::new(move || {
            if !children.0.reap() {
                fail("reap", "there is no child");
            }
        })
    }
}

impl Inner {
    /// Waits for the end of the child; returns `false` if there is none.
    fn reap(&self) -> bool {
        match self.child.take() {
            Some(Child::Process(child)) => wait_for(child),
            Some(Child::Thread(thread)) => {
                // SAFETY: joined once; nothing of what it returns is used.
                let error = unsafe { libc::pthread_join(thread, null_mut()) };
                if error != 0 {
                    fail("pthread_join", io::Error::from_raw_os_error(error));
                }
            }
            None => return false,
        }
        true
    }
}

fn wait_for(child: libc::pid_t) {
    let mut status = 0;
    loop {
        // SAFETY: the status is a live local.
        let found = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if found == child {
            break;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            fail_last("reap");
        }
    }
    if status != 0 {
        fail(
            "reap",
            format_args!("the child ended with status {status:#x}"),
        );
    }
}

fn fork() -> Child {
    // SAFETY: the child does nothing but end, which is allowed whatever threads
    // and locks its parent had.
    unsafe {
        let child = done("fork", libc::fork());
        if child == 0 {
            libc::_exit(0);
        }
        Child::Process(child)
    }
}

/// Stack of a child that shares its parent's memory, with a guard page below.
#[derive(Debug)]
struct Stack {
    all: *mut u8,
}

const GUARD_BYTES: usize = 64 << 10;

impl Stack {
    fn new() -> io::Result<Self> {
        let bytes = GUARD_BYTES + STACK_BYTES;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: new memory where the kernel likes.
        let all = unsafe { libc::mmap(null_mut(), bytes, access, flags, -1, 0) };
        if all == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the first part of what was mapped just now.
        if unsafe { libc::mprotect(all, GUARD_BYTES, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { all: all.cast() })
    }

    fn top(&self) -> *mut c_void {
        self.all.wrapping_add(GUARD_BYTES + STACK_BYTES).cast()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: our own mapping; a child that used it has been reaped.
        unsafe { libc::munmap(self.all.cast(), GUARD_BYTES + STACK_BYTES) };
    }
}

/// Everything that a child with shared memory executes. It also shares its parent's thread-local
/// memory and must not use any of it, so it makes only a system call that cannot fail.
extern "C" fn end(_: *mut c_void) -> libc::c_int {
    // SAFETY: ends this process, which is a thread group of its own.
    unsafe { libc::_exit(0) }
}

fn clone(stack: &Stack, flags: i32) -> Child {
    // SAFETY: the stack is the child's alone until it is reaped: there is one
    // child at a time. `end` touches no memory but that.
    let child = unsafe { libc::clone(end, stack.top(), flags | libc::SIGCHLD, null_mut()) };
    Child::Process(done("clone", child))
}

fn can_run(path: &CStr) -> bool {
    // SAFETY: a constant path.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

fn spawn(path: &'static CStr) -> Child {
    let mut child = 0;
    let arguments = [path.as_ptr().cast_mut(), null_mut()];
    let environment = [null_mut()];
    // SAFETY: both lists end with null; neither actions nor attributes.
    let error = unsafe {
        libc::posix_spawn(
            &raw mut child,
            path.as_ptr(),
            null(),
            null(),
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    if error != 0 {
        fail("posix_spawn", io::Error::from_raw_os_error(error));
    }
    Child::Process(child)
}

extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
    null_mut()
}

fn thread() -> Child {
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the function needs nothing; the C library fills the local.
    let error = unsafe { libc::pthread_create(thread.as_mut_ptr(), null(), nothing, null_mut()) };
    if error != 0 {
        fail("pthread_create", io::Error::from_raw_os_error(error));
    }
    // SAFETY: filled, as it succeeded.
    Child::Thread(unsafe { thread.assume_init() })
}

#[cfg(test)]
mod tests;
