//! Repositories of plugins: what an admin added, and the manifests that repositories publish.
//!
//! Shapes: `manifest.json` of <https://github.com/Dispatcharr/Plugins> (branch `releases`), with a list of plugins, and the
//! manifest of each plugin that it names, with its versions. Both are `{"manifest": …, "signature": …}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PluginKey;

/// Key of the core setting with the [`PluginRepositories`]. The interface does not list it.
pub const REPOSITORIES_KEY: &str = "plugin_repositories";
/// Maximum number of repositories.
pub const REPOSITORIES_MAX: usize = 20;
/// Maximum number of plugins of a repository, and of versions of a plugin, that are read.
const PLUGINS_MAX: usize = 2_000;
const VERSIONS_MAX: usize = 500;
/// Maximum number of described faults.
const FAULTS_MAX: usize = 20;
/// Maximum length of a name and of a longer text, in characters, and of an address in bytes.
const NAME_CHARS_MAX: usize = 128;
const TEXT_CHARS_MAX: usize = 1_000;
const ADDRESS_BYTES_MAX: usize = 2_048;

/// The repositories that admins added.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginRepositories {
    /// Ids are never used again.
    pub last_id: u32,
    pub repositories: Vec<PluginRepository>,
    /// Where installed plugins came from.
    pub installed: BTreeMap<PluginKey, InstalledFrom>,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginRepository {
    pub id: u32,
    /// Address of its manifest.
    pub url: String,
    /// As it states it.
    pub name: String,
    /// The OpenPGP key that an admin accepted, armored; empty if none was.
    pub public_key: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
    pub fetched_at: Option<i64>,
    /// Why the last fetch failed; empty if it did not.
    pub error: String,
    pub signature: RepositorySignature,
}

/// The result of checking the signature of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepositorySignature {
    /// Made with the key that the admin accepted.
    Verified,
    /// It has one, but no key was accepted.
    NotChecked,
    #[default]
    NotSigned,
}

/// Where a plugin came from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InstalledFrom {
    pub repository: u32,
    pub slug: String,
}

impl PluginRepositories {
    /// Reads the value of the setting.
    pub fn from_setting(value: Option<&Value>) -> Self {
        value.and_then(|it| serde_json::from_value(it.clone()).ok()).unwrap_or_default()
    }

    pub fn get(&self, id: u32) -> Option<&PluginRepository> {
        self.repositories.iter().find(|it| it.id == id)
    }

    /// Returns the installed plugin that came from here.
    pub fn installed_as(&self, repository: u32, slug: &str) -> Option<&PluginKey> {
        let is_it = |it: &InstalledFrom| it.repository == repository && it.slug == slug;
        self.installed.iter().find(|it| is_it(it.1)).map(|it| it.0)
    }
}

/// The list of plugins that a repository publishes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepositoryManifest {
    pub name: String,
    /// Relative addresses begin here; empty if the manifest names no such address.
    pub root: String,
    pub plugins: Vec<OfferedPlugin>,
    /// Entries that are left out, each with the reason.
    pub faults: Vec<String>,
}

/// A plugin in the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfferedPlugin {
    /// Unique in the repository.
    pub slug: String,
    pub name: String,
    pub description: String,
    pub author: String,
    pub license: String,
    /// Address of the manifest with all versions; empty if there is none.
    pub manifest_url: String,
    pub is_deprecated: bool,
    pub latest: Option<OfferedVersion>,
}

/// A version that can be installed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfferedVersion {
    pub version: String,
    /// Address of the archive, which may be relative.
    pub url: String,
    /// In lower case.
    pub sha256: String,
    /// Lowest version of the reference that it runs on, as stated; empty if none is.
    pub min_version: String,
    pub released_at: String,
    pub is_prerelease: bool,
}

/// A manifest that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryFault {
    #[error("the manifest of the repository is not valid JSON")]
    Json,
    #[error("the manifest of the repository has no list of plugins")]
    NoPlugins,
    #[error("the manifest of the plugin has no list of versions")]
    NoVersions,
}

/// Returns the signed part of a document.
fn payload(document: &Value) -> &Value {
    document.get("manifest").filter(|it| it.is_object()).unwrap_or(document)
}

impl RepositoryManifest {
    /// Reads the manifest of a repository. A damaged entry costs only itself.
    ///
    /// # Errors
    /// It is not JSON, or has no list of plugins.
    pub fn read(content: &[u8]) -> Result<Self, RepositoryFault> {
        let document: Value = serde_json::from_slice(content).map_err(|_| RepositoryFault::Json)?;
        let payload = payload(&document);
        let entries = payload.get("plugins").and_then(Value::as_array).ok_or(RepositoryFault::NoPlugins)?;
        let mut manifest = Self {
            name: first_text(&[payload, &document], &["registry_name", "repo_name", "name"], NAME_CHARS_MAX),
            root: address(payload, "root_url"),
            ..Self::default()
        };
        for (n, entry) in entries.iter().enumerate() {
            match offered(entry) {
                Ok(it) if manifest.plugins.iter().any(|known| known.slug == it.slug) => {
                    manifest.add_fault(n, "its slug is that of an earlier entry");
                }
                Ok(_) if manifest.plugins.len() >= PLUGINS_MAX => {
                    manifest.add_fault(n, "the list is too long");
                    break;
                }
                Ok(it) => manifest.plugins.push(it),
                Err(reason) => manifest.add_fault(n, reason),
            }
        }
        Ok(manifest)
    }

