//! What the process of a plugin may access, from the permissions that an admin granted.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use domain::plugin::{FilePlace, Limits, Permissions};
use media::{Confinement, ProgramLimits, ProgramUser, Strictness, find_program};
use rustix::process::{geteuid, getuid};
use storage::create_folder;

use super::python::Python;
use super::settings::PluginFolders;
use super::usage::{threads_of_user, users_with_processes};

/// The group of all plugins of a gateway that runs as root. Systems give these numbers to nobody.
const GROUP: u32 = 60_705;
/// The users of plugins of a gateway that runs as root: one for each running plugin.
const USERS: std::ops::Range<u32> = 60_706..61_183;
/// Nice value of plugins: everything else comes first. With 19, a processor that is in use gives them one part in seventy, and
/// a plugin does not start in its time.
const NICENESS: i32 = 10;
/// The limit of memory by address space is this many times the limit of used memory, because programs reserve more than
/// they use.
const DATA_FACTOR: u64 = 4;
/// Limit of the memory of a program of the gateway that looks at the code of a plugin, in bytes.
const TOOL_MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Limit of its open files.
const TOOL_OPEN_FILES_MAX: u64 = 64;
/// Files of the system that a plugin with declared permissions reads: libraries, time zones, certificates and the names of
/// hosts. What does not exist is skipped.
const SYSTEM_FILES: [&str; 32] = [
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/osrelease",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/ca-certificates",
    "/usr/share/zoneinfo",
];
/// Folders with the program that loads other programs, which has to be executable.
const LOADER_FOLDERS: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
/// Maximum size of the first line of a script, in bytes.
const SCRIPT_LINE_BYTES_MAX: u64 = 256;

/// The folders of one plugin.
#[derive(Clone, Debug)]
pub(super) struct OwnFolders {
    /// Its code, which it reads.
    pub(super) code: PathBuf,
    /// Its files, which it writes.
    pub(super) data: PathBuf,
    /// Its temporary files, below the former.
    pub(super) temporary: PathBuf,
    /// Its Python packages, which it reads.
    pub(super) environment: PathBuf,
    /// Its log, which it cannot open.
    pub(super) logs: PathBuf,
    /// Its stored values while they are not records, which it cannot open.
    pub(super) storage: PathBuf,
}

impl OwnFolders {
    pub(super) fn new(folders: &PluginFolders, key: &str) -> Self {
        let own = folders.data.join(key);
        Self {
            code: folders.code.join(key),
            temporary: own.join("files/tmp"),
            data: own.join("files"),
            environment: own.join("environment"),
            logs: own.join("logs"),
            storage: own.join("storage.json"),
        }
    }

    /// Creates the folders that the plugin writes, and gives it access to them. Blocks.
    ///
    /// # Errors
    /// The sentence why the plugin could not use them.
    pub(super) fn prepare(&self, folders: &PluginFolders, user: Option<ProgramUser>) -> Result<(), String> {
        let failed = |path: &Path, error: &io::Error| {
            format!("the folder {} cannot be prepared: {}", path.display(), error.kind())
        };
        create_folder(&self.temporary, 0o777).map_err(|error| failed(&self.temporary, &error))?;
        let Some(user) = user else { return Ok(()) };
        let own = self.data.parent().unwrap_or(&self.data);
        for folder in [
            folders.code.parent(),
            folders.data.parent(),
            Some(&folders.code),
            Some(&folders.data),
            Some(own),
        ] {
            let Some(folder) = folder else { continue };
            open_way(folder).map_err(|error| failed(folder, &error))?;
        }
        for folder in [&self.code, &self.environment].into_iter().filter(|it| it.exists()) {
            share(folder).map_err(|error| failed(folder, &error))?;
        }
        give(&self.data, user).map_err(|error| failed(&self.data, &error))?;
        match folders.code.ancestors().skip(1).find(|it| !can_enter(it)) {
            None => Ok(()),
            Some(folder) => Err(format!(
                "a gateway that runs as root gives its plugins another user, who cannot enter the folder {}: run the \
                 gateway as a user of its own, or use another data folder",
                folder.display()
            )),
        }
    }
}

