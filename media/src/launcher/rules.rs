//! The files that a program may access, as rules of the kernel's kind: each allows access to a path and to everything
//! below it, and no rule takes anything away.
//!
//! A folder with something hidden below it therefore gets no rule; instead, its entries get rules, except the one that
//! leads to what is hidden. Such a folder cannot be listed, and a file that is created in it later cannot be opened.

use std::fs;
use std::path::{Path, PathBuf};

use super::Confinement;

/// Maximum number of entries of a folder that get rules. Each one delays the start by some microseconds.
const ENTRIES_MAX: usize = 4096;
/// Devices that every program may use, for graphics cards, tuners, cameras and sound. Other devices, such as disks,
/// would lead to hidden files. A name that ends with `*` is the beginning of names.
const DEVICES: [&str; 19] = [
    "null",
    "zero",
    "full",
    "random",
    "urandom",
    "shm",
    "dri",
    "nvidia*",
    "kfd",
    "dxg",
    "dma_heap",
    "video*",
    "media*",
    "dvb",
    "snd",
    "mali*",
    "mpp_service",
    "rga",
    "vchiq",
];

/// Devices of a program with strict restrictions.
const HARMLESS_DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// The access that a rule allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileAccess {
    /// Reading, listing and executing.
    Read,
    /// Reading, writing, creating and deleting.
    Write,
    /// Reading and listing, without executing.
    Look,
    /// Everything that [`Write`](Self::Write) allows except executing.
    Change,
}

/// Allows access to a path and to everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) path: PathBuf,
    pub(super) access: FileAccess,
}

/// Returns the rules of a confinement. Blocks.
pub(super) fn rules(confinement: &Confinement) -> Vec<Rule> {
    // A path that does not exist hides nothing and needs no rule.
    let real =
        |paths: &[PathBuf]| paths.iter().filter_map(|it| fs::canonicalize(it).ok()).collect::<Vec<_>>();
    let hidden = real(&confinement.hidden);
    let devices = PathBuf::from("/dev");
    let mut rules = Vec::new();
    if let Some(strictness) = &confinement.strictness {
        let [readable, writable, executable] =
            [&confinement.readable, &confinement.writable, &strictness.executable].map(|it| real(it));
        let read = if strictness.reads_all { FileAccess::Read } else { FileAccess::Look };
        let mut add = |paths: &[PathBuf], access| {
            for path in paths.iter().filter(|it| !hidden.contains(it)) {
                let below: Vec<_> = hidden.iter().filter(|it| it.starts_with(path)).cloned().collect();
                grant(path, access, &below, &mut rules);
            }
        };
        add(&readable, read);
        add(&executable, FileAccess::Read);
        add(&writable, FileAccess::Change);
        if strictness.reads_all {
            let hidden = [&hidden[..], std::slice::from_ref(&devices)].concat();
            grant(Path::new("/"), FileAccess::Read, &hidden, &mut rules);
        }
        for name in HARMLESS_DEVICES {
            rules.push(Rule { path: devices.join(name), access: FileAccess::Change });
        }
        return rules;
    }
    grant(
        Path::new("/"),
        FileAccess::Read,
        &[&hidden[..], std::slice::from_ref(&devices)].concat(),
        &mut rules,
    );
    for entry in entries(&devices) {
        if entry.file_name().and_then(|it| it.to_str()).is_some_and(is_allowed_device) {
            grant(&entry, FileAccess::Write, &hidden, &mut rules);
        }
    }
    for (paths, access) in
        [(&confinement.readable, FileAccess::Read), (&confinement.writable, FileAccess::Write)]
    {
        for path in real(paths).iter().filter(|it| !hidden.contains(it)) {
            // A path below a hidden one is allowed on purpose; what is hidden below it stays hidden.
            let below: Vec<_> = hidden.iter().filter(|it| it.starts_with(path)).cloned().collect();
            grant(path, access, &below, &mut rules);
        }
    }
    rules
}

