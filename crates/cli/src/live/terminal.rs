//! The screen: taken over, and given back whatever happens.

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

/// The screen while it is ours.
///
/// Where the terminal is gone the library says on standard error what it could not do, in
/// its hook for panics and when it drops a terminal; nobody is there to read that, and the
/// failure to print it would end the recorder. So both are done here.
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

/// Takes the screen over. A panic gives it back, and [`give_back`].
///
/// Ctrl-C stays what it is to any program in the foreground: the terminal's signal to all
/// of them, the recorded one included. Ctrl-Z does nothing: the recorder would stand still
/// while the program goes on.
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
        // What stands for no key.
        modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
        tcsetattr(&out, OptionalActions::Now, &modes)
    };
    keep_signals().inspect_err(|_| give_back())?;
    Ok(screen)
}

/// Waits for a key or another size of the screen, at most so long.
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
    // A signal in between is no answer.
    let _ = poll(&mut asked, Some(&wait));
    // Of one that is gone the library would ask for keys for ever.
    if (asked[0].revents()).intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    // Asked not to wait at all, it does not look.
    let is_there = event::poll(Duration::from_millis(1)).unwrap_or(false);
    is_there.then(event::read).transpose()
}

/// Gives the screen back as it was.
pub fn give_back() {
    let _ = ratatui::try_restore();
}