/// Chooses the user of a plugin with its code in this folder, other than these. `None` if the gateway does not run as root:
/// then a plugin has the user of the gateway. Blocks.
pub(super) fn choose_user(code: &Path, taken: &[u32]) -> Option<ProgramUser> {
    if !geteuid().is_root() {
        return None;
    }
    let n_users = USERS.end - USERS.start;
    // The same user as before, if possible, so that its files need no new owner.
    let bytes = code.as_os_str().as_encoded_bytes();
    let first = bytes.iter().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    let users = || (0..n_users).map(|it| USERS.start + (first % n_users + it) % n_users);
    // Another gateway on this machine may use some; the limit of processes counts those of a user.
    let busy = users_with_processes();
    let free = users().find(|it| !taken.contains(it) && !busy.contains(it));
    let uid = free.or_else(|| users().find(|it| !taken.contains(it))).or_else(|| users().next())?;
    Some(ProgramUser { uid, gid: GROUP })
}

/// Returns the user that only asks programs for their version.
pub(super) fn any_user() -> Option<ProgramUser> {
    geteuid().is_root().then_some(ProgramUser { uid: USERS.end, gid: GROUP })
}

/// Lets plugins pass a folder on the way to theirs, without listing it.
fn open_way(folder: &Path) -> io::Result<()> {
    let metadata = fs::metadata(folder)?;
    let mode = metadata.mode() & 0o7777;
    if mode & 0o001 != 0 || (metadata.gid() == GROUP && mode & 0o010 != 0) {
        return Ok(());
    }
    chown(folder, None, Some(GROUP))?;
    fs::set_permissions(folder, fs::Permissions::from_mode(mode & !0o070 | 0o010))
}

/// Returns whether plugins can pass a folder.
fn can_enter(folder: &Path) -> bool {
    fs::metadata(folder)
        .is_ok_and(|it| it.mode() & 0o001 != 0 || (it.gid() == GROUP && it.mode() & 0o010 != 0))
}

/// Lets plugins read a folder and everything below it.
fn share(path: &Path) -> io::Result<()> {
    walk(path, &mut |path, metadata| {
        let mode = metadata.mode() & 0o7777;
        let wanted = mode & !0o027 | 0o040 | (mode & 0o100) >> 3;
        if metadata.gid() != GROUP {
            chown(path, None, Some(GROUP))?;
        }
        match mode == wanted {
            true => Ok(()),
            false => fs::set_permissions(path, fs::Permissions::from_mode(wanted)),
        }
    })
}

/// Makes a user the owner of a folder and everything below it.
fn give(path: &Path, user: ProgramUser) -> io::Result<()> {
    // A file with another name elsewhere may belong to somebody else.
    let is_own = |it: &fs::Metadata| it.uid() == user.uid || (!it.is_dir() && it.nlink() > 1);
    walk(path, &mut |path, metadata| match is_own(metadata) {
        true => Ok(()),
        false => chown(path, Some(user.uid), Some(user.gid)),
    })
}

/// Does this with a folder and everything below it, except links.
fn walk(path: &Path, work: &mut impl FnMut(&Path, &fs::Metadata) -> io::Result<()>) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return Ok(());
    }
    work(path, &metadata)?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            walk(&entry?.path(), work)?;
        }
    }
    Ok(())
}

/// Returns the folders outside of its own that a plugin may use, in the order of its permissions.
pub(super) fn granted(permissions: &Permissions, folders: &PluginFolders) -> Vec<PathBuf> {
    let places = permissions.files.iter().map(|it| match &it.place {
        FilePlace::Recordings => folders.recordings.clone(),
        FilePlace::Logos => folders.logos.clone(),
        FilePlace::Folder(path) => path.into(),
    });
    places.collect()
}

