//! How to reach the NATS servers: their addresses, the login, and one connection to one of them.

use std::fmt;
use std::path::{PathBuf, absolute};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Auth, AuthError, Client, ConnectErrorKind, ConnectOptions, Event};
use nkeys::{KeyPair, KeyPairType};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Longest time for connecting to one server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval of pings. A server that does not answer three of them is lost.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// How to reach the NATS servers of a cluster.
#[derive(Debug, Clone)]
pub struct NatsOptions {
    /// Addresses as [`check_address`] accepts them; at least one.
    pub servers: Vec<String>,
    pub login: NatsLogin,
    /// A file with the certificates that sign those of the servers, instead of the authorities of the operating system.
    /// The connections have to use TLS then.
    pub ca: Option<PathBuf>,
    /// A name for the connections, which NATS shows to its operator.
    pub name: String,
}

/// The login at NATS. It prints itself without its keys.
#[derive(Clone, Default)]
pub enum NatsLogin {
    /// None, for servers that listen on loopback only.
    #[default]
    None,
    /// A key that the servers know.
    Key(Arc<KeyPair>),
    /// A signed user and its key.
    Credentials { jwt: String, key: Arc<KeyPair> },
}

/// The same with the keys in plain text, for another process of this node. It cannot be printed.
#[derive(Serialize, Deserialize)]
pub(crate) struct PlainNatsOptions {
    servers: Vec<String>,
    /// The seed of the key; `None` without a login.
    seed: Option<String>,
    /// Of credentials only.
    jwt: Option<String>,
    ca: Option<PathBuf>,
    name: String,
}

impl fmt::Debug for NatsLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Key(_) => "Key(…)",
            Self::Credentials { .. } => "Credentials(…)",
        })
    }
}

impl NatsLogin {
    /// Reads the contents of a file with the seed of a user's nkey, which begins with `SU`.
    pub fn from_seed(text: &str) -> Result<Self, &'static str> {
        let line = text.lines().map(str::trim).find(|it| !it.is_empty()).unwrap_or_default();
        Ok(Self::Key(Arc::new(user_key(line)?)))
    }

    /// Reads the contents of a credentials file, as the tool `nsc` writes it.
    pub fn from_credentials(text: &str) -> Result<Self, &'static str> {
        let jwt = section(text, "NATS USER JWT").ok_or("it has no section NATS USER JWT")?;
        let seed = section(text, "USER NKEY SEED").ok_or("it has no section USER NKEY SEED")?;
        Ok(Self::Credentials { jwt: jwt.to_owned(), key: Arc::new(user_key(seed)?) })
    }

    /// Answers the challenge of a server.
    fn sign(&self, nonce: &[u8]) -> Result<Auth, AuthError> {
        let sign = |key: &KeyPair| key.sign(nonce).map_err(|_| AuthError::new("the key cannot sign"));
        let mut auth = Auth::new();
        match self {
            Self::None => {}
            Self::Key(key) => {
                auth.nkey = Some(key.public_key());
                auth.signature = Some(sign(key)?);
            }
            Self::Credentials { jwt, key } => {
                auth.jwt = Some(jwt.clone());
                auth.signature = Some(sign(key)?);
            }
        }
        Ok(auth)
    }
}

fn user_key(seed: &str) -> Result<KeyPair, &'static str> {
    let key = KeyPair::from_seed(seed).map_err(|_| "invalid nkey seed")?;
    match key.key_pair_type() {
        KeyPairType::User => Ok(key),
        _ => Err("it is the seed of another kind of key; that of a user begins with `SU`"),
    }
}

/// Returns the line after the beginning of a section.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let begins = |it: &&str| it.contains("BEGIN") && it.contains(name);
    text.lines().map(str::trim).skip_while(|it| !begins(it)).nth(1).filter(|it| !it.is_empty())
}

/// Checks the address of a server: `nats://host:port` or `tls://host:port`; the port may be absent (4222).
pub fn check_address(address: &str) -> Result<(), &'static str> {
    let (scheme, host) = address.split_once("://").ok_or("it must begin with nats:// or tls://")?;
    if !matches!(scheme, "nats" | "tls") {
        return Err("it must begin with nats:// or tls://");
    }
    if host.contains('@') {
        return Err("it must not contain a user or password; use `key_file` or `credentials_file`");
    }
    let is_host = !host.is_empty() && !host.contains(['/', '?', '#', ' ']);
    if !is_host || address.parse::<async_nats::ServerAddr>().is_err() {
        return Err("it must be a host and a port, such as nats://10.0.0.1:4222");
    }
    Ok(())
}

impl NatsOptions {
    /// Returns the same with the keys in plain text. `None` if a key has no seed, or if the working folder is unknown: the
    /// paths of certificates are relative to it.
    pub(crate) fn to_plain(&self) -> Option<PlainNatsOptions> {
        let (key, jwt) = match &self.login {
            NatsLogin::None => (None, None),
            NatsLogin::Key(key) => (Some(key), None),
            NatsLogin::Credentials { jwt, key } => (Some(key), Some(jwt.clone())),
        };
        let seed = key.map(|it| it.seed()).transpose().ok()?;
        let ca = self.ca.as_ref().map(absolute).transpose().ok()?;
        Some(PlainNatsOptions { servers: self.servers.clone(), seed, jwt, ca, name: self.name.clone() })
    }