    fn add_fault(&mut self, n: usize, reason: &str) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(format!("Left entry {} of the list out: {reason}.", n + 1));
        }
    }
}

/// Reads the manifest of a plugin: its versions, the latest one first as listed. Those that cannot be installed are left out.
///
/// # Errors
/// It is not JSON, or has no list of versions.
pub fn offered_versions(content: &[u8]) -> Result<Vec<OfferedVersion>, RepositoryFault> {
    let document: Value = serde_json::from_slice(content).map_err(|_| RepositoryFault::Json)?;
    let listed = payload(&document).get("versions").and_then(Value::as_array);
    let listed = listed.ok_or(RepositoryFault::NoVersions)?;
    Ok(listed.iter().take(VERSIONS_MAX).filter_map(|it| version(it, "")).collect())
}

fn offered(entry: &Value) -> Result<OfferedPlugin, &'static str> {
    let slug = text(entry, "slug", NAME_CHARS_MAX);
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if slug.is_empty() {
        return Err("it has no slug");
    }
    if !slug.chars().all(is_plain) || slug.starts_with('.') {
        return Err("its slug has other characters than letters, digits, hyphens, underscores and dots");
    }
    let (manifest_url, latest) = (address(entry, "manifest_url"), version(entry, "latest_"));
    if manifest_url.is_empty() && latest.is_none() {
        return Err("it names neither its manifest nor an archive with a SHA-256 checksum");
    }
    let name = text(entry, "name", NAME_CHARS_MAX);
    Ok(OfferedPlugin {
        name: if name.is_empty() { slug.clone() } else { name },
        description: text(entry, "description", TEXT_CHARS_MAX),
        author: text(entry, "author", NAME_CHARS_MAX),
        license: text(entry, "license", NAME_CHARS_MAX),
        is_deprecated: entry.get("deprecated").and_then(Value::as_bool).unwrap_or(false),
        slug,
        manifest_url,
        latest,
    })
}

/// Reads a version whose members begin with a prefix in the list. Without a valid checksum there is none.
fn version(entry: &Value, prefix: &str) -> Option<OfferedVersion> {
    let named = |name: &str| format!("{prefix}{name}");
    let first =
        |names: [String; 2]| names.iter().map(|it| text(entry, it, NAME_CHARS_MAX)).find(|it| !it.is_empty());
    let sha256 = first([named("sha256"), named("checksum_sha256")])?.to_ascii_lowercase();
    let is_checksum = sha256.len() == 64 && sha256.bytes().all(|it| it.is_ascii_hexdigit());
    let version = OfferedVersion {
        version: text(entry, &named("version"), NAME_CHARS_MAX),
        url: address(entry, &named("url")),
        sha256,
        min_version: text(entry, "min_dispatcharr_version", NAME_CHARS_MAX),
        released_at: first(["build_timestamp".to_owned(), "last_updated".to_owned()]).unwrap_or_default(),
        is_prerelease: entry.get("prerelease").and_then(Value::as_bool).unwrap_or(false),
    };
    (is_checksum && !version.version.is_empty() && !version.url.is_empty()).then_some(version)
}

fn text(entry: &Value, name: &str, chars_max: usize) -> String {
    let text = entry.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    text.chars().filter(|it| !it.is_control()).take(chars_max).collect()
}

fn first_text(entries: &[&Value], names: &[&str], chars_max: usize) -> String {
    let mut texts = entries.iter().flat_map(|entry| names.iter().map(|it| text(entry, it, chars_max)));
    texts.find(|it| !it.is_empty()).unwrap_or_default()
}

fn address(entry: &Value, name: &str) -> String {
    let address = entry.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    let is_valid =
        address.len() <= ADDRESS_BYTES_MAX && !address.contains(|it: char| it.is_control() || it == ' ');
    if is_valid { address.to_owned() } else { String::new() }
}

/// Returns the part of a document that its signature is about, as the tools of repositories sign it: the member `manifest`
/// without space between its parts. `None` if there is no such member.
pub fn signed_part(document: &str) -> Option<String> {
    let start = member(document, "manifest")?;
    let (mut depth, mut is_text, mut is_escaped, mut part) = (0_usize, false, false, String::new());
    for it in document[start..].chars() {
        if is_text {
            part.push(it);
            (is_text, is_escaped) = (is_escaped || it != '"', !is_escaped && it == '\\');
            continue;
        }
        match it {
            '"' => is_text = true,
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.checked_sub(1)?,
            _ if it.is_ascii_whitespace() => continue,
            _ => {}
        }
        part.push(it);
        if depth == 0 {
            return part.starts_with('{').then_some(part);
        }
    }
    None
}

