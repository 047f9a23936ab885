//! The streams in JetStream: their names, settings and limits.

use std::error::Error;

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamError, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, StorageType};
use async_nats::jetstream::{Context, ErrorCode};
use tracing::{info, warn};

/// A stream of the cluster. The names are those that the tools of NATS expect, so that `nats kv` and `nats object`
/// work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StreamKind {
    /// The bucket of records `HW`.
    Records,
    Log,
    /// The object store `HW`.
    Objects,
}

/// The name of the bucket and of the object store.
pub(super) const BUCKET: &str = "HW";

const MIB: i64 = 1 << 20;

impl StreamKind {
    pub(super) const ALL: [Self; 3] = [Self::Records, Self::Log, Self::Objects];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Records => "KV_HW",
            Self::Log => "HW_LOG",
            Self::Objects => "OBJ_HW",
        }
    }

    /// Maximum number of bytes on each server. A full stream refuses writes, and loses nothing.
    pub(super) fn bytes_max(self) -> i64 {
        match self {
            Self::Records => 64 * MIB,
            Self::Log => 1024 * MIB,
            Self::Objects => 4096 * MIB,
        }
    }

    fn subjects(self) -> Vec<String> {
        match self {
            Self::Records => vec!["$KV.HW.>".to_owned()],
            Self::Log => vec![LOG_SUBJECT.to_owned()],
            Self::Objects => vec!["$O.HW.C.>".to_owned(), "$O.HW.M.>".to_owned()],
        }
    }

    fn config(self, n_replicas: usize) -> Config {
        let common = Config {
            name: self.name().to_owned(),
            description: Some("Headwater".to_owned()),
            subjects: self.subjects(),
            max_bytes: self.bytes_max(),
            // Without an age: the engine's clock must not decide anything.
            storage: StorageType::File,
            discard: DiscardPolicy::New,
            num_replicas: n_replicas,
            ..Config::default()
        };
        match self {
            // Reads go to the leader, which is stale less often than a follower.
            Self::Records => {
                Config { max_messages_per_subject: 1, allow_rollup: true, deny_delete: true, ..common }
            }
            Self::Log => Config { deny_delete: true, ..common },
            Self::Objects => Config { allow_rollup: true, allow_direct: true, ..common },
        }
    }
}

/// The subject of the log.
pub(super) const LOG_SUBJECT: &str = "hw.log";

/// Returns the number of replicas for a number of servers.
pub fn replicas(n_servers: usize) -> usize {
    n_servers.clamp(1, 3)
}

/// Returns a text that differs between streams of the same name.
pub(super) fn identity(info: &Info) -> String {
    info.created.to_string()
}

/// Returns the state of a stream; creates it if it is missing.
pub(super) async fn ensure(jetstream: &Context, kind: StreamKind, n_servers: usize) -> Result<Info, String> {
    let wanted = kind.config(replicas(n_servers));
    let name = kind.name();
    let present = match jetstream.get_stream(name).await {
        Ok(stream) => stream.cached_info().clone(),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(it) if it.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                return create(jetstream, wanted, n_servers).await;
            }
            GetStreamErrorKind::JetStream(it) => return Err(refused(it.error_code(), &it.to_string())),
            _ => return Err(unanswered(&error)),
        },
    };
    check(&present, &wanted)?;
    if present.config.num_replicas < wanted.num_replicas {
        let config = Config { num_replicas: wanted.num_replicas, ..present.config.clone() };
        if let Err(error) = jetstream.update_stream(config).await {
            warn!(
                "the stream {name} of NATS has {} replicas instead of {}: {error}",
                present.config.num_replicas, wanted.num_replicas
            );
        }
    }
    Ok(present)
}

async fn create(jetstream: &Context, wanted: Config, n_servers: usize) -> Result<Info, String> {
    let name = wanted.name.clone();
    let created = jetstream.create_stream(wanted).await.map_err(|error| {
        let hint = match error.kind() {
            CreateStreamErrorKind::JetStream(it) if n_servers > 1 => {
                format!("{it}; are all {n_servers} servers of `servers` in one NATS cluster, and running?")
            }
            CreateStreamErrorKind::JetStream(it) => it.to_string(),
            _ => error.to_string(),
        };
        format!("NATS cannot create the stream {name}: {hint}")
    })?;
    info!("created the stream {name} in NATS");
    Ok(created.cached_info().clone())
}

/// Checks the settings on which safety depends.
fn check(present: &Info, wanted: &Config) -> Result<(), String> {
    let (is, name) = (&present.config, &wanted.name);
    let problem = if is.storage != StorageType::File {
        "is kept in memory, and must be in files"
    } else if !is.max_age.is_zero() {
        "has a maximum age, and must have none"
    } else if is.sealed || is.mirror.is_some() || is.sources.is_some() {
        "is sealed, a mirror, or fed by other streams"
    } else if is.discard != DiscardPolicy::New {
        "discards old entries when it is full, and must refuse new ones"
    } else {
        return Ok(());
    };
    Err(format!(
        "the stream {name} of NATS {problem}; was it created by something else? Correct or remove it"
    ))
}

fn refused(code: ErrorCode, text: &str) -> String {
    match code {
        ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT | ErrorCode::JETSTREAM_NOT_ENABLED => {
            "JetStream is not enabled for this account of NATS; add `jetstream: enabled` to the account"
                .to_owned()
        }
        _ => format!("JetStream refuses: {text}"),
    }
}

fn unanswered(error: &GetStreamError) -> String {
    let cause = error.source().map(ToString::to_string).unwrap_or_else(|| error.to_string());
    format!(
        "JetStream does not answer ({cause}); its servers need `jetstream {{ … }}` in their configuration, and a \
         majority of them has to run"
    )
}