    /// Reads it back. `None`: the key is invalid.
    pub(crate) fn from_plain(plain: PlainNatsOptions) -> Option<Self> {
        let PlainNatsOptions { servers, seed, jwt, ca, name } = plain;
        let key = seed.map(|it| user_key(&it)).transpose().ok()?.map(Arc::new);
        let login = match (key, jwt) {
            (None, _) => NatsLogin::None,
            (Some(key), None) => NatsLogin::Key(key),
            (Some(key), Some(jwt)) => NatsLogin::Credentials { jwt, key },
        };
        Some(Self { servers, login, ca, name })
    }

    /// Connects to one server, once: the connection is never replaced by another one. `ended` is cancelled when it
    /// ends.
    pub(super) async fn connect(&self, server: &str, ended: CancellationToken) -> Result<Client, String> {
        let login = self.login.clone();
        let is_used = AtomicBool::new(false);
        // The library would reconnect, and send what is in its queues over the new connection. Its only attempt to do
        // so gets no login, so it fails before the server accepts anything, and the connection ends for good.
        let mut options = ConnectOptions::with_auth_callback(move |nonce| {
            let is_first = !is_used.swap(true, Ordering::Relaxed);
            let signed = if is_first { login.sign(&nonce) } else { Err(AuthError::new("not again")) };
            async move { signed }
        })
        .max_reconnects(1)
        .reconnect_delay_callback(|_| Duration::ZERO)
        .event_callback(move |event| {
            let ended = ended.clone();
            async move {
                match event {
                    Event::Disconnected | Event::Closed | Event::LameDuckMode => ended.cancel(),
                    Event::ServerError(error) => warn!("the NATS server reports: {error}"),
                    Event::Connected | Event::Draining | Event::SlowConsumer(_) | Event::ClientError(_) => {}
                }
            }
        })
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .ignore_discovered_servers()
        .name(&self.name);
        if let Some(ca) = &self.ca {
            options = options.add_root_certificates(ca.clone()).require_tls(true);
        }
        options.connect(server).await.map_err(|error| match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                format!("the NATS server {server} refuses the login: {error}")
            }
            _ => format!("the NATS server {server} cannot be reached: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_a_scheme() {
        for address in ["nats://10.0.0.1:4222", "tls://nats.example", "nats://[2001:db8::1]:4222", "nats://a"]
        {
            assert_eq!(check_address(address), Ok(()), "{address}");
        }
        for address in
            ["10.0.0.1:4222", "http://a", "nats://", "nats://u:p@a", "nats://a/b", "nats://a:x", "ws://a"]
        {
            assert!(check_address(address).is_err(), "{address}");
        }
    }

    #[test]
    fn logins_are_read_and_never_printed() {
        let key = KeyPair::new_user();
        let seed = key.seed().unwrap();
        let by_seed = NatsLogin::from_seed(&format!("\n{seed}\n")).unwrap();
        let text = format!(
            "-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------\n\nSecret.\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let by_credentials = NatsLogin::from_credentials(&text).unwrap();
        let printed = format!("{by_seed:?} {by_credentials:?}");
        assert!(!printed.contains(&seed) && !printed.contains("a.b.c"), "{printed}");
        let auth = by_credentials.sign(b"nonce").unwrap();
        assert_eq!(auth.jwt.as_deref(), Some("a.b.c"));
        key.verify(b"nonce", &auth.signature.unwrap()).unwrap();
        assert_eq!(by_seed.sign(b"nonce").unwrap().nkey, Some(key.public_key()));

        // Another process of the node gets them unchanged.
        for login in [NatsLogin::None, by_seed, by_credentials] {
            let options = NatsOptions {
                servers: vec!["nats://a".into()],
                login,
                ca: Some("/a.pem".into()),
                name: "a".into(),
            };
            let text = serde_json::to_string(&options.to_plain().unwrap()).unwrap();
            let read = NatsOptions::from_plain(serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(format!("{read:?}"), format!("{options:?}"));
            let keys = [&options, &read].map(|it| it.login.sign(b"nonce").unwrap());
            assert_eq!(keys[0].nkey, keys[1].nkey);
            assert_eq!(keys[0].jwt, keys[1].jwt);
            assert_eq!(keys[0].signature, keys[1].signature);
        }

        let account = KeyPair::new_account().seed().unwrap();
        for text in ["", "SU", "hello", &account, &key.public_key()] {
            let error = NatsLogin::from_seed(text).unwrap_err();
            assert!(text.is_empty() || !error.contains(text) || text == "SU", "{error}");
        }
        assert!(NatsLogin::from_credentials(&seed).is_err());
    }
}
