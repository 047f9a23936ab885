//! The launcher of programs as a binary of its own, for tests of this crate. The gateway is its own launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    media::run_mode(std::env::args_os(), |_, _| {}).unwrap_or(ExitCode::FAILURE)
}
