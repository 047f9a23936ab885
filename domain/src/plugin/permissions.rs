//! Permissions of plugins.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::faults::Faults;
use super::scope::{ApiArea, ApiScope};
use super::texts::text_list;

/// Maximum number of entries in one list of permissions.
const ENTRIES_MAX: usize = 64;

/// Rights of a plugin besides computing and using its own files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Whether the manifest lists permissions. A plugin that lists none uses the API and the network as it likes.
    pub is_declared: bool,
    pub api: ApiAccess,
    /// Connections to any host.
    pub network: bool,
    /// TCP ports that it may accept connections at.
    pub listen: BTreeSet<u16>,
    /// Names of programs that it may start.
    pub programs: BTreeSet<String>,
    pub files: BTreeSet<FileAccess>,
}

/// The use of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiAccess {
    /// Everything except back-ups, for plugins without declared permissions.
    Full,
    Scopes(BTreeSet<ApiScope>),
}

/// Access to files outside its own folders. Written as the place, with `:write` if files may be changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileAccess {
    pub place: FilePlace,
    pub is_write: bool,
}

/// A place of files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilePlace {
    Recordings,
    Logos,
    /// An absolute path without `..`.
    Folder(String),
}

impl Permissions {
    /// Returns the permissions of a plugin that declares none.
    pub fn undeclared() -> Self {
        Self { is_declared: false, api: ApiAccess::Full, network: true, ..Self::none() }
    }

    /// Returns declared permissions for nothing.
    pub fn none() -> Self {
        Self {
            is_declared: true,
            api: ApiAccess::Scopes(BTreeSet::new()),
            network: false,
            listen: BTreeSet::new(),
            programs: BTreeSet::new(),
            files: BTreeSet::new(),
        }
    }

    /// States whether a request to the API is permitted. `is_write` is any method but GET, HEAD and OPTIONS.
    pub fn permits_api(&self, path: &str, is_write: bool) -> bool {
        let area = ApiArea::from_path(path);
        match &self.api {
            ApiAccess::Full => area != ApiArea::Backups,
            ApiAccess::Scopes(scopes) => scopes.iter().any(|it| it.permits(area, is_write)),
        }
    }

    /// Returns what these permissions allow and the granted ones do not, as sentences. Empty if an update may use the
    /// granted ones.
    pub fn beyond(&self, granted: &Self) -> Vec<String> {
        let mut more = Vec::new();
        match (&self.api, &granted.api) {
            (_, ApiAccess::Full) => {}
            (ApiAccess::Full, ApiAccess::Scopes(_)) => more.push("use of the whole API".to_owned()),
            (ApiAccess::Scopes(wanted), ApiAccess::Scopes(granted)) => {
                let missing = wanted.iter().filter(|it| !granted.iter().any(|scope| scope.includes(**it)));
                more.extend(missing.map(|it| format!("API: {it}")));
            }
        }
        if self.network && !granted.network {
            more.push("connections to any host".to_owned());
        }
        more.extend(self.listen.difference(&granted.listen).map(|it| format!("listening at port {it}")));
        let programs = self.programs.difference(&granted.programs);
        more.extend(programs.map(|it| format!("starting the program {it}")));
        more.extend(
            self.files.iter().filter(|it| !granted.includes_files(it)).map(|it| format!("files: {it}")),
        );
        more
    }

    /// Returns the granted permissions without those that the installed version does not declare. Folders stay: an admin
    /// may have granted them besides the declared ones.
    pub fn within(&self, declared: &Self) -> Self {
        let common = |mine: &BTreeSet<ApiScope>, theirs: &BTreeSet<ApiScope>| {
            let pairs = mine.iter().flat_map(|mine| theirs.iter().map(move |it| mine.both(*it)));
            ApiAccess::Scopes(pairs.flatten().collect())
        };
        let is_kept = |it: &&FileAccess| match it.place {
            FilePlace::Folder(_) => true,
            FilePlace::Recordings | FilePlace::Logos => declared.includes_files(it),
        };
        let mut files: BTreeSet<FileAccess> = self.files.iter().filter(is_kept).cloned().collect();
        // A right to write that became one to read.
        files.extend(declared.files.iter().filter(|it| self.includes_files(it)).cloned());
        Self {
            is_declared: self.is_declared || declared.is_declared,
            api: match (&self.api, &declared.api) {
                (ApiAccess::Full, declared) => declared.clone(),
                (granted, ApiAccess::Full) => granted.clone(),
                (ApiAccess::Scopes(granted), ApiAccess::Scopes(declared)) => common(granted, declared),
            },
            network: self.network && declared.network,
            listen: &self.listen & &declared.listen,
            programs: &self.programs & &declared.programs,
            files,
        }
    }

