//! How this node takes part in a cluster. Without servers, it is on its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use actors::SnapshotLimits;
use cluster::nats::{NatsLogin, NatsOptions, check_address, check_monitor_address};
use cluster::{NodeInfo, NodeRole};
use domain::cluster::version::OWN_VERSIONS;
use domain::settings::seconds;
use serde::{Deserialize, Serialize};

use super::Listen;

/// Length of the longest name of a node, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Largest value of `snapshot_bytes`. Three such parts are below half of the log.
const SNAPSHOT_BYTES_MAX: u64 = 128 << 20;

/// The port for other nodes.
pub const NODE_PORT: u16 = 9292;

/// Settings of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterConfig {
    /// Addresses of all NATS servers, such as `nats://10.0.0.1:4222`. Empty: no cluster.
    pub servers: Vec<String>,
    /// File with the seed of this node's nkey.
    pub key_file: Option<PathBuf>,
    /// Credentials file of NATS, instead of `key_file`.
    pub credentials_file: Option<PathBuf>,
    /// File with the certificates that sign those of the servers. The connections use TLS then.
    pub ca_file: Option<PathBuf>,
    /// Name of this node; by default the name of the machine.
    pub node_name: Option<String>,
    /// `full`, or `edge` for a node that only serves viewers.
    pub role: NodeRole,
    /// Addresses under which other nodes reach this one.
    pub addresses: Vec<String>,
    /// Address for other nodes to connect to; by default port 9292 of all addresses. Opened once this machine is a node.
    pub listen: Option<Listen>,
    /// Addresses of the monitoring of the servers, such as `http://10.0.0.1:8222`, for `headwater cluster check`.
    pub monitors: Vec<String>,
    /// Size of the entries of the log, in bytes, after which the node that writes makes a snapshot.
    pub snapshot_bytes: u64,
    /// Age of the last snapshot after which there is another one, if something has changed.
    #[serde(with = "seconds")]
    pub snapshot_interval: Duration,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        let SnapshotLimits { bytes, interval } = SnapshotLimits::default();
        Self {
            servers: Vec::new(),
            key_file: None,
            credentials_file: None,
            ca_file: None,
            node_name: None,
            role: NodeRole::default(),
            addresses: Vec::new(),
            listen: None,
            monitors: Vec::new(),
            snapshot_bytes: bytes,
            snapshot_interval: interval,
        }
    }
}

impl ClusterConfig {
    /// Returns whether this node takes part in a cluster.
    pub fn is_enabled(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Checks the settings. An error is the key and the reason.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if !self.is_enabled() {
            let reason = "is missing, and other settings of the cluster are there; name the NATS servers";
            return if *self == Self::default() { Ok(()) } else { Err(("servers", reason.to_owned())) };
        }
        for address in &self.servers {
            // Without the address, which may contain a password by mistake.
            check_address(address).map_err(|it| ("servers", format!("has a wrong address: {it}")))?;
        }
        if self.key_file.is_some() && self.credentials_file.is_some() {
            return Err(("key_file", "excludes credentials_file; set one of them".to_owned()));
        }
        if let Some(name) = &self.node_name {
            check_name(name).map_err(|it| ("node_name", it))?;
        }
        let is_address = |it: &&String| it.is_empty() || it.len() > 255 || it.contains(['/', '@', ' ']);
        if let Some(wrong) = self.addresses.iter().find(is_address) {
            return Err(("addresses", format!("contains `{wrong}`; HOST or HOST:PORT is expected")));
        }
        for address in &self.monitors {
            check_monitor_address(address)
                .map_err(|it| ("monitors", format!("has a wrong address: {it}")))?;
        }
        if !(1..=SNAPSHOT_BYTES_MAX).contains(&self.snapshot_bytes) {
            let reason = format!("must be between 1 and {SNAPSHOT_BYTES_MAX}: the log takes 1 GiB");
            return Err(("snapshot_bytes", reason));
        }
        if self.snapshot_interval < Duration::from_secs(1) {
            return Err(("snapshot_interval", "must be at least a second".to_owned()));
        }
        Ok(())
    }

    /// Returns when a snapshot is due.
    pub fn snapshots(&self) -> SnapshotLimits {
        SnapshotLimits { bytes: self.snapshot_bytes, interval: self.snapshot_interval }
    }

