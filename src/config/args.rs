//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::Networks;
use super::values::{Listen, LogFormat};

const AFTER_HELP: &str = "\
Examples:
  headwater user add admin --superuser
      The first user, in a new store. Prints the password that it made.
  headwater serve
      The gateway, with what it remembers.
  headwater demo
      Three channels of moving test pictures, each with a backup stream. Prints what to try.
  headwater play ~/tv.m3u
      Serves the channels of a playlist: http://localhost:9191/playlist.m3u
  headwater play --max-streams 1 'http://provider.example/get.php?username=U&password=P&type=m3u_plus'
      The same from an address, with at most one connection to that provider at any time.

Configuration:
  A TOML file (--config), the environment and these options; the rightmost wins. Every key has all
  three forms. Key stall_timeout of table [engine] is
    HEADWATER_ENGINE_STALL_TIMEOUT=5   in the environment,
    --set engine.stall_timeout=5       as an option.
  Durations are seconds.

  Keys outside of tables:  api_listen player_listen data_dir user_agent stream_networks metrics_networks
  Table [log]:             level format
  Table [limits]:          connections_max connections_per_address_max header_timeout drain_timeout
                           body_bytes_max body_timeout playlist_bytes_max playlist_timeout
  Table [auth]:            failure_delay_max remember_login
  Table [play]:            lists max_streams
  Table [engine]:          connect_timeout first_packet_timeout stall_timeout buffering_timeout
                           random_access_wait start_timeout give_up_after channel_shutdown_delay
                           new_client_behind_seconds ring_seconds ring_bytes ring_gop_bytes
                           ring_budget_bytes slow_client_limit return_to_preferred_after at_limit
                           default_stream_profile

Signals:
  SIGTERM or SIGINT ends every stream after its last packets and exits with 0; a second one exits at once.";

/// A self-hosted gateway for live TV: one upstream connection per channel, any number of viewers, failover
/// between streams, provider limits kept.
#[derive(Debug, Parser)]
#[command(name = "headwater", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub(super) common: Common,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway: accounts, channels and users are kept in the data folder.
    #[command(after_help = AFTER_HELP)]
    Serve,
    /// Read the store without changing it and say how it is; exits with 1 when it is damaged.
    Check,
    /// What to do with a store that does not open.
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Take the streams of a playlist into the store, while the gateway does not run.
    ///
    /// Later imports of the same list change what differs and nothing else: streams keep their ids and edits.
    Import(NewImport),
    /// Users, while the gateway does not run.
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
    /// Serve the channels of one or more playlists.
    ///
    /// Entries with the same tvg-id (without one: the same name) become one channel with several streams, in the
    /// order in which they are found, over all lists. Each list is an account with its own limit.
    #[command(after_help = AFTER_HELP)]
    Play {
        /// Files or http(s) addresses of M3U playlists [env: HEADWATER_PLAY_LISTS]
        #[arg(value_name = "LIST.m3u|URL")]
        lists: Vec<String>,
        /// Streams that each account may play at once; 0 is no limit [default: 0] [env: HEADWATER_PLAY_MAX_STREAMS]
        #[arg(long, value_name = "N")]
        max_streams: Option<u32>,
    },
    /// Serve synthetic channels from a built-in source, to see it work and to break it.
    #[command(after_help = AFTER_HELP)]
    Demo {
        /// Where the built-in source listens. A free port is taken when this one is not free.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9190")]
        source_listen: SocketAddr,
    },
}

/// What to do with a store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Write what can be read of a damaged store into a new one; the old one stays as it is.
    Salvage {
        /// Where the new store goes: a folder that is empty or not there yet
        #[arg(value_name = "NEW_FOLDER")]
        into: PathBuf,
    },
}

/// What to do with users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Make a user. Without a password from standard input or the variable HEADWATER_PASSWORD one is made and printed.
    Add(NewUser),
}

/// A list to be imported.
#[derive(Debug, clap::Args)]
pub struct NewImport {
    /// File or http(s) address of an M3U playlist
    #[arg(value_name = "LIST.m3u|URL")]
    pub list: String,
    /// The account that it is the list of from now on [default: the one that has it, else a new one named after it]
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// Streams that the account may play at once; 0 is no limit [default: as it is, 0 for a new account]
    #[arg(long, value_name = "N")]
    pub max_streams: Option<u32>,
    /// Take the list also when it is much shorter than the last one
    #[arg(long)]
    pub confirm: bool,
}

/// The variable that a password can come from: a command line is seen by everybody on the machine.
pub const PASSWORD_VARIABLE: &str = "HEADWATER_PASSWORD";

/// A user to be made.
#[derive(Debug, clap::Args)]
pub struct NewUser {
    /// Letters, digits and @ . + - _
    pub name: String,
    /// May do everything
    #[arg(long)]
    pub superuser: bool,
    /// 0 watches, 1 also looks around, 10 also changes things [default: 0, with --superuser 10]
    #[arg(long, value_name = "N")]
    pub level: Option<u8>,
    /// Read the password from the first line of standard input
    #[arg(long)]
    pub password_stdin: bool,
}

/// What every command understands. Nothing has a default here: an option that is not given must not hide the file.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Common {
    /// Configuration file (TOML) [env: HEADWATER_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[arg(
        long,
        global = true,
        value_name = "ADDR",
        help = "Where administrators' programs call [default: [::]:8000, all addresses] [env: HEADWATER_API_LISTEN]"
    )]
    pub(super) api_listen: Option<Listen>,
    #[arg(
        long,
        global = true,
        value_name = "ADDR",
        help = "Where players call [default: [::]:9191, all addresses] [env: HEADWATER_PLAYER_LISTEN]"
    )]
    pub(super) player_listen: Option<Listen>,
    /// Where the store and its key file are kept [env: HEADWATER_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
    /// What we call ourselves at providers whose playlist does not say it [env: HEADWATER_USER_AGENT]
    #[arg(long, global = true, value_name = "TEXT")]
    pub(super) user_agent: Option<String>,
    /// Who may have streams and playlists without credentials: `loopback`, `private`, `any`, ADDRESS/PREFIX, with
    /// commas [default: loopback,private] [env: HEADWATER_STREAM_NETWORKS]
    #[arg(long, global = true, value_name = "NETS")]
    pub(super) stream_networks: Option<Networks>,
    /// error, warn, info, debug, trace, or a list such as info,media=debug [default: info] [env: HEADWATER_LOG_LEVEL]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(super) log_level: Option<String>,
    /// How log lines look [default: text] [env: HEADWATER_LOG_FORMAT]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(super) log_format: Option<LogFormat>,
    /// Any key of the configuration file, such as engine.stall_timeout=5; may be given more than once
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
}