/// Returns where the value of a member of the outermost object begins.
fn member(document: &str, name: &str) -> Option<usize> {
    let (mut depth, mut text_start, mut is_escaped, mut last) = (0_usize, None, false, None);
    for (at, it) in document.char_indices() {
        if let Some(start) = text_start {
            if is_escaped {
                is_escaped = false;
            } else if it == '\\' {
                is_escaped = true;
            } else if it == '"' {
                (last, text_start) = (Some(&document[start..at]), None);
            }
            continue;
        }
        match it {
            '"' => text_start = Some(at + 1),
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.checked_sub(1)?,
            ':' if depth == 1 && last == Some(name) => {
                let rest = &document[at + 1..];
                return Some(at + 1 + (rest.len() - rest.trim_start().len()));
            }
            _ => {}
        }
    }
    None
}

/// Returns the armored signature of a document; `None` without one.
pub fn signature_of(document: &str) -> Option<String> {
    let document: Value = serde_json::from_str(document).ok()?;
    let signature = document.get("signature")?.as_str()?;
    (!signature.trim().is_empty()).then(|| signature.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plugin(slug: &str, more: &Value) -> Value {
        let mut entry = json!({
            "slug": slug, "name": "Demo", "description": "d", "author": "a", "license": "MIT",
            "manifest_url": "https://example.com/demo.json", "latest_version": "1.2.0",
            "latest_sha256": "AB".repeat(32), "latest_url": "demo-1.2.0/demo-1.2.0.zip",
        });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    }

    #[test]
    fn a_repository_lists_its_plugins_and_a_damaged_entry_costs_only_itself() {
        let document = json!({ "generated_at": "2026-10-08T21:21:23Z", "manifest": {
            "registry_name": "Me/Plugins", "root_url": "https://example.com/download",
            "plugins": [
                plugin("demo", &json!({})), null, 7, json!({ "name": "x" }), plugin("../x", &json!({})),
                plugin("demo", &json!({})), json!({ "slug": "bare" }),
                plugin("old", &json!({ "deprecated": true, "latest_sha256": "short", "name": "\u{7}" })),
            ],
        } });
        let read = RepositoryManifest::read(document.to_string().as_bytes()).unwrap();
        assert_eq!((&*read.name, &*read.root), ("Me/Plugins", "https://example.com/download"));
        assert_eq!(read.plugins.iter().map(|it| &*it.slug).collect::<Vec<_>>(), ["demo", "old"]);
        assert_eq!(read.faults.len(), 6, "{:?}", read.faults);
        let latest = read.plugins[0].latest.as_ref().unwrap();
        assert_eq!((&*latest.version, &*latest.sha256), ("1.2.0", &*"ab".repeat(32)));
        let old = &read.plugins[1];
        assert_eq!(
            (&*old.name, old.is_deprecated, &old.latest),
            ("old", true, &None),
            "no checksum, no archive"
        );
        for wrong in [&b"<html>"[..], b"", b"[]", b"{\"manifest\":{}}", b"{\"plugins\":{}}"] {
            assert!(RepositoryManifest::read(wrong).is_err());
        }
    }

    #[test]
    fn versions_without_an_archive_or_a_checksum_are_left_out() {
        let version = |number: &str, sha256: &str| json!({ "version": number, "url": "x.zip", "checksum_sha256": sha256, "min_dispatcharr_version": "v0.20.0" });
        let sum = "0".repeat(64);
        let document = json!({ "manifest": { "versions": [version("2", &sum), version("1", "no"), {}, version("", &sum)] } });
        let read = offered_versions(document.to_string().as_bytes()).unwrap();
        assert_eq!((read.len(), &*read[0].version, &*read[0].min_version), (1, "2", "v0.20.0"));
        assert_eq!(offered_versions(b"{}"), Err(RepositoryFault::NoVersions));
        assert_eq!(offered_versions(b"{"), Err(RepositoryFault::Json));
    }

    #[test]
    fn the_signed_part_has_no_space_between_its_parts_and_keeps_that_in_texts() {
        let document = "{ \"x\": {\"manifest\": 1}, \"t\": \"\\\"manifest\\\": {\",\n \"manifest\": {\n \"b\": \"a  \\\" }\",\n \"a\": [1, 2]\n },\n \"signature\": \"s\" }";
        assert_eq!(signed_part(document).as_deref(), Some("{\"b\":\"a  \\\" }\",\"a\":[1,2]}"));
        assert_eq!(signature_of(document).as_deref(), Some("s"));
        for without in
            ["{}", "[]", "", "{\"manifest\":", "{\"manifest\": [1]}", "}{", "{\"manifest\": \"x\"}"]
        {
            assert_eq!(signed_part(without), None, "{without}");
        }
    }
}
