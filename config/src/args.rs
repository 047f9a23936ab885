//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use domain::cluster::token::NodeRole;

use super::Networks;
use super::layers::{by_table, keys};
use super::values::{Listen, LogFormat};

const EXAMPLES: &str = "\
Examples:
  headwater user add admin --superuser
      Creates the first user in a new store and prints the generated password.
  headwater serve
      Runs the gateway with the stored accounts, channels and users.
  headwater demo
      Serves three channels of moving test pictures, each with a backup stream, and prints
      commands to try.
  headwater play ~/tv.m3u
      Serves the channels of a playlist: http://localhost:9191/playlist.m3u
  headwater play --max-streams 1 'http://provider.example/get.php?username=U&password=P&type=m3u_plus'
      The same from a URL, with at most one connection to that provider at any time.";

const CONFIGURATION: &str = "\
Configuration:
  Every key can be set in a TOML file (--config), in the environment, and by an option. Options
  override the environment, which overrides the file. For stall_timeout of table [engine]:
    HEADWATER_ENGINE_STALL_TIMEOUT=5   in the environment
    --set engine.stall_timeout=5       as an option
  Durations are in seconds.
";

const SIGNALS: &str = "\
Signals:
  SIGTERM or SIGINT ends every stream after its last packets, then exits with 0. A second signal
  exits immediately. SIGUSR2 does what `headwater restart` does.";

/// Returns the examples, and every key of the configuration with its default.
fn long_help() -> String {
    let mut text = format!("{EXAMPLES}\n\n{CONFIGURATION}");
    for (table, keys) in by_table(keys()) {
        text += &if table.is_empty() { "\n".to_owned() } else { format!("\n  [{table}]\n") };
        for (name, default) in keys {
            let default = if default.is_null() { "none".to_owned() } else { default.to_string() };
            text += &format!("    {name:<28} {default}\n");
        }
    }
    text + "\n" + SIGNALS
}

/// A self-hosted gateway for live TV: one upstream connection per channel for any number of viewers, failover
/// between streams, and provider limits observed.
#[derive(Debug, Parser)]
#[command(name = "headwater", version, after_help = EXAMPLES, after_long_help = long_help(), max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub(super) common: Common,
}

impl Args {
    /// Parses the arguments of this process. Ends the process after `--help`, and with a message if they are invalid.
    pub fn from_command_line() -> Self {
        Self::parse()
    }
}