/// Adds rules for a path and everything below it, except what is hidden.
fn grant(path: &Path, access: FileAccess, hidden: &[PathBuf], rules: &mut Vec<Rule>) {
    if hidden.iter().any(|it| path.starts_with(it)) {
        return;
    }
    if hidden.iter().any(|it| it.starts_with(path)) {
        for entry in entries(path) {
            grant(&entry, access, hidden, rules);
        }
        return;
    }
    rules.push(Rule { path: path.to_owned(), access });
}

/// Returns the entries of a folder, without symbolic links: what they lead to has its own rule, or is hidden.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    // What cannot be listed gets no rules.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let real = entries.filter(|it| it.file_type().is_ok_and(|it| !it.is_symlink()));
    real.map(|it| it.path()).take(ENTRIES_MAX)
}

fn is_allowed_device(name: &str) -> bool {
    DEVICES.iter().any(|it| match it.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *it,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// Creates folders and files; those that end with `/` are folders.
    fn tree(paths: &[&str]) -> (TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(root.path()).unwrap();
        for it in paths {
            let full = path.join(it);
            match it.ends_with('/') {
                true => fs::create_dir_all(full).unwrap(),
                false => fs::write(full, "").unwrap(),
            }
        }
        (root, path)
    }

    /// Returns the paths below a root that get these rights, relative to it and sorted.
    fn allowed(root: &Path, access: FileAccess, confinement: &Confinement) -> Vec<String> {
        let rules = rules(confinement).into_iter().filter(|it| it.access == access);
        let below = rules.filter_map(|it| Some(it.path.strip_prefix(root).ok()?.display().to_string()));
        let mut below: Vec<_> = below.collect();
        below.sort();
        below
    }

    #[test]
    fn the_siblings_along_the_path_to_a_hidden_folder_stay_readable() {
        let (_root, root) = tree(&["a/data/store/", "a/data/key", "a/scripts/", "a/list.m3u", "b/"]);
        symlink(root.join("a/data"), root.join("link")).unwrap();
        symlink(&root, root.join("b/up")).unwrap();
        let mut confinement = Confinement { hidden: vec![root.join("link")], ..Confinement::default() };
        let read = |it: &_| allowed(&root, FileAccess::Read, it);
        assert_eq!(
            read(&confinement),
            ["a/list.m3u", "a/scripts", "b"],
            "hidden through a link, and no link is a rule"
        );
        let everything = rules(&confinement);
        assert!(everything.iter().all(|it| !root.starts_with(&it.path)), "no rule for a folder above");
        assert!(everything.iter().any(|it| it.path == Path::new("/proc")), "{everything:?}");

        confinement.readable = vec![root.join("a/data/store"), root.join("a/data"), root.join("nothing")];
        assert_eq!(
            read(&confinement),
            ["a/data/store", "a/list.m3u", "a/scripts", "b"],
            "but never the hidden one"
        );
    }

    #[test]
    fn only_listed_folders_are_writable_and_never_what_is_hidden_below_them() {
        let (_root, root) = tree(&["tmp/data/", "tmp/other/", "tmp/file", "out/"]);
        let confinement = Confinement {
            hidden: vec![root.join("tmp/data")],
            writable: vec![root.join("tmp"), root.join("out"), root.join("tmp/data")],
            ..Confinement::default()
        };
        assert_eq!(allowed(&root, FileAccess::Write, &confinement), ["out", "tmp/file", "tmp/other"]);
        assert_eq!(allowed(&root, FileAccess::Write, &Confinement::default()), Vec::<String>::new());
    }

    #[test]
    fn disks_and_consoles_are_not_allowed_devices() {
        for name in ["null", "dri", "nvidia0", "nvidiactl", "nvidia-uvm", "video10"] {
            assert!(is_allowed_device(name), "{name}");
        }
        for name in
            ["sda", "nvme0n1", "mem", "kmsg", "loop0", "mapper", "tty", "console", "null2", "xnvidia0"]
        {
            assert!(!is_allowed_device(name), "{name}");
        }
        let rules = rules(&Confinement::default());
        let device = |name: &str| rules.iter().find(|it| it.path == Path::new(name)).map(|it| it.access);
        assert_eq!((device("/dev/null"), device("/dev")), (Some(FileAccess::Write), None));
    }
}
