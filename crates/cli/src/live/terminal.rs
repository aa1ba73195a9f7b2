//! The screen, which is taken over, and restored in all cases.

use std::io;
use std::mem::ManuallyDrop;
use std::panic;
use std::time::Duration;

use crossterm::event::{self, Event};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, enable_raw_mode};
use ratatui::backend::CrosstermBackend;
use ratatui::{DefaultTerminal, Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

/// The screen while it is taken over.
///
/// If the terminal is gone, the library reports errors on standard error, in its panic hook and
/// when it drops a terminal. That would fail, and the failure to print would end the recorder. So
/// this module does both.
pub struct Screen(ManuallyDrop<DefaultTerminal>);

impl Screen {
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, draws: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.0.draw(draws).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.0.show_cursor();
    }
}

/// Takes the screen over. A panic restores it, and so does [`give_back`].
///
/// Ctrl-C has its usual effect in the foreground: the terminal sends the signal to all programs,
/// including the recorded one. Ctrl-Z does nothing: the recorder would stop while the program goes
/// on.
///
/// # Errors
/// The terminal refuses.
pub fn take_over() -> io::Result<Screen> {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |about| {
        give_back();
        before(about);
    }));
    enable_raw_mode()?;
    let taken = execute!(io::stdout(), EnterAlternateScreen);
    let terminal = taken.and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
    let screen = Screen(ManuallyDrop::new(terminal.inspect_err(|_| give_back())?));
    let keep_signals = || -> rustix::io::Result<()> {
        let out = io::stdout();
        let mut modes = tcgetattr(&out)?;
        modes.local_modes |= LocalModes::ISIG;
        // This value disables the key.
        modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
        tcsetattr(&out, OptionalActions::Now, &modes)
    };
    keep_signals().inspect_err(|_| give_back())?;
    Ok(screen)
}

/// Waits for a key or a new size of the screen, at most for `wait`.
///
/// # Errors
/// The terminal was closed.
pub fn event(wait: Duration) -> io::Result<Option<Event>> {
    let out = io::stdout();
    let mut asked = [PollFd::new(&out, PollFlags::IN)];
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(wait.subsec_nanos()),
    };
    // A signal may end the wait early.
    let _ = poll(&mut asked, Some(&wait));
    // For a terminal that is gone the library would wait for keys for ever.
    if (asked[0].revents()).intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    // With no time to wait the library would not check.
    let is_there = event::poll(Duration::from_millis(1)).unwrap_or(false);
    is_there.then(event::read).transpose()
}

/// Restores the screen.
pub fn give_back() {
    let _ = ratatui::try_restore();
}