/// The subcommand to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway with the accounts, channels and users stored in the data folder.
    #[command(after_help = EXAMPLES, after_long_help = long_help())]
    Serve {
        /// Start no plugin, whatever is enabled.
        #[arg(long)]
        safe_mode: bool,
        /// Join a cluster first, with a token of `headwater cluster token`. Without effect once this machine is a node.
        #[arg(long, value_name = "TOKEN")]
        join: Option<String>,
        /// Take over from the gateway that started this process.
        #[arg(long, hide = true)]
        take_over: bool,
    },
    /// Replace the running gateway by a new process of the program and the configuration on the disk.
    ///
    /// The new process first reads its configuration; if that fails, nothing changes. No connection is refused meanwhile.
    /// Streams end, and players that open them again get them from the new process.
    Restart,
    /// Print every setting in force, with its default and where it comes from.
    Config,
    /// Check the store without changing it; exit with 1 if it is damaged.
    Check,
    /// Check the machine, the data folder and the accounts, and say what to do; exit with 1 if there is a problem.
    ///
    /// Works whether the gateway runs or not, and changes nothing. Each active account is asked once.
    Doctor,
    /// Repair tools for a damaged store.
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Write a back-up of the store and the uploaded files to a new file, also while the gateway runs.
    ///
    /// Secrets in the back-up are encrypted under a passphrase, or else under the key file of this installation, which
    /// is then needed to restore it.
    Backup(NewBackup),
    /// Replace the store and the uploaded files by those of a back-up.
    ///
    /// The back-up is verified first. While the gateway runs, the back-up is used from its next start.
    Restore(RestoreArgs),
    /// Import a playlist into the store and make channels of it. The gateway must not be running.
    ///
    /// Importing the same list again changes only what differs: streams and channels keep their ids and edits.
    ///
    /// Streams that no channel has become channels: those with the same tvg-id (or the same name, if they have none)
    /// become one channel with several streams, over all accounts. Films, series and separator lines become none.
    Import(NewImport),
    /// Move a household from Dispatcharr to this gateway. The gateway must not be running.
    ///
    /// Reads channels, groups, streams, accounts, users and settings, and prints what it takes, changes and leaves out.
    /// In an empty store, channels keep their ids, uuids and numbers, and users keep their passwords. Running it again
    /// adds only what is missing.
    ///
    /// The password or API key for an address is read from HEADWATER_SOURCE_PASSWORD or HEADWATER_SOURCE_API_KEY, from
    /// standard input (--password-stdin), or typed.
    ImportFrom(NewImportFrom),
    /// Export films and series, also while the gateway runs.
    Export {
        #[command(subcommand)]
        command: ExportCommand,
    },
    /// Manage users, also while the gateway runs.
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
    /// Manage the keys of this installation, also while the gateway runs.
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Begin a cluster of several gateways, look at it, and let machines join and leave.
    Cluster {
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// Serve the channels of one or more playlists, without a store.
    ///
    /// Entries with the same tvg-id (or the same name, if they have none) become one channel with several streams, in
    /// the order in which they are found in all lists. Each list is an account with its own limit.
    #[command(after_help = EXAMPLES, after_long_help = long_help())]
    Play {
        /// Files or http(s) URLs of M3U playlists [env: HEADWATER_PLAY_LISTS]
        #[arg(value_name = "LIST.m3u|URL")]
        lists: Vec<String>,
        /// Maximum number of simultaneous streams per account; 0 means no limit [default: 0] [env:
        /// HEADWATER_PLAY_MAX_STREAMS]
        #[arg(long, value_name = "N")]
        max_streams: Option<u32>,
    },
    /// Serve test channels from a built-in source, for trying out playback and failover.
    #[command(after_help = EXAMPLES, after_long_help = long_help())]
    Demo {
        /// Address of the built-in source. If the port is in use, a free one is chosen.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9190")]
        source_listen: SocketAddr,
    },
}

/// Subcommands of `headwater store`.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Copy all readable records of a damaged store into a new store; the old store is not changed.
    Salvage {
        /// Folder for the new store; must be empty or not exist yet
        #[arg(value_name = "NEW_FOLDER")]
        into: PathBuf,
    },
}

/// Subcommands of `headwater export`.
#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// Write STRM files for Jellyfin, Emby and Kodi into a folder.
    ///
    /// Writes only what has changed, and removes only files that an earlier export wrote. The addresses contain the
    /// player secret of a user, and the titles are those that this user may see. Values that are not named here are those
    /// of the library settings.
    Strm(NewStrmExport),
}

/// Arguments of `headwater export strm`.
#[derive(Debug, clap::Args)]
pub struct NewStrmExport {
    /// Folder to write to; created if it does not exist
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// User who may see the titles, and with whose player secret they play
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Write NFO files with the facts of titles too
    #[arg(long)]
    pub nfo: bool,
}

/// Subcommands of `headwater keys`.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Replace the key that signs tokens: every user has to log in again. API keys stay valid.
    Rotate,
}

