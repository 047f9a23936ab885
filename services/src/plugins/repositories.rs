//! Repositories of plugins: adding them, their lists, and archives that are checked before they are installed.
//!
//! What admins added is a setting that the interface of settings does not have. The lists are fetched when they are asked
//! for, and kept in memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, Write as _};
use std::time::Duration;

use actors::{Fetch, FetchBody, FetchError, FetchLimits, now_ms};
use data_encoding::HEXLOWER;
use domain::egress::{AllowedNetworks, Distance, Reach};
use domain::plugin::PluginKey;
use domain::plugin::repository::{
    InstalledFrom, OfferedPlugin, OfferedVersion, PluginRepositories, PluginRepository, REPOSITORIES_KEY,
    REPOSITORIES_MAX, RepositoryFault, RepositoryManifest, RepositorySignature, offered_versions,
    signature_of, signed_part,
};
use domain::setting::CoreSetting;
use domain::stream::RequestHeaders;
use media::spawn_blocking;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use storage::{Models, Write};
use tokio::time::timeout;
use url::Url;

use super::offers::Failures;
pub use super::offers::Offer;
use super::signature::{WrongKey, check_key, is_signed_by};
use crate::files::Files;

/// Maximum size of a manifest and of an archive, in bytes.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;
const ARCHIVE_BYTES_MAX: u64 = 200 << 20;
/// Maximum length of the address of a repository, in bytes.
const ADDRESS_BYTES_MAX: usize = 1_024;
/// Maximum time for a manifest that one request asks for.
const MANIFEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a request about repositories fails. No text contains the address of a repository.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    #[error("The address must be an http or https address.")]
    Address,
    #[error("The public key {0}.")]
    Key(#[from] WrongKey),
    #[error("The repository exists already.")]
    Exists,
    #[error("There are {REPOSITORIES_MAX} repositories already.")]
    TooMany,
    #[error("There is no repository with this id.")]
    Unknown,
    #[error("The repository has no plugin \"{0}\".")]
    NoPlugin(String),
    #[error("The repository has no version {0} of this plugin with a checksum.")]
    NoVersion(String),
    #[error("The repository does not answer: {0}.")]
    Fetch(String),
    #[error("{}.", capitalised(.0))]
    Manifest(#[from] RepositoryFault),
    #[error("The manifest is not signed, although a public key was accepted for the repository.")]
    NotSigned,
    #[error("The signature of the manifest is not that of the accepted public key.")]
    WrongSignature,
    #[error("The archive has another SHA-256 checksum than the repository states. Nothing was installed.")]
    WrongChecksum,
    #[error("The archive cannot be stored: {0}.")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] storage::Error),
}

fn capitalised(fault: &RepositoryFault) -> String {
    let text = fault.to_string();
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

impl From<FetchError> for RepositoryError {
    fn from(error: FetchError) -> Self {
        Self::Fetch(error.with_causes())
    }
}

/// A list as it was fetched.
#[derive(Clone, Debug)]
struct Listed {
    manifest: RepositoryManifest,
    /// The address of the manifest, from which relative addresses begin.
    url: Url,
    /// The network of the server.
    origin: Distance,
    fetched_at: i64,
}

/// An archive whose checksum is right, at its beginning.
pub struct CheckedArchive {
    pub file: File,
    /// Name of the archive, from which plugins without a folder have their key.
    pub name: String,
}

/// The repositories that admins added.
pub struct Repositories {
    models: Models,
    fetch: Fetch,
    /// Has archives while they are checked.
    files: Files,
    lists: Mutex<HashMap<u32, Listed>>,
    pub(super) failures: Failures,
}

/// Returns a client with these limits.
fn limited(fetch: &Fetch, bytes_max: u64, total_timeout: Duration) -> Fetch {
    let limits = FetchLimits {
        connect_timeout: Duration::from_secs(10),
        read_timeout: Duration::from_secs(30),
        total_timeout,
        bytes_max,
    };
    fetch.clone().within(limits)
}

impl Repositories {
    pub fn new(models: Models, fetch: Fetch, files: Files) -> Self {
        Self { models, fetch, files, lists: Mutex::default(), failures: Failures::default() }
    }

    /// Returns what is stored.
    pub fn stored(&self) -> PluginRepositories {
        let settings = self.models.settings.load();
        PluginRepositories::from_setting(settings.one_by("key", REPOSITORIES_KEY).map(|it| &it.value))
    }

    /// Returns what the last list of a repository left out, and the number of its plugins. `None` if it was not fetched yet.
    pub fn listed(&self, id: u32) -> Option<(usize, Vec<String>)> {
        let lists = self.lists.lock();
        lists.get(&id).map(|it| (it.manifest.plugins.len(), it.manifest.faults.clone()))
    }

    /// Adds a repository whose list can be read.
    ///
    /// # Errors
    /// It cannot, or the address or the key is wrong. Nothing is stored.
    pub async fn add(&self, url: &str, public_key: &str) -> Result<PluginRepository, RepositoryError> {
        let (url, public_key) = (url.trim(), public_key.trim());
        let is_web = |it: &Url| matches!(it.scheme(), "http" | "https") && it.has_host();
        let is_valid = url.len() <= ADDRESS_BYTES_MAX && Url::parse(url).is_ok_and(|it| is_web(&it));
        if !is_valid {
            return Err(RepositoryError::Address);
        }
        if !public_key.is_empty() {
            check_key(public_key)?;
        }
        let new = PluginRepository {
            url: url.to_owned(),
            public_key: public_key.to_owned(),
            created_at: now_ms(),
            ..PluginRepository::default()
        };
        let (listed, signature) = self.read(&new).await?;
        let new =
            PluginRepository { name: named(&listed), fetched_at: Some(listed.fetched_at), signature, ..new };
        let added = self.change(move |stored| {
            if stored.repositories.iter().any(|it| it.url == new.url) {
                return Err(RepositoryError::Exists);
            }
            if stored.repositories.len() >= REPOSITORIES_MAX {
                return Err(RepositoryError::TooMany);
            }
            stored.last_id += 1;
            let new = PluginRepository { id: stored.last_id, ..new };
            stored.repositories.push(new.clone());
            Ok(new)
        });
        let added = added.await?;
        self.lists.lock().insert(added.id, listed);
        Ok(added)
    }

    /// Removes a repository. Its plugins stay.
    ///
    /// # Errors
    /// There is none with this id.
    pub async fn remove(&self, id: u32) -> Result<(), RepositoryError> {
        self.change(move |stored| {
            let n = stored.repositories.len();
            stored.repositories.retain(|it| it.id != id);
            stored.installed.retain(|_, it| it.repository != id);
            if stored.repositories.len() == n { Err(RepositoryError::Unknown) } else { Ok(()) }
        })
        .await?;
        self.lists.lock().remove(&id);
        self.failures.forget(id);
        Ok(())
    }

    /// Fetches the list of a repository, and notes the result. The earlier list stays if that fails.
    ///
    /// # Errors
    /// It cannot be read, or its signature is wrong.
    pub async fn refresh(&self, id: u32) -> Result<PluginRepository, RepositoryError> {
        self.refresh_within(id, MANIFEST_TIMEOUT).await
    }

    /// Does the same within this time.
    pub(super) async fn refresh_within(
        &self,
        id: u32,
        limit: Duration,
    ) -> Result<PluginRepository, RepositoryError> {
        let known = self.stored().get(id).cloned().ok_or(RepositoryError::Unknown)?;
        // For a request that its client gives up.
        self.failures.note(id, true);
        let read = timeout(limit, self.read(&known)).await.unwrap_or_else(|_| {
            Err(RepositoryError::Fetch(format!("it took longer than {} s", limit.as_secs())))
        });
        self.failures.note(id, read.is_err());
        let noted = match &read {
            Ok((listed, signature)) => PluginRepository {
                name: named(listed),
                fetched_at: Some(listed.fetched_at),
                error: String::new(),
                signature: *signature,
                ..known
            },
            Err(error) => PluginRepository { error: error.to_string(), ..known },
        };
        if let Ok((listed, _)) = &read {
            self.lists.lock().insert(id, listed.clone());
        }
        let result = noted.clone();
        self.change(move |stored| {
            stored.repositories.iter_mut().filter(|it| it.id == id).for_each(|it| it.clone_from(&noted));
            Ok(())
        })
        .await?;
        read.map(|_| result)
    }

    /// Returns when the list of a repository was fetched last, since the start.
    pub(super) fn fetched_at(&self, id: u32) -> Option<i64> {
        self.lists.lock().get(&id).map(|it| it.fetched_at)
    }

    /// Returns the plugins of the last list of a repository.
    pub(super) fn plugins(&self, id: u32) -> Vec<OfferedPlugin> {
        self.lists.lock().get(&id).map(|it| it.manifest.plugins.clone()).unwrap_or_default()
    }

    /// Lists the versions of a plugin that can be installed, the latest one first.
    ///
    /// # Errors
    /// The repository or the plugin is unknown, or a manifest cannot be read.
    pub async fn versions(&self, id: u32, slug: &str) -> Result<Vec<OfferedVersion>, RepositoryError> {
        let (repository, listed, plugin) = self.offer(id, slug).await?;
        if plugin.manifest_url.is_empty() {
            return Ok(plugin.latest.into_iter().collect());
        }
        let (content, _) = self.manifest(&listed.address(&plugin.manifest_url)?, listed.reach()).await?;
        let (_, content) = check_signature(&repository, content)?;
        let mut versions = offered_versions(content.as_bytes())?;
        if let Some(latest) =
            plugin.latest.filter(|it| versions.iter().all(|known| known.version != it.version))
        {
            versions.insert(0, latest);
        }
        Ok(versions)
    }

    /// Fetches the archive of a version, the latest one without a number, and checks it.
    ///
    /// # Errors
    /// It is unknown, cannot be fetched, or has another checksum.
    pub async fn archive(
        &self,
        id: u32,
        slug: &str,
        version: Option<&str>,
    ) -> Result<CheckedArchive, RepositoryError> {
        let (_, listed, plugin) = self.offer(id, slug).await?;
        let is_wanted = |it: &OfferedVersion| version.is_none_or(|wanted| it.version == wanted);
        let wanted = match plugin.latest.filter(&is_wanted) {
            Some(latest) => latest,
            None => {
                let versions = self.versions(id, slug).await?;
                let unknown = || RepositoryError::NoVersion(version.unwrap_or("at all").to_owned());
                versions.into_iter().find(|it| is_wanted(it)).ok_or_else(unknown)?
            }
        };
        let url = listed.address(&wanted.url)?;
        let fetch = limited(&self.fetch, ARCHIVE_BYTES_MAX, Duration::from_secs(600));
        let mut body = fetch.get(url.as_str(), &RequestHeaders::default(), listed.reach()).await?;
        let files = self.files.clone();
        let file = spawn_blocking(move || files.unnamed()).await;
        let mut file = file.map_err(|error| io::Error::other(error.to_string()))??;
        let mut hash = Sha256::new();
        while let Some(piece) = body.next().await? {
            hash.update(&piece);
            let written = spawn_blocking(move || file.write_all(&piece).map(|()| file)).await;
            file = written.map_err(|error| io::Error::other(error.to_string()))??;
        }
        if HEXLOWER.encode(&hash.finalize()) != wanted.sha256 {
            return Err(RepositoryError::WrongChecksum);
        }
        file.rewind()?;
        Ok(CheckedArchive { file, name: format!("{slug}.zip") })
    }

    /// Notes where an installed plugin came from.
    ///
    /// # Errors
    /// The store fails.
    pub async fn note_installed(&self, key: PluginKey, id: u32, slug: &str) -> Result<(), RepositoryError> {
        let from = InstalledFrom { repository: id, slug: slug.to_owned() };
        self.change(move |stored| {
            stored.installed.retain(|_, it| *it != from);
            stored.installed.insert(key, from);
            Ok(())
        })
        .await
    }

    /// Returns a plugin with the list that it is in, which is fetched if it is missing.
    async fn offer(
        &self,
        id: u32,
        slug: &str,
    ) -> Result<(PluginRepository, Listed, OfferedPlugin), RepositoryError> {
        let repository = self.stored().get(id).cloned().ok_or(RepositoryError::Unknown)?;
        let known = self.lists.lock().get(&id).cloned();
        let listed = match known {
            Some(listed) => listed,
            None => {
                self.refresh(id).await?;
                self.lists.lock().get(&id).cloned().ok_or(RepositoryError::Unknown)?
            }
        };
        let plugin = listed.manifest.plugins.iter().find(|it| it.slug == slug).cloned();
        let plugin = plugin.ok_or_else(|| RepositoryError::NoPlugin(slug.to_owned()))?;
        Ok((repository, listed, plugin))
    }

    async fn read(
        &self,
        repository: &PluginRepository,
    ) -> Result<(Listed, RepositorySignature), RepositoryError> {
        let url = Url::parse(&repository.url).map_err(|_| RepositoryError::Address)?;
        // An admin typed the address.
        let (content, origin) = self.manifest(&url, Reach::default()).await?;
        let (signature, content) = check_signature(repository, content)?;
        let manifest = RepositoryManifest::read(content.as_bytes())?;
        Ok((Listed { manifest, url, origin, fetched_at: now_ms() }, signature))
    }

    /// Fetches a manifest.
    async fn manifest(&self, url: &Url, reach: Reach) -> Result<(String, Distance), RepositoryError> {
        let fetch = limited(&self.fetch, MANIFEST_BYTES_MAX, MANIFEST_TIMEOUT);
        let body: FetchBody = fetch.get(url.as_str(), &RequestHeaders::default(), reach).await?;
        let origin = body.origin().unwrap_or(Distance::Public);
        let content = String::from_utf8(body.whole().await?).map_err(|_| RepositoryFault::Json)?;
        Ok((content, origin))
    }

    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut PluginRepositories) -> Result<T, RepositoryError> + Send + 'static,
    ) -> Result<T, RepositoryError> {
        let written = self.models.store.write(move |write: &mut Write<'_>| {
            let known = write.by::<CoreSetting>("key", REPOSITORIES_KEY)?.pop();
            let mut stored = PluginRepositories::from_setting(known.as_ref().map(|it| &it.value));
            let result = change(&mut stored)?;
            let id = known.map_or_else(|| write.next_id::<CoreSetting>(), |it| Ok(it.id))?;
            let value = serde_json::to_value(&stored).unwrap_or_default();
            let name = "Plugin repositories".to_owned();
            write.put(&CoreSetting { id, key: REPOSITORIES_KEY.to_owned(), name, value })?;
            Ok::<T, RepositoryError>(result)
        });
        written.await
    }
}

