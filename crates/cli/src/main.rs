//! `undertick`: the command line as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words = match std::env::current_exe() {
        Ok(program) => vec![program.into_os_string()],
        Err(error) => {
            eprintln!("undertick: the path of this program cannot be found: {error}");
            return ExitCode::FAILURE;
        }
    };
    let calibration = undertick_calibrate::calibration::workload;
    let own = undertick_cli::Own { words, calibration };
    ExitCode::from(undertick_cli::run(std::env::args_os(), own))
}