    /// Returns the name of this node.
    ///
    /// # Errors
    /// If the name of the machine cannot be used.
    pub fn name(&self) -> Result<String, String> {
        if let Some(name) = &self.node_name {
            return Ok(name.clone());
        }
        let uname = rustix::system::uname();
        let name = uname.nodename().to_string_lossy().into_owned();
        check_name(&name)
            .map_err(|it| format!("the name of this machine, `{name}`, {it}; set cluster.node_name"))?;
        Ok(name)
    }

    /// Returns the address for other nodes to connect to.
    pub fn listen(&self) -> Listen {
        self.listen.unwrap_or(Listen::everywhere(NODE_PORT))
    }

    /// Returns what this node says about itself, without its load.
    pub fn node(&self) -> Result<NodeInfo, String> {
        Ok(NodeInfo {
            name: self.name()?,
            role: self.role,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            addresses: self.addresses.clone(),
            versions: OWN_VERSIONS,
            ..NodeInfo::default()
        })
    }

    /// Returns how to reach the servers. Reads the files of the login.
    ///
    /// # Errors
    /// If a file cannot be read or contains something else. Without its contents.
    pub fn nats(&self) -> Result<NatsOptions, String> {
        let read =
            |path: &Path| fs::read_to_string(path).map_err(|it| format!("read {}: {it}", path.display()));
        let login = match (&self.key_file, &self.credentials_file) {
            (Some(path), _) => NatsLogin::from_seed(&read(path)?)
                .map_err(|it| format!("use the key {}: {it}", path.display()))?,
            (None, Some(path)) => NatsLogin::from_credentials(&read(path)?)
                .map_err(|it| format!("use the credentials {}: {it}", path.display()))?,
            (None, None) => NatsLogin::None,
        };
        if let Some(ca) = &self.ca_file {
            read(ca)?;
        }
        let name = format!("headwater {}", self.name()?);
        Ok(NatsOptions { servers: self.servers.clone(), login, ca: self.ca_file.clone(), name })
    }
}

/// Checks the name of a node. The error is what is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
        return Err(format!(
            "must have 1 to {NAME_BYTES_MAX} letters, digits, hyphens, underscores and dots"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled() -> ClusterConfig {
        ClusterConfig { servers: vec!["nats://10.0.0.1:4222".to_owned()], ..ClusterConfig::default() }
    }

    #[test]
    fn wrong_values_are_named_with_the_reason() {
        assert_eq!(ClusterConfig::default().check(), Ok(()));
        assert_eq!(enabled().check(), Ok(()));
        let wrong: [(&str, ClusterConfig); 9] = [
            ("servers", ClusterConfig { node_name: Some("a".into()), ..ClusterConfig::default() }),
            ("servers", ClusterConfig { servers: vec!["10.0.0.1".into()], ..enabled() }),
            ("servers", ClusterConfig { servers: vec!["nats://me:secret@a".into()], ..enabled() }),
            (
                "key_file",
                ClusterConfig { key_file: Some("a".into()), credentials_file: Some("b".into()), ..enabled() },
            ),
            ("node_name", ClusterConfig { node_name: Some("a b".into()), ..enabled() }),
            ("addresses", ClusterConfig { addresses: vec!["http://a".into()], ..enabled() }),
            ("monitors", ClusterConfig { monitors: vec!["10.0.0.1:8222".into()], ..enabled() }),
            ("snapshot_bytes", ClusterConfig { snapshot_bytes: 1 << 30, ..enabled() }),
            ("snapshot_interval", ClusterConfig { snapshot_interval: Duration::ZERO, ..enabled() }),
        ];
        for (key, config) in wrong {
            let (at, reason) = config.check().unwrap_err();
            assert_eq!(at, key, "{reason}");
            assert!(!reason.contains("secret"), "{reason}");
        }
    }

    #[test]
    fn a_login_that_cannot_be_used_is_named_without_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.nk");
        let config = ClusterConfig { key_file: Some(path.clone()), ..enabled() };
        let error = config.nats().unwrap_err();
        assert!(error.contains("node.nk"), "{error}");
        fs::write(&path, "hunter2").unwrap();
        let error = config.nats().unwrap_err();
        assert!(error.contains("node.nk") && !error.contains("hunter2"), "{error}");
        let options = ClusterConfig { node_name: Some("attic".into()), ..enabled() }.nats().unwrap();
        assert_eq!(options.name, "headwater attic");
    }
}