/// Subcommands of `headwater cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Check the NATS servers of the cluster, and say what to do; exit with 1 if there is a problem.
    ///
    /// Looks at versions, JetStream, replicas, the writing to disk, round trips and clocks. Changes nothing.
    Check,
    /// List the nodes of the cluster; exit with 1 if the cluster cannot be reached.
    Status,
    /// Make this gateway the first node of a cluster. The gateway must not be running.
    ///
    /// Its accounts, channels, users and settings become those of the cluster, and none is lost.
    Init,
    /// Print a token with which one machine joins the cluster within an hour. The gateway must be running.
    Token {
        /// Role of the machine: `full`, or `edge` for one that serves viewers and gets no secrets of providers
        #[arg(long, value_name = "ROLE", default_value = "full", value_parser = parse_role)]
        role: NodeRole,
    },
    /// Move the channels and jobs of this node to other nodes, which open no new ones here. The gateway must be running.
    ///
    /// Viewers of this node stay, and new ones are for the other nodes: `/readyz` answers 503. The drain ends with `--end`,
    /// and when the gateway stops.
    Drain {
        /// Let the node open channels and begin jobs again
        #[arg(long)]
        end: bool,
    },
    /// Remove a node for good: its certificate is refused from now on. The gateway must be running.
    Remove {
        /// Name of the node
        #[arg(value_name = "NODE")]
        name: String,
    },
    /// Let the nodes write the newest version of their data that all of them read, after the last one was updated. The gateway
    /// must be running.
    ///
    /// Versions of the gateway that do not read it cannot be nodes from then on. Nodes that do not run count, unless they
    /// were removed.
    Finalize {
        /// Leave out nodes that do not run
        #[arg(long)]
        force: bool,
    },
    /// Begin a new log with the configuration of this node, which the other nodes then take. The gateway must not be running.
    ///
    /// For a log that is damaged, has lost its end, or was removed, and for a back-up that was restored. Run it on the node
    /// with the most complete configuration.
    Reseed {
        /// Begin a new log also if the present one is undamaged, or if other nodes have more
        #[arg(long)]
        force: bool,
    },
    /// Make this machine a gateway of its own again, with the configuration it has. The gateway must not be running.
    Leave,
}

/// Subcommands of `headwater user`.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Create a user.
    ///
    /// The password is read from standard input (--password-stdin) or from the variable HEADWATER_PASSWORD; otherwise a
    /// random password is generated and printed.
    Add(NewUser),
    /// List all users.
    List,
    /// Replace the password of a user, which ends all logins.
    ///
    /// The password is read like that of a new user.
    Passwd(NewPassword),
    /// Delete a user.
    Delete {
        /// User name
        name: String,
    },
}

/// Arguments of `headwater backup`.
#[derive(Debug, clap::Args)]
pub struct NewBackup {
    /// File to write, usually with the ending .tar.gz; must not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Read a passphrase from the first line of standard input
    #[arg(long)]
    pub passphrase_stdin: bool,
}

/// Arguments of `headwater restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// Back-up to restore
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Read the passphrase of the back-up from the first line of standard input
    #[arg(long)]
    pub passphrase_stdin: bool,
    /// Key file of the installation that made the back-up [default: that of the data folder]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// Arguments of `headwater import`.
#[derive(Debug, clap::Args)]
pub struct NewImport {
    /// File or http(s) URL of an M3U playlist
    #[arg(value_name = "LIST.m3u|URL")]
    pub list: String,
    /// Account to import into [default: the account of this list, or a new one named after the list]
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// Maximum number of simultaneous streams; 0 means no limit [default: unchanged, 0 for a new account]
    #[arg(long, value_name = "N")]
    pub max_streams: Option<u32>,
    /// Make channels only of streams of these groups, separated by commas [default: all groups]
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', conflicts_with = "no_channels")]
    pub groups: Vec<String>,
    /// Import the streams only, and make no channels
    #[arg(long)]
    pub no_channels: bool,
    /// Write nothing, and print what the list contains and which channels would be made
    #[arg(long)]
    pub dry_run: bool,
    /// Accept a list from which many known streams are missing
    #[arg(long)]
    pub confirm: bool,
}

