//! The keys of an archive, derived from a passphrase or from a key file.

use std::path::Path;
use std::{fmt, fs};

use argon2::{Algorithm, Argon2, Params, Version};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use domain::secret::Secret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::BackupError;
use super::manifest::KeyInfo;
use crate::engine::vault::{Vault, random};
use crate::error::Error;
use crate::log::{DataKey, LogKeys};

/// Cost of a guess of the passphrase. An archive can be attacked without limits, so a guess costs more than a login.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
const LANES: u32 = 1;
/// Highest costs that are accepted from an archive, which may be hostile.
const MEMORY_KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 10;
const LANES_MAX: u32 = 4;
/// Number of hexadecimal digits of the value by which a wrong key is recognised.
const CHECK_DIGITS: usize = 32;

/// The secret under which an archive is encrypted.
#[derive(Clone)]
pub enum BackupSecret {
    Passphrase(Secret),
    /// Content of a key file.
    KeyFile(Secret),
    /// The data keys of a cluster, for snapshots.
    DataKeys(LogKeys),
}

/// Prints without the secret.
impl fmt::Debug for BackupSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passphrase(_) => "Passphrase(…)",
            Self::KeyFile(_) => "KeyFile(…)",
            Self::DataKeys(_) => "DataKeys(…)",
        })
    }
}

impl BackupSecret {
    /// Reads the key file of an installation.
    pub fn from_key_file(path: &Path) -> Result<Self, BackupError> {
        let read = fs::read_to_string(path);
        let text = read.map_err(|error| {
            Error::Key(format!("failed to read the key file {}: {error}", path.display()))
        })?;
        Ok(Self::KeyFile(Secret::new(text)))
    }
}

/// The keys of one archive.
pub(crate) struct ArchiveKeys {
    pub(crate) vault: Vault,
    /// For the collections of full nodes in a snapshot. `None` if this node does not have that key.
    pub(crate) provider: Option<Vault>,
    authentication: [u8; 32],
}

impl ArchiveKeys {
    /// Chooses a new salt and derives the keys from it.
    pub(crate) fn new(secret: &BackupSecret) -> Result<(KeyInfo, Self), BackupError> {
        let salt: [u8; 16] = random()?;
        let master = match secret {
            BackupSecret::Passphrase(passphrase) => stretch(passphrase, &salt, MEMORY_KIB, PASSES, LANES)?,
            BackupSecret::KeyFile(text) => key_from_text(text, &salt),
            BackupSecret::DataKeys(keys) => key_from_data_key(keys.cluster.current().1, &salt),
        };
        let provider = match secret {
            BackupSecret::DataKeys(LogKeys { provider: Some(ring), .. }) => Some(ring.current()),
            BackupSecret::DataKeys(_) => {
                return Err(Error::Key("an edge node does not have all records".to_owned()).into());
            }
            _ => None,
        };
        let provider_vault = provider.map(|(_, key)| provider_vault(key, &salt));
        let (salt, check) = (HEXLOWER.encode(&salt), check_value(&master));
        let info = match secret {
            BackupSecret::Passphrase(_) => {
                KeyInfo::Passphrase { salt, memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES, check }
            }
            BackupSecret::KeyFile(_) => KeyInfo::KeyFile { salt, check },
            BackupSecret::DataKeys(keys) => {
                let provider = provider.map_or(0, |it| it.0);
                KeyInfo::DataKeys { salt, cluster: keys.cluster.generation(), provider, check }
            }
        };
        Ok((info, Self { provider: provider_vault, ..Self::from_master(&master) }))
    }

