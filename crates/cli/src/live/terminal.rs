//! The screen: taken over, and given back whatever happens.

use std::io;

use ratatui::DefaultTerminal;
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

/// Gives the screen back as it was.
pub fn give_back() {
    ratatui::restore();
}
