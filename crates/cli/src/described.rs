//! `undertick completions` and `undertick man`: descriptions of the command line for shells and for
//! `man`, from the same text as `--help`.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::Failure;
use crate::args::Arguments;

/// Print a script for a shell, which completes these commands and their options
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick completions bash > ~/.local/share/bash-completion/completions/undertick\n  \
    undertick completions zsh > ~/.zfunc/_undertick   (a directory in $fpath)\n  \
    undertick completions fish > ~/.config/fish/completions/undertick.fish"
)]
pub struct Completions {
    /// Shell
    pub shell: clap_complete::Shell,
}

/// Write the manual pages, one for each command
#[derive(Args)]
#[command(
    after_help = "Example:\n  undertick man --dir ~/.local/share/man/man1 && man undertick-record"
)]
pub struct Man {
    /// Directory to write them to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
}

pub fn completions(arguments: &Completions) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown(), "undertick", &mut script);
    crate::output::print(&String::from_utf8_lossy(&script))
}

pub fn man(arguments: &Man) -> Result<u8, Failure> {
    let dir = &arguments.dir;
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(shown(), dir))
        .map_err(|e| Failure::machine(format!("{}: cannot write: {e}", dir.display())))?;
    say!(
        "undertick: {}/undertick.1 and the pages of its commands",
        dir.display()
    );
    Ok(0)
}

/// Returns the commands without those that only this program calls.
fn shown() -> clap::Command {
    let whole = Arguments::command();
    let commands = whole
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .cloned();
    let commands: Vec<clap::Command> = commands.collect();
    let about = whole.get_about().cloned().unwrap_or_default();
    clap::Command::new("undertick")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .args(whole.get_arguments().cloned())
        .subcommands(commands)
}