    /// Derives the keys of an existing archive, unless the secret is not that of the archive.
    pub(crate) fn derive(info: &KeyInfo, secret: &BackupSecret) -> Result<Self, BackupError> {
        let salt_of = |salt: &str| {
            HEXLOWER_PERMISSIVE
                .decode(salt.as_bytes())
                .ok()
                .ok_or_else(|| BackupError::Changed("the salt".to_owned()))
        };
        match (info, secret) {
            (KeyInfo::DataKeys { salt, cluster, provider, check }, BackupSecret::DataKeys(keys)) => {
                let salt = salt_of(salt)?;
                let missing = |generation: &u32| {
                    Error::Key(format!("this node does not have generation {generation} of the data key"))
                };
                let key = keys.cluster.key(*cluster).ok_or_else(|| missing(cluster))?;
                let master = key_from_data_key(key, &salt);
                if check_value(&master) != *check {
                    return Err(Error::Key("the data key is not that of the snapshot".to_owned()).into());
                }
                let provider = keys.provider.as_ref().map(|ring| {
                    let key = ring.key(*provider).ok_or_else(|| missing(provider));
                    key.map(|key| provider_vault(key, &salt))
                });
                Ok(Self { provider: provider.transpose()?, ..Self::from_master(&master) })
            }
            (KeyInfo::DataKeys { .. }, _) => Err(BackupError::IsSnapshot),
            (_, BackupSecret::DataKeys(_)) => Err(BackupError::NotASnapshot),
            (KeyInfo::Passphrase { .. }, BackupSecret::KeyFile(_)) => Err(BackupError::NeedsPassphrase),
            (KeyInfo::KeyFile { .. }, BackupSecret::Passphrase(_)) => Err(BackupError::NeedsKeyFile),
            (
                KeyInfo::Passphrase { salt, memory_kib, passes, lanes, check },
                BackupSecret::Passphrase(passphrase),
            ) => {
                if *memory_kib > MEMORY_KIB_MAX || *passes > PASSES_MAX || *lanes > LANES_MAX {
                    return Err(BackupError::Changed("the cost of the passphrase".to_owned()));
                }
                let master = stretch(passphrase, &salt_of(salt)?, *memory_kib, *passes, *lanes)?;
                (check_value(&master) == *check)
                    .then(|| Self::from_master(&master))
                    .ok_or(BackupError::WrongPassphrase)
            }
            (KeyInfo::KeyFile { salt, check }, BackupSecret::KeyFile(text)) => {
                let master = key_from_text(text, &salt_of(salt)?);
                (check_value(&master) == *check)
                    .then(|| Self::from_master(&master))
                    .ok_or(BackupError::WrongKeyFile)
            }
        }
    }

    fn from_master(master: &[u8; 32]) -> Self {
        let vault = Vault::new(&subkey(master, b"encryption"));
        Self { vault, provider: None, authentication: subkey(master, b"authentication") }
    }

    /// Returns the state of the authentication code over no bytes.
    pub(crate) fn authenticate(&self) -> Hmac<Sha256> {
        mac_of(&self.authentication)
    }
}

fn mac_of(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key of HMAC may have any length")
}

fn subkey(master: &[u8], purpose: &[u8]) -> [u8; 32] {
    let mut mac = mac_of(master);
    mac.update(b"headwater back-up ");
    mac.update(purpose);
    mac.finalize().into_bytes().into()
}

fn check_value(master: &[u8; 32]) -> String {
    HEXLOWER.encode(&subkey(master, b"check"))[..CHECK_DIGITS].to_owned()
}

fn key_from_data_key(key: &DataKey, salt: &[u8]) -> [u8; 32] {
    let mut mac = mac_of(&key.0);
    mac.update(b"headwater snapshot ");
    mac.update(salt);
    mac.finalize().into_bytes().into()
}

fn provider_vault(key: &DataKey, salt: &[u8]) -> Vault {
    Vault::new(&subkey(&key_from_data_key(key, salt), b"provider encryption"))
}

fn key_from_text(text: &Secret, salt: &[u8]) -> [u8; 32] {
    // An editor or a form may have added a line break.
    let mut mac = mac_of(text.expose().trim().as_bytes());
    mac.update(b"headwater back-up of a key file ");
    mac.update(salt);
    mac.finalize().into_bytes().into()
}

fn stretch(
    passphrase: &Secret,
    salt: &[u8],
    memory_kib: u32,
    passes: u32,
    lanes: u32,
) -> Result<[u8; 32], BackupError> {
    let wrong = |_| BackupError::Changed("the cost of the passphrase".to_owned());
    let params = Params::new(memory_kib, passes, lanes, Some(32)).map_err(wrong)?;
    let mut key = [0; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.expose().as_bytes(), salt, &mut key)
        .map_err(wrong)?;
    Ok(key)
}
