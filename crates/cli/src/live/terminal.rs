//! The screen: taken over, and given back whatever happens.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

/// Takes the screen over. A panic gives it back, and [`give_back`].
///
/// Ctrl-C stays what it is to any program in the foreground: the terminal's signal to all
/// of them, the recorded one included. Ctrl-Z does nothing: the recorder would stand still
/// while the program goes on.
///
/// # Errors
/// The terminal refuses.
pub fn take_over() -> io::Result<DefaultTerminal> {
    let terminal = ratatui::try_init()?;
    let keep_signals = || -> rustix::io::Result<()> {
        let screen = io::stdout();
        let mut modes = tcgetattr(&screen)?;
        modes.local_modes |= LocalModes::ISIG;
        // What stands for no key.
        modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
        tcsetattr(&screen, OptionalActions::Now, &modes)
    };
    keep_signals().inspect_err(|_| give_back())?;
    Ok(terminal)
}

/// Waits for a key, at most so long; false if the terminal was closed.
pub fn is_there(wait: Duration) -> bool {
    let screen = io::stdout();
    let mut asked = [PollFd::new(&screen, PollFlags::IN)];
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(wait.subsec_nanos()),
    };
    // A signal in between is no answer.
    let _ = poll(&mut asked, Some(&wait));
    !(asked[0].revents()).intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// Gives the screen back as it was.
pub fn give_back() {
    // Not one that says why it cannot: where the terminal is gone, that ends the recorder.
    let _ = ratatui::try_restore();
}
