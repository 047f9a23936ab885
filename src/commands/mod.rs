//! Subcommands of `headwater`, except `play` and `demo`.

mod backup;
mod cluster;
mod doctor;
mod export;
mod import;
mod import_from;
mod nodes;
mod reachability;
mod reseed;
mod restart;
mod serve;
mod settings;
mod store;
mod user;

use std::process::ExitCode;

use config::{ClusterCommand, Command, ExportCommand, KeysCommand, Loaded, StoreCommand};

pub use self::serve::{ServeError, serve};

/// Runs a command that starts no gateway, and blocks. Returns `None` for commands that start a gateway.
pub fn run(command: &Command, loaded: &Loaded) -> Option<anyhow::Result<ExitCode>> {
    let config = &loaded.config;
    Some(match command {
        Command::Config => Ok(settings::print(&loaded.values())),
        Command::Doctor => Ok(doctor::run(config)),
        Command::Check => store::check(config),
        Command::Store { command: StoreCommand::Salvage { into } } => store::salvage(config, into),
        Command::Export { command: ExportCommand::Strm(new) } => export::strm(config, new),
        Command::User { command } => user::run(config, command),
        Command::Keys { command: KeysCommand::Rotate } => user::rotate_token_key(config),
        Command::Cluster { command: ClusterCommand::Check } => cluster::check(config),
        Command::Cluster { command: ClusterCommand::Status } => cluster::status(config),
        Command::Cluster { command: ClusterCommand::Init } => nodes::init(config),
        Command::Cluster { command: ClusterCommand::Token { role } } => nodes::token(config, *role),
        Command::Cluster { command: ClusterCommand::Drain { end } } => nodes::drain(config, !end),
        Command::Cluster { command: ClusterCommand::Remove { name } } => nodes::remove(config, name),
        Command::Cluster { command: ClusterCommand::Finalize { force } } => nodes::finalize(config, *force),
        Command::Cluster { command: ClusterCommand::Reseed { force } } => reseed::reseed(config, *force),
        Command::Cluster { command: ClusterCommand::Leave } => nodes::leave(config),
        Command::Backup(new) => backup::back_up(config, new),
        Command::Restore(args) => backup::restore(config, args),
        Command::Restart => restart::run(config),
        Command::Import(new) => import::run(config, new),
        Command::ImportFrom(new) => import_from::run(config, new),
        Command::Serve { .. } | Command::Play { .. } | Command::Demo { .. } => return None,
    })
}