impl Listed {
    /// Returns the address of what the manifest names.
    fn address(&self, named: &str) -> Result<Url, RepositoryError> {
        let wrong = |_| RepositoryError::Fetch("it names an invalid address".to_owned());
        if self.manifest.root.is_empty() {
            return self.url.join(named).map_err(wrong);
        }
        // A root without a slash at its end is a folder too.
        let root = format!("{}/", self.manifest.root.trim_end_matches('/'));
        self.url.join(&root).and_then(|it| it.join(named)).map_err(wrong)
    }

    /// Returns how far the addresses in the manifest may lead: no nearer than its server.
    fn reach(&self) -> Reach {
        Reach::named_by(self.origin, AllowedNetworks::OfPlaylist)
    }
}

fn named(listed: &Listed) -> String {
    match listed.manifest.name.is_empty() {
        true => listed.url.host_str().unwrap_or_default().to_owned(),
        false => listed.manifest.name.clone(),
    }
}

/// Checks the signature of a manifest, if an admin accepted a key of the repository. Returns the text to read: with a key, the
/// part that is signed, so that nothing else of the document counts.
fn check_signature(
    repository: &PluginRepository,
    content: String,
) -> Result<(RepositorySignature, String), RepositoryError> {
    let signature = signature_of(&content);
    if repository.public_key.is_empty() {
        let is_signed = signature.is_some();
        let result = if is_signed { RepositorySignature::NotChecked } else { RepositorySignature::NotSigned };
        return Ok((result, content));
    }
    let signature = signature.ok_or(RepositoryError::NotSigned)?;
    let part = signed_part(&content).ok_or(RepositoryError::WrongSignature)?;
    let is_signed = |text: &str| is_signed_by(&repository.public_key, &signature, text.as_bytes());
    // The tools of repositories sign a line.
    if is_signed(&format!("{part}\n")) || is_signed(&part) {
        Ok((RepositorySignature::Verified, part))
    } else {
        Err(RepositoryError::WrongSignature)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plugins::signature::{ED25519_SAMPLE, SIGNED};

    #[test]
    fn addresses_of_a_manifest_lead_no_nearer_than_its_server() {
        let listed = |root: &str, origin: Distance| Listed {
            manifest: RepositoryManifest { root: root.to_owned(), ..RepositoryManifest::default() },
            url: Url::parse("https://example.com/plugins/manifest.json").unwrap(),
            origin,
            fetched_at: 0,
        };
        for (root, named, expected) in [
            ("", "demo.zip", "https://example.com/plugins/demo.zip"),
            (
                "https://cdn.example/download",
                "demo-1/demo.zip",
                "https://cdn.example/download/demo-1/demo.zip",
            ),
            ("https://cdn.example/download/", "https://other.example/x.zip", "https://other.example/x.zip"),
        ] {
            assert_eq!(listed(root, Distance::Public).address(named).unwrap().as_str(), expected);
        }
        let near = "127.0.0.1".parse().unwrap();
        assert!(listed("", Distance::Public).reach().check(near).is_err());
        assert!(listed("", Distance::Loopback).reach().check(near).is_ok());
    }

    #[test]
    fn with_an_accepted_key_only_its_signature_is_taken() {
        let [key, signature] = ED25519_SAMPLE;
        let repository =
            |key: &str| PluginRepository { public_key: key.to_owned(), ..PluginRepository::default() };
        let document = |signature: Option<&str>| {
            let signature = json!(signature);
            format!(
                "{{\"generated_at\": \"x\",\n \"manifest\": {},\n \"signature\": {signature}}}",
                SIGNED.trim_end()
            )
        };
        let check_all = |key: &str, document: &str| check_signature(&repository(key), document.to_owned());
        let check = |key: &str, document: &str| check_all(key, document).map(|it| it.0);
        let signed = document(Some(signature));
        assert_eq!(check(key, &signed).unwrap(), RepositorySignature::Verified);
        assert_eq!(check("", &signed).unwrap(), RepositorySignature::NotChecked);
        assert_eq!(check("", &document(None)).unwrap(), RepositorySignature::NotSigned);
        assert!(matches!(check(key, &document(None)), Err(RepositoryError::NotSigned)));
        let changed = signed.replace("Signed", "Forged");
        assert!(matches!(check(key, &changed), Err(RepositoryError::WrongSignature)));
        assert!(matches!(check(key, &document(Some("none"))), Err(RepositoryError::WrongSignature)));
        // A second member with this name, which readers of JSON take for the first one.
        for name in ["manifest", "\\u006danifest"] {
            let twice = signed.replacen('{', "{\"plugins\": [7], ", 1);
            let twice = format!("{}, \"{name}\": {{\"plugins\": [8]}}}}", twice.trim_end_matches('}'));
            let (result, read) = check_all(key, &twice).unwrap();
            assert_eq!((result, &*read), (RepositorySignature::Verified, SIGNED.trim_end()), "{twice}");
        }
    }
}