    /// Returns the granted permissions after an update: [`within`](Self::within) the new version, and without the folders
    /// that only the version before it declared.
    pub fn after_update(&self, before: Option<&Self>, declared: &Self) -> Self {
        let mut granted = self.within(declared);
        if let Some(before) = before {
            granted.files.retain(|it| declared.includes_files(it) || !before.files.contains(it));
        }
        granted
    }

    fn includes_files(&self, wanted: &FileAccess) -> bool {
        self.files.iter().any(|it| it.place == wanted.place && (it.is_write || !wanted.is_write))
    }

    /// Reads the permissions of a manifest.
    pub(super) fn read(value: &Value, faults: &mut Faults) -> Self {
        let mut permissions = Self::none();
        let Some(members) = value.as_object() else {
            faults.add("permissions", "must be an object");
            return permissions;
        };
        permissions.api = ApiAccess::Scopes(read_scopes(members, faults));
        permissions.network = match members.get("network") {
            None => false,
            Some(Value::Bool(network)) => *network,
            Some(_) => {
                faults.add("permissions.network", "must be true or false");
                false
            }
        };
        permissions.listen = read_ports(members, faults);
        for (index, program) in entries(members, "programs", faults).into_iter().enumerate() {
            match is_program(&program) {
                true => drop(permissions.programs.insert(program)),
                false => faults.add(
                    format!("permissions.programs[{index}]"),
                    "must be the name of a program, without a path",
                ),
            }
        }
        for (index, file) in entries(members, "files", faults).iter().enumerate() {
            match FileAccess::parse(file) {
                Some(access) => drop(permissions.files.insert(access)),
                None => faults.add(
                    format!("permissions.files[{index}]"),
                    "must be recordings, logos or an absolute folder, with :write to change files",
                ),
            }
        }
        permissions
    }
}

fn read_scopes(members: &Map<String, Value>, faults: &mut Faults) -> BTreeSet<ApiScope> {
    let mut scopes = BTreeSet::new();
    for (index, text) in entries(members, "api", faults).iter().enumerate() {
        match ApiScope::parse(text) {
            Some(scope) => drop(scopes.insert(scope)),
            None => faults.add(
                format!("permissions.api[{index}]"),
                "must be a part of the API and read or write, such as channels:read",
            ),
        }
    }
    scopes
}

fn read_ports(members: &Map<String, Value>, faults: &mut Faults) -> BTreeSet<u16> {
    let Some(value) = members.get("listen") else { return BTreeSet::new() };
    let Some(list) = value.as_array().filter(|it| it.len() <= ENTRIES_MAX) else {
        faults.add("permissions.listen", format!("must be a list of at most {ENTRIES_MAX} ports"));
        return BTreeSet::new();
    };
    let mut ports = BTreeSet::new();
    for (index, value) in list.iter().enumerate() {
        match value.as_u64().and_then(|it| u16::try_from(it).ok()).filter(|it| *it >= 1_024) {
            Some(port) => drop(ports.insert(port)),
            None => faults.add(format!("permissions.listen[{index}]"), "must be a port from 1024 to 65535"),
        }
    }
    ports
}

/// Returns the texts of a list of permissions.
fn entries(members: &Map<String, Value>, name: &str, faults: &mut Faults) -> Vec<String> {
    match members.get(name) {
        None => Vec::new(),
        Some(value) => text_list(value, &format!("permissions.{name}"), ENTRIES_MAX, faults),
    }
}

fn is_program(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-.+".contains(it);
    !name.is_empty() && name.len() <= 64 && !name.starts_with(['.', '-']) && name.chars().all(is_plain)
}

impl FileAccess {
    /// Reads an entry such as `recordings`, `logos:write` or `/srv/guides`.
    pub fn parse(text: &str) -> Option<Self> {
        let (place, is_write) = match text.strip_suffix(":write") {
            Some(place) => (place, true),
            None => (text, false),
        };
        let place = match place {
            "recordings" => FilePlace::Recordings,
            "logos" => FilePlace::Logos,
            folder => FilePlace::Folder(clean_folder(folder)?),
        };
        Some(Self { place, is_write })
    }
}

/// Returns an absolute path in its shortest form; `None` for the root, for `..` and for control characters.
fn clean_folder(path: &str) -> Option<String> {
    let rest = path.strip_prefix('/')?;
    if path.len() > 1_024 || path.chars().any(char::is_control) {
        return None;
    }
    let parts: Vec<&str> = rest.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
    (!parts.is_empty() && !parts.contains(&"..")).then(|| format!("/{}", parts.join("/")))
}

impl fmt::Display for FileAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.place {
            FilePlace::Recordings => "recordings",
            FilePlace::Logos => "logos",
            FilePlace::Folder(path) => path,
        })?;
        f.write_str(if self.is_write { ":write" } else { "" })
    }
}

impl TryFrom<String> for FileAccess {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not a place of files"))
    }
}

impl From<FileAccess> for String {
    fn from(access: FileAccess) -> Self {
        access.to_string()
    }
}
