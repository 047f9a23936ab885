//! Subcommands of `headwater`, except `play` and `demo`.

mod backup;
mod import;
mod import_from;
mod serve;
mod store;
mod user;

use std::process::ExitCode;

pub use self::serve::{ServeError, serve};
use crate::config::{Command, Config, KeysCommand, StoreCommand};

/// Runs a command that starts no gateway, and blocks. Returns `None` for commands that start a gateway.
pub fn run(command: &Command, config: &Config) -> Option<anyhow::Result<ExitCode>> {
    Some(match command {
        Command::Check => store::check(config),
        Command::Store { command: StoreCommand::Salvage { into } } => store::salvage(config, into),
        Command::User { command } => user::run(config, command),
        Command::Keys { command: KeysCommand::Rotate } => user::rotate_token_key(config),
        Command::Backup(new) => backup::back_up(config, new),
        Command::Restore(args) => backup::restore(config, args),
        Command::Import(new) => import::run(config, new),
        Command::ImportFrom(new) => import_from::run(config, new),
        Command::Serve | Command::Play { .. } | Command::Demo { .. } => return None,
    })
}