/// Returns the restrictions of a plugin. Blocks.
pub(super) fn confinement(
    permissions: &Permissions,
    limits: &Limits,
    own: &OwnFolders,
    folders: &PluginFolders,
    python: Option<&Python>,
    program: &Path,
    user: Option<ProgramUser>,
) -> Confinement {
    let mut readable: Vec<PathBuf> = SYSTEM_FILES.iter().map(PathBuf::from).collect();
    readable.extend([own.code.clone(), own.environment.clone(), PathBuf::from("/proc/self")]);
    readable.extend(python.iter().flat_map(|it| it.folders.clone()));
    let mut writable = vec![own.data.clone()];
    for (access, path) in permissions.files.iter().zip(granted(permissions, folders)) {
        if access.is_write { writable.push(path) } else { readable.push(path) }
    }
    let mut executable = loaders();
    executable.extend(with_interpreter(program));
    executable.extend(
        permissions.programs.iter().filter_map(|it| find_program(it)).flat_map(|it| with_interpreter(&it)),
    );
    let mebibytes = |it: u32| u64::from(it) << 20;
    let others = if user.is_some() { 0 } else { threads_of_user(getuid().as_raw()) };
    Confinement {
        hidden: Vec::new(),
        readable,
        writable,
        is_offline: false,
        limits: ProgramLimits {
            memory_bytes_max: DATA_FACTOR * mebibytes(limits.memory_mib),
            file_bytes_max: mebibytes(limits.data_mib),
            open_files_max: limits.open_files.into(),
            processes_max: others + u64::from(limits.processes),
        },
        strictness: Some(Strictness {
            reads_all: !permissions.is_declared,
            executable,
            connects: permissions.network,
            ports: permissions.is_declared.then(|| permissions.listen.iter().copied().collect()),
            user,
            niceness: NICENESS,
            control_group: None,
        }),
    }
}

/// Returns the restrictions of a Python program of the gateway that reads what it gets on its standard input, and writes
/// to its standard output. Blocks.
pub(super) fn without_access(python: &Python, user: Option<ProgramUser>) -> Confinement {
    let mut readable: Vec<PathBuf> = SYSTEM_FILES.iter().map(PathBuf::from).collect();
    readable.push(PathBuf::from("/proc/self"));
    readable.extend(python.folders.iter().cloned());
    let mut executable = loaders();
    executable.extend(with_interpreter(&python.program));
    Confinement {
        readable,
        limits: ProgramLimits {
            memory_bytes_max: TOOL_MEMORY_BYTES_MAX,
            file_bytes_max: 1,
            open_files_max: TOOL_OPEN_FILES_MAX,
            processes_max: 0,
        },
        strictness: Some(Strictness {
            executable,
            ports: Some(Vec::new()),
            user,
            niceness: NICENESS,
            ..Strictness::default()
        }),
        ..Confinement::default()
    }
}

/// Returns the programs that load other programs.
fn loaders() -> Vec<PathBuf> {
    let entries = LOADER_FOLDERS.iter().filter_map(|it| fs::read_dir(it).ok()).flatten().flatten();
    let is_loader = |it: &fs::DirEntry| {
        let name = it.file_name();
        name.to_str().is_some_and(|it| it.starts_with("ld-linux") || it.starts_with("ld-musl"))
    };
    entries.filter(is_loader).map(|it| it.path()).collect()
}

/// Returns a program and, if it is a script, the program that runs it.
fn with_interpreter(program: &Path) -> Vec<PathBuf> {
    let mut programs = vec![program.to_owned()];
    let Ok(file) = fs::File::open(program) else { return programs };
    let mut line = Vec::new();
    // A file without text is not a script.
    let _ = BufReader::new(file.take(SCRIPT_LINE_BYTES_MAX)).read_until(b'\n', &mut line);
    let line = String::from_utf8_lossy(&line);
    if let Some(command) = line.strip_prefix("#!") {
        let mut words = command.split_whitespace();
        programs.extend(words.next().map(PathBuf::from));
        programs.extend(words.next().and_then(find_program));
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_running_plugin_has_a_user_of_its_own() {
        let code = Path::new("/data/plugins/demo");
        if !geteuid().is_root() {
            return assert_eq!(choose_user(code, &[]), None);
        }
        let first = choose_user(code, &[]).unwrap();
        let second = choose_user(code, &[first.uid]).unwrap();
        assert!(second.uid != first.uid && USERS.contains(&second.uid));
        assert!(choose_user(code, &USERS.collect::<Vec<_>>()).is_some(), "rather shared than root");
    }

    #[test]
    fn a_script_needs_the_program_that_runs_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#!/usr/bin/env sh\necho\n").unwrap();
        let programs = with_interpreter(&script);
        assert_eq!(programs[..2], [script, "/usr/bin/env".into()]);
        assert!(programs[2].ends_with("sh"), "{programs:?}");
        assert_eq!(with_interpreter(Path::new("/bin/sh")), [PathBuf::from("/bin/sh")]);
    }
}
