//! Archives of plugins, harmless and hostile ones, which the tests write byte by byte.

use std::fs;
use std::io::Cursor;

use domain::plugin::PluginKey;

use super::testing::{archive, demo, hostile_archives, part};
use super::*;

struct Folders {
    folders: PluginFiles,
    dir: tempfile::TempDir,
}

impl Folders {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { folders: PluginFiles::new(dir.path()), dir }
    }

    fn stage(&self, bytes: Vec<u8>) -> Result<StagedPlugin, ArchiveError> {
        self.folders.stage(Cursor::new(bytes), "upload.zip")
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.dir.path().join("plugins"))
            .map(|it| it.map(|it| it.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        names.sort();
        names
    }
}

fn key(text: &str) -> PluginKey {
    PluginKey::from_folder(text).unwrap()
}

#[test]
fn an_archive_is_installed_and_an_update_keeps_the_version_before_until_it_is_dropped() {
    use std::os::unix::fs::PermissionsExt;
    let it = Folders::new();
    it.folders.recover().unwrap();
    assert!(it.folders.list().unwrap().is_empty());
    let staged = it.stage(archive(&demo())).unwrap();
    assert_eq!((staged.key.as_str(), &*staged.manifest.name), ("demo", "Demo"));
    staged.install().unwrap();
    assert_eq!(it.files(), ["demo"]);
    let folder = it.folders.folder(&key("demo"));
    assert_eq!(fs::read(folder.join("plugin.py")).unwrap(), b"class Plugin:\n    pass\n");
    let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("bin/tool"), mode("plugin.py")), (0o700, 0o600));
    assert!(!folder.join("__MACOSX").exists());

    let mut newer = demo();
    newer[1].content = br#"{"name":"Demo","version":"2.0.0","description":"d"}"#.to_vec();
    let update = |it: &Folders| it.stage(archive(&newer)).unwrap().install().unwrap();
    let version = |it: &Folders| it.folders.manifest(&key("demo")).unwrap().version;
    update(&it);
    assert_eq!((it.files().len(), &*version(&it)), (2, "2.0.0"));
    assert_eq!(it.folders.list().unwrap(), [key("demo")]);
    it.folders.restore_old(&key("demo")).unwrap();
    assert_eq!((it.files().len(), &*version(&it)), (1, "1.0.0"));
    update(&it);
    it.folders.drop_old(&key("demo")).unwrap();
    assert_eq!((it.files().len(), &*version(&it)), (1, "2.0.0"));
    it.folders.remove(&key("demo")).unwrap();
    assert!(it.files().is_empty());
}

#[test]
fn an_interrupted_installation_is_undone_at_the_next_start() {
    let it = Folders::new();
    it.stage(archive(&demo())).unwrap().install().unwrap();
    let plugins = it.dir.path().join("plugins");
    fs::rename(plugins.join("demo"), plugins.join(".old-demo")).unwrap();
    fs::create_dir(plugins.join(".staged-x")).unwrap();
    it.folders.recover().unwrap();
    assert_eq!(it.files(), ["demo"]);
}

#[test]
fn a_plugin_without_a_manifest_is_legacy() {
    let it = Folders::new();
    let staged = it.stage(archive(&[part("old/plugin.py", b"x = 1")])).unwrap();
    assert!(staged.manifest.is_legacy);
    drop(staged);
    assert!(it.files().is_empty(), "a plugin that is not installed leaves nothing");
}

// Holds T-acc.4.
#[test]
fn hostile_archives_are_refused_with_the_entry_and_nothing_is_kept() {
    let it = Folders::new();
    let refused = |bytes: Vec<u8>, expected: &str| {
        let error = it.stage(bytes).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains(expected), "{expected}: {error}");
        assert!(it.files().is_empty(), "{expected}: {:?}", it.files());
    };
    for (bytes, expected) in hostile_archives() {
        refused(bytes, &expected);
    }
}

#[test]
fn archives_that_others_read_differently_are_refused() {
    let it = Folders::new();
    let good = archive(&demo());
    assert!(it.stage(good.clone()).is_ok());
    for end in [0, 1, 21, 40, good.len() / 2, good.len() - 1] {
        assert!(it.stage(good[..end].to_vec()).is_err(), "{end} bytes");
    }
    let before = [b"MZ".as_slice(), &good].concat();
    let after = [good.as_slice(), b"x"].concat();
    let twice = [good.as_slice(), &good].concat();
    let mut several = good.clone();
    let end = good.len() - 22;
    several[end + 4] = 1;
    let mut large = good.clone();
    large[end + 16..end + 20].fill(0xff);
    for bytes in [before, after, twice, several, large] {
        assert!(it.stage(bytes).is_err_and(|it| it.is_refusal()));
    }
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 0x55;
        // Whether it is refused depends on the byte; it neither panics nor leaves anything.
        drop(it.stage(changed));
        assert!(it.files().is_empty());
    }
}

#[test]
fn logos_are_found_and_links_are_not_followed() {
    let it = Folders::new();
    it.stage(archive(&demo())).unwrap().install().unwrap();
    let key = key("demo");
    assert!(!it.folders.has_logo(&key) && it.folders.logo(&key).unwrap().is_none());
    let secret = it.dir.path().join("key");
    fs::write(&secret, b"secret").unwrap();
    std::os::unix::fs::symlink(&secret, it.folders.folder(&key).join("logo.png")).unwrap();
    assert!(!it.folders.has_logo(&key) && it.folders.logo(&key).unwrap().is_none());
    fs::write(it.folders.folder(&key).join("icon.png"), b"picture").unwrap();
    assert_eq!(it.folders.logo(&key).unwrap().unwrap(), b"picture");
}

#[test]
fn a_packed_plugin_is_installed_elsewhere_as_it_was() {
    use std::os::unix::fs::PermissionsExt;
    let (from, to) = (Folders::new(), Folders::new());
    let large: Vec<u8> = (0..300_000_u32).flat_map(|it| it.to_le_bytes()).collect();
    let more = [part("demo/empty.txt", b""), part("demo/data/large.bin", &large)];
    from.stage(archive(&[demo(), more.to_vec()].concat())).unwrap().install().unwrap();
    let folder = from.folders.folder(&key("demo"));
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
    let packed = |it: &Folders| {
        let mut packed = Cursor::new(Vec::new());
        it.folders.pack(&key("demo"), &mut packed).unwrap();
        packed.into_inner()
    };
    let staged = to.stage(packed(&from)).unwrap();
    assert_eq!(staged.key, key("demo"));
    staged.install().unwrap();
    assert_eq!(packed(&to), packed(&from), "nothing is lost");
    let there = to.folders.folder(&key("demo"));
    assert_eq!(fs::read(there.join("data/large.bin")).unwrap(), large);
    assert_eq!(fs::metadata(there.join("bin/tool")).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(there.join("empty.txt").exists() && !there.join("link").exists());

    // Which archive it has is known until another version is installed, or it is removed.
    let name = |it: &Folders| it.folders.archive(&key("demo"));
    to.folders.set_archive(&key("demo"), Some("1.zip")).unwrap();
    assert_eq!((name(&to).as_deref(), name(&from)), (Some("1.zip"), None));
    to.stage(archive(&demo())).unwrap().install().unwrap();
    assert_eq!(name(&to), None);
    to.folders.set_archive(&key("demo"), Some("2.zip")).unwrap();
    to.folders.remove(&key("demo")).unwrap();
    assert_eq!((name(&to), to.files().len()), (None, 0));
}