/// Arguments of `headwater import-from`.
#[derive(Debug, clap::Args)]
pub struct NewImportFrom {
    /// Plain-SQL export of the database (pg_dump, also compressed with gzip), or the http(s) address of the service
    #[arg(value_name = "EXPORT.sql|URL")]
    pub source: String,
    /// Write nothing, and print what would be written
    #[arg(long)]
    pub dry_run: bool,
    /// Name of an admin of the service at this address
    #[arg(long, value_name = "NAME")]
    pub username: Option<String>,
    /// Read the password of that admin from the first line of standard input
    #[arg(long)]
    pub password_stdin: bool,
}

/// Environment variables for the credentials of the service from which records are imported.
pub const SOURCE_PASSWORD_VARIABLE: &str = "HEADWATER_SOURCE_PASSWORD";
pub const SOURCE_API_KEY_VARIABLE: &str = "HEADWATER_SOURCE_API_KEY";

/// Environment variable for a password. There is no option, because every user of the machine can read command lines.
pub const PASSWORD_VARIABLE: &str = "HEADWATER_PASSWORD";

/// Arguments of `headwater user add`.
#[derive(Debug, clap::Args)]
pub struct NewUser {
    /// User name: letters, digits, spaces and signs, except / \ ? # % :
    pub name: String,
    /// Grant all permissions
    #[arg(long)]
    pub superuser: bool,
    /// 0 (viewer), 1 (may also read the API) or 10 (admin) [default: 0, or 10 with --superuser]
    #[arg(long, value_name = "N")]
    pub level: Option<u8>,
    /// Read the password from the first line of standard input
    #[arg(long)]
    pub password_stdin: bool,
}

/// Arguments of `headwater user passwd`.
#[derive(Debug, clap::Args)]
pub struct NewPassword {
    /// User name
    pub name: String,
    /// Also remove the API key and the player password
    #[arg(long)]
    pub revoke_secrets: bool,
    /// Read the password from the first line of standard input
    #[arg(long)]
    pub password_stdin: bool,
}

/// Options of every command. None has a default, because a default would override the configuration file.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Common {
    /// Configuration file (TOML) [env: HEADWATER_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[arg(
        long,
        global = true,
        value_name = "ADDR",
        help = "Address of the admin API [default: [::]:8000, all addresses] [env: HEADWATER_API_LISTEN]"
    )]
    pub(super) api_listen: Option<Listen>,
    #[arg(
        long,
        global = true,
        value_name = "ADDR",
        help = "Address for players [default: [::]:9191, all addresses] [env: HEADWATER_PLAYER_LISTEN]"
    )]
    pub(super) player_listen: Option<Listen>,
    /// Folder of the store and its key file [env: HEADWATER_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
    /// Default User-Agent for requests to providers [env: HEADWATER_USER_AGENT]
    #[arg(long, global = true, value_name = "TEXT")]
    pub(super) user_agent: Option<String>,
    /// Networks that get streams and playlists without credentials: a comma-separated list of `loopback`, `private`,
    /// `any` and ADDRESS/PREFIX [default: loopback,private] [env: HEADWATER_STREAM_NETWORKS]
    #[arg(long, global = true, value_name = "NETS")]
    pub(super) stream_networks: Option<Networks>,
    /// Log level: error, warn, info, debug, trace, or a list such as info,media=debug [default: info] [env:
    /// HEADWATER_LOG_LEVEL]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(super) log_level: Option<String>,
    /// Format of log lines [default: text] [env: HEADWATER_LOG_FORMAT]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(super) log_format: Option<LogFormat>,
    /// Set any key of the configuration file, such as engine.stall_timeout=5; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
}

fn parse_role(text: &str) -> Result<NodeRole, String> {
    match text {
        "full" => Ok(NodeRole::Full),
        "edge" => Ok(NodeRole::Edge),
        _ => Err("expected `full` or `edge`".to_owned()),
    }
}
